"""An artifact's page shows only the beginning and end of a long text. A model receives all of it."""

from __future__ import annotations

from routing_admin.console.artifacts.receiving import MAX_SHOWN, shorten_texts


def test_middle_of_a_long_text_in_a_payload_preview_is_omitted() -> None:
    text = "a" * 400_000 + "z" * 313_000
    shown = shorten_texts({"messages": [{"role": "user", "content": text}], "max_tokens": 77})
    content = shown["messages"][0]["content"]
    assert (content[:3], content[-3:], shown["max_tokens"]) == ("aaa", "zzz", 77)
    assert "[663,000 characters are sent but not shown here]" in content
    assert len(content) < MAX_SHOWN + 100


def test_short_payload_is_shown_exactly_as_sent() -> None:
    payload = {"messages": [{"content": "a" * MAX_SHOWN}], "temperature": None}
    assert shorten_texts(payload) == payload
