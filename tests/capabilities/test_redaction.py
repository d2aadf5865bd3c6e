"""Keys are redacted from messages, whatever surrounds them."""

from __future__ import annotations

import string

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from capabilities.core.providers.redaction import MESSAGE_BYTES, PATTERNS, redact, summarize

SECRET = st.text(string.ascii_letters + string.digits + "_-", min_size=20, max_size=60)
FORMS = st.sampled_from(
    [
        *("sk-{}", "sk-ant-api03-{}", "AIza{}", "ra_{}", "gsk_{}"),
        *("Bearer {}", "bearer  {}", "Bearer Bearer {}", "Authorization: Bearer {}"),
        *("https://h/v1?key={}", "?a=1&key={}&b=2", "x-api-key: {}", '"api_key": "{}"'),
    ]
)
SURROUNDINGS = st.text(max_size=30).map(lambda text: text + " ") | st.just("") | st.just("key=") | st.just('("')


@given(
    before=SURROUNDINGS,
    form=FORMS,
    secret=SECRET,
    after=st.sampled_from(["", " ", ".", '"', "\n", "&x=1", " and more"]),
)
def test_key_in_a_known_format_is_redacted(before: str, form: str, secret: str, after: str) -> None:
    assume(secret not in before)
    text = before + form.format(secret) + after
    assert secret not in redact(text)
    assert secret not in summarize(text)


@given(st.text() | st.lists(FORMS.map(lambda form: form.format("abcdefgh12345678")), max_size=4).map(" ".join))
def test_redaction_is_idempotent(text: str) -> None:
    assert redact(redact(text)) == redact(text)


FRAGMENTS = st.sampled_from(
    [
        *("Bearer ", "BASIC ", "https://", "a:b@", "?", "&", "key", "Token", "api-KEY", "x-Api-key", "Access_Token"),
        *("sig", "Signature", "client-Secret", "SECRET_access_key", "passWord", "set-Cookie", "=", ": ", '": "'),
        *(
            "/uploads/",
            "0123abcd",
            "0123456789abcdef" * 2,
            ".",
            "sk-",
            "Zm9vOmJhcg==",
            "abcdefgh12345678",
            " ",
            "ſ",
            "K",
        ),
    ]
)


@given(st.lists(FRAGMENTS, max_size=8).map("".join))
def test_marker_word_filter_never_skips_a_matching_key_pattern(text: str) -> None:
    """A pattern is tried only if one of its marker words occurs in the text."""
    for announcing_words, pattern in PATTERNS:
        found = text.isascii() and pattern.search(text)
        assert not (announcing_words and found) or any(announcing in text.lower() for announcing in announcing_words)
    cleaned = text
    while True:
        before = cleaned
        for _, pattern in PATTERNS:
            cleaned = pattern.sub(lambda match: f"{match[1]}…", cleaned)
        if cleaned == before:
            break
    assert redact(text) == cleaned


@given(text=st.text(max_size=60), secret=st.text(min_size=4, max_size=20))
def test_known_key_is_redacted_regardless_of_format(text: str, secret: str) -> None:
    cleaned = redact(f"{text}{secret}{text}", secrets=[secret])
    assert secret not in cleaned or secret in redact("…" + text + "…")


@given(st.text(max_size=5000))
def test_summarized_message_is_one_line_of_at_most_2_kib(text: str) -> None:
    message = summarize(text)
    assert len(message.encode()) <= MESSAGE_BYTES
    assert not any(ord(character) < 32 or ord(character) == 127 for character in message)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Incorrect API key provided: sk-abcdef1234567890.", "Incorrect API key provided: sk-…"),
        ("GET https://h/v1beta/models?key=AIzaSyA1234567890&alt=sse", "GET https://h/v1beta/models?key=…&alt=sse"),
        ("a task-force of extra_parameters", "a task-force of extra_parameters"),
        ("the token was missing", "the token was missing"),
        ("Bearer token required", "Bearer token required"),
        ("basic authentication is off", "basic authentication is off"),
        ("Authorization: Basic dXNlcjpwYXNzd29yZA==", "Authorization: Basic …"),
        ("https://user:passw0rd@proxy.corp:3128 is down", "https://user:…@proxy.corp:3128 is down"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.SflKxwRJSM expired", "eyJ… expired"),
        ("bce-v3/ALTAK-abcdefghij/0123456789abcdef is wrong", "bce-v3/… is wrong"),
        ("secret_access_key: wJalrXUtnFEMI/K7MDENG", "secret_access_key: …"),
        ("Cookie: session=abcdefgh12345678; path=/", "Cookie: …; path=/"),
    ],
)
def test_text_around_a_redacted_key_stays_readable(text: str, expected: str) -> None:
    assert redact(text) == expected


def test_data_url_is_reduced_to_its_type_and_length() -> None:
    text = summarize("bad url data:image/png;base64,iVBORw0KGgoAAAANSUhEUg==")
    assert text == "bad url data:image/png;base64,<24 characters>"


def test_bidi_characters_are_removed_from_a_summarized_message() -> None:
    """Bidi characters could reverse the reading direction of a log line."""
    assert summarize("one\u202etwo\u2066three") == "one two three"


def test_base64_in_a_message_is_reduced_to_its_length() -> None:
    assert summarize("Invalid image: " + "iVBORw0KGgo" * 40) == "Invalid image: <440 characters>"
