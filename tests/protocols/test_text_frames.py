"""A fast path for streams: it learns the constant text around the deltas (the frame) and then extracts only the deltas.

The result is the same as if every event were parsed.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from capabilities.core.json_codec import read_json
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.protocols.sse import TRIES, EventTemplate
from capabilities.core.wire import Delta, StreamEvent

Chunk = dict[str, Any]
WORDS = st.one_of(st.text(max_size=6), st.sampled_from(["", "c", "delta", 'a","b":"c', "\\", '"', "\ud800", "你好\n"]))
BESIDE: st.SearchStrategy[Chunk] = st.dictionaries(
    st.sampled_from(["role", "refusal", "tool_calls", "x", "reasoning_content"]),
    st.sampled_from([None, "", [], "assistant", "c", {"content": "c"}]),
    max_size=2,
)
OUTER_FIELDS: st.SearchStrategy[Chunk] = st.dictionaries(
    st.sampled_from(["id", "model", "usage", "obfuscation", "base_resp", "error"]),
    st.sampled_from([None, "c", "delta", {}, {"completion_tokens": 3}]),
    max_size=2,
)


def chunk(text: Any, delta: Chunk | None = None, outer_fields: Chunk | None = None, **choice: Any) -> Chunk:
    return {**(outer_fields or {}), "choices": [{"index": 0, "delta": {**(delta or {}), "content": text}, **choice}]}


def decode_events(events: list[str], name: str = "") -> list[StreamEvent]:
    """Return the events of a stream. If an event name is given, the fast path is not used."""
    decoder = PROTOCOLS["openai"].decoder()
    head = f"event: {name}\n" if name else ""
    data = "".join(f"{head}data: {event}\n\n" for event in events).encode("utf-8", "replace")
    return [*decoder.feed(data), *decoder.close()]


@given(
    st.lists(st.tuples(WORDS, st.booleans()), max_size=8),
    st.lists(st.tuples(BESIDE, OUTER_FIELDS), min_size=1, max_size=2),
)
@example([("c", True), ("d", True), ("", True), ('"', True)], [({}, {"id": "c"})])
@example([("a", False)] * 3, [({"role": "assistant"}, {}), ({}, {"usage": {"completion_tokens": 3}})])
def test_fast_path_yields_the_same_events_as_full_parsing(texts: list[tuple[str, bool]], kinds: list[Any]) -> None:
    events = [
        json.dumps(chunk(text, *kinds[index % len(kinds)]), ensure_ascii=escaped)
        for index, (text, escaped) in enumerate(texts)
    ]
    assert decode_events(events) == decode_events(events, "chunk")


@pytest.mark.parametrize(
    "broken", ["b\x00", 'b"', 'b","content":"c', "b\\", "\\u12"], ids=["control", "quote", "field", "open", "escape"]
)
def test_event_with_invalid_text_in_the_frame_is_parsed_completely(broken: str) -> None:
    """An event that only resembles the frame is parsed completely, with the same result as without the fast path."""
    before, _, after = json.dumps(chunk("a")).partition('"a"')
    reader = PROTOCOLS["openai"].decoder()
    reader.feed(f'data: {before}"a"{after}\n\n'.encode())
    fresh = PROTOCOLS["openai"].decoder()
    event = f'data: {before}"{broken}"{after}\n\n'.encode()
    assert reader.feed(event) == fresh.feed(event)


def test_event_with_ambiguous_text_position_yields_no_frame() -> None:
    frame = EventTemplate()
    value: Chunk = {"id": "a", "delta": {"content": "a"}}
    frame.learn(json.dumps(value), value, value["delta"], "content")
    assert frame.read_text('{"id": "b", "delta": {"content": "a"}}') == ""


def learn_event(frame: EventTemplate, number: int, text: str) -> None:
    """Let the frame learn from an event with this text, and with padding that differs for each `number`."""
    value: Chunk = {"pad": f"{number:040x}", "delta": {"content": text}}
    frame.learn(json.dumps(value), value, value["delta"], "content")


def test_frame_search_stops_after_a_limited_number_of_attempts() -> None:
    """If every event has random padding, no frame fits. Without a limit, each event would be parsed twice."""
    patient, spent = EventTemplate(), EventTemplate()
    for number in range(TRIES - 1):
        learn_event(patient, number, f"{number:040x}")
    for number in range(TRIES):
        learn_event(spent, number, f"{number:040x}")
    event = json.dumps({"pad": f"{99:040x}", "delta": {"content": "later"}})
    for frame in (patient, spent):
        learn_event(frame, 99, "said")
    assert [patient.read_text(event), spent.read_text(event)] == ["later", ""]


def test_most_chunks_are_read_through_the_frame_without_json_parsing(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed_whole: list[object] = []

    def note(data: bytes | str) -> Any:
        parsed_whole.append(data)
        return read_json(data)

    monkeypatch.setattr("capabilities.core.protocols.stream.read_json", note)
    similar_chunks = [json.dumps(chunk(f"word {number}", outer_fields={"id": "c"})) for number in range(50)]
    assert [event for event in decode_events(similar_chunks) if isinstance(event, Delta)] == [
        Delta(f"word {number}") for number in range(50)
    ]
    assert len(parsed_whole) == 1


def test_chunk_after_the_finish_reason_is_parsed_completely() -> None:
    """Chunks after the finish reason contain the usage, so they are parsed completely."""
    reader = PROTOCOLS["openai"].decoder()
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    events = [chunk("a"), chunk("b"), end, chunk("late", outer_fields={"usage": {"completion_tokens": 9}})]
    events_read = reader.feed("".join(f"data: {json.dumps(event)}\n\n" for event in events).encode())
    assert events_read[-1].usage.completion_tokens == 9  # type: ignore[union-attr]
