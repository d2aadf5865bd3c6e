"""Chat requests are parsed in every accepted form, and each error reports a path."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.message import FilePart, Role, TextPart
from capabilities.core.vocabulary import Kind
from routing_admin.gateway.body import parse_object
from routing_admin.gateway.chat.parsing import parse
from routing_admin.gateway.chat_api import ChatCall
from routing_admin.gateway.errors import BadRequestError
from tests.gateway.plane import PNG, PNG_URL, chat_body, image

WAV = b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\0\0\0\0"
KNOWN = FilePart(Kind.DOCUMENT, "application/pdf", "report.pdf", 3, "abc")


def find(ref: str) -> FilePart | None:
    return KNOWN if ref in ("artifact:abc", "abc") else None


def parse_body(body: Any) -> ChatCall:
    return parse(parse_object(json.dumps(body).encode() if not isinstance(body, bytes) else body), find)


def only_file(part: Any) -> FilePart:
    part_read = parse_body(chat_body(part)).chat.messages[0].parts[0]
    assert isinstance(part_read, FilePart)
    return part_read


def refusal(body: Any) -> BadRequestError:
    with pytest.raises(BadRequestError) as caught:
        parse_body(body)
    return caught.value


def encode_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


CSV = encode_base64(b"a,b\n1,2\n")


def test_thinking_blocks_of_the_messages_api_become_reasoning():
    """A conversation that began with the Messages API can continue with chat completions without changes."""
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "text", "text": "Yes."},
        {"type": "redacted_thinking", "data": "ZGF0YQ"},
    ]
    body = chat_body("x") | {
        "messages": [{"role": "assistant", "content": blocks}, {"role": "user", "content": "go on"}]
    }
    message = parse_body(body).chat.messages[0]
    assert message.text == "Yes."
    assert [(thought.text, thought.proof, thought.offset) for thought in message.thoughts] == [
        ("hm", "sig", 0),
        ("", "ZGF0YQ", 4),
    ]


@pytest.mark.parametrize(
    ("part", "kind", "mime_type", "filename"),
    [
        (image(), Kind.IMAGE, "image/png", None),
        ({"type": "image_url", "image_url": PNG_URL}, Kind.IMAGE, "image/png", None),
        (image("artifact:abc"), Kind.DOCUMENT, "application/pdf", "report.pdf"),
        ({"type": "file", "file": {"file_id": "artifact:abc"}}, Kind.DOCUMENT, "application/pdf", "report.pdf"),
        ({"type": "file", "file": {"file_id": "abc"}}, Kind.DOCUMENT, "application/pdf", "report.pdf"),
        ({"type": "file", "file": {"file_data": PNG_URL, "filename": "a.png"}}, Kind.IMAGE, "image/png", "a.png"),
        (
            {"type": "file", "file": {"file_data": CSV, "filename": "a.csv"}},
            Kind.TEXT,
            "text/csv",
            "a.csv",
        ),
        (
            {"type": "file", "file": {"data": encode_base64(PNG), "mimeType": "image/png"}},
            Kind.IMAGE,
            "image/png",
            None,
        ),
        (
            {"type": "input_audio", "input_audio": {"data": encode_base64(WAV), "format": "wav"}},
            Kind.AUDIO,
            "audio/wav",
            None,
        ),
    ],
)
def test_every_form_of_a_file_becomes_one_file_part(part, kind, mime_type, filename):
    file = only_file(part)
    assert (file.kind, file.mime_type, file.filename) == (kind, mime_type, filename)


def test_remote_image_keeps_its_url_and_is_never_fetched():
    file = only_file(image("https://example.com/cat.jpg?size=1"))
    assert (file.url, file.content, file.kind) == ("https://example.com/cat.jpg?size=1", None, Kind.IMAGE)


@pytest.mark.requirement("ABR-7.1")
def test_tool_message_with_a_get_artifact_result_becomes_its_file_part():
    result = {
        "status": "success",
        "contentType": "image",
        "routing": "image_url",
        "imageUrl": {"type": "image_url", "image_url": {"url": PNG_URL}},
        "metadata": {"id": "xyz", "filename": "dot.png"},
    }
    call = {"id": "c1", "type": "function", "function": {"name": "get_artifact", "arguments": "{}"}}
    for content in (json.dumps(result), [{"type": "text", "text": json.dumps(result)}]):
        body = {
            "model": "auto",
            "messages": [
                {"role": "user", "content": "look"},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": content},
            ],
        }
        messages = parse_body(body).chat.messages
        assert messages[1].tool_calls[0].name == "get_artifact"
        file = messages[2].parts[0]
        assert isinstance(file, FilePart)
        assert (file.artifact_id, file.filename, file.introduced, file.mime_type) == (
            "xyz",
            "dot.png",
            True,
            "image/png",
        )
        assert file.content is not None
        assert b"".join(file.content.blob().blocks()) == PNG
    assert messages[2].role is Role.TOOL


def test_user_text_that_looks_like_a_tool_result_stays_text():
    text = json.dumps({"contentType": "image", "routing": "image_url"})
    assert parse_body(chat_body(text)).chat.messages[0].parts == (TextPart(text),)


BAD: list[tuple[Any, str | None]] = [
    ({"model": "auto"}, "messages"),
    ({"model": "auto", "messages": []}, "messages"),
    ({"messages": [{"role": "user", "content": "x"}]}, "model"),
    ({"model": 3, "messages": [{"role": "user", "content": "x"}]}, "model"),
    ({"model": "auto", "messages": {}}, "messages"),
    ({"model": "auto", "messages": ["x"]}, "messages[0]"),
    ({"model": "auto", "messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
    ({"model": "auto", "messages": [{"role": "user"}]}, "messages[0].content"),
    ({"model": "auto", "messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
    ({"model": "auto", "messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id"),
    (chat_body({"type": "text"}), "messages[0].content[0].text"),
    (chat_body({"type": "video", "video": 1}), "messages[0].content[0].type"),
    (
        chat_body({"type": "text", "text": "x"}, image("data:image/png;base64,@@@")),
        "messages[0].content[1].image_url.url",
    ),
    (chat_body(image("data:nonsense")), "messages[0].content[0].image_url.url"),
    (chat_body(image("ftp://x/y.png")), "messages[0].content[0].image_url.url"),
    (chat_body(image("artifact:other")), "messages[0].content[0].image_url.url"),
    (chat_body({"type": "image_url"}), "messages[0].content[0].image_url"),
    (chat_body({"type": "file", "file": {}}), "messages[0].content[0].file.file_data"),
    (chat_body({"type": "file", "file": {"file_data": "@"}}), "messages[0].content[0].file.file_data"),
    (chat_body({"type": "file", "file": {"data": "@", "mimeType": "x/y"}}), "messages[0].content[0].file.data"),
    (chat_body({"type": "input_audio", "input_audio": {"data": "AAAA"}}), "messages[0].content[0].input_audio.format"),
    (chat_body("x", temperature=3), "temperature"),
    (chat_body("x", temperature=True), "temperature"),
    (chat_body("x", max_tokens=0), "max_tokens"),
    (chat_body("x", max_tokens=1.5), "max_tokens"),
    (chat_body("x", stop=[1]), "stop"),
    (chat_body("x", stream="yes"), "stream"),
    (chat_body("x", tools=[{"type": "web_search"}]), "tools[0].type"),
    (chat_body("x", tools=[{"type": "function"}]), "tools[0].function"),
    (chat_body("x", tool_choice="sometimes"), "tool_choice"),
    (chat_body("x", language=1), "language"),
    (chat_body("x", response_format={}), "response_format.type"),
    (b"{", None),
    (b"[]", None),
    (b"\xff\xfe", None),
    (b'{"model":"auto","messages":[{"role":"user","content":"\\ud800"}]}', "messages[0].content"),
    (b'{"model":"auto","\\ud800":1}', "?"),
    (b'{"model":"auto","temperature":NaN}', "temperature"),
    (b"[" * 100_000, None),
]


@pytest.mark.parametrize(("body", "param"), BAD)
def test_invalid_request_is_refused_with_the_path_of_the_field(body, param):
    error = refusal(body)
    assert (error.status, error.param) == (400, param)
    assert "@@@" not in error.message


def test_deeply_nested_request_is_refused():
    deep: Any = "x"
    for _ in range(200):
        deep = {"a": deep}
    assert refusal(chat_body("x", metadata=deep)).code == "invalid_json"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
WORDS = st.sampled_from(
    ["model", "messages", "role", "user", "content", "type", "text", "image_url", "url", "file", "tools"]
)
REQUESTS = st.recursive(
    JSON | WORDS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5)
)


@given(REQUESTS)
def test_any_json_is_parsed_or_refused(value):
    with suppress(BadRequestError):
        parse_body(value)


@given(st.text(max_size=200).filter(lambda text: text.isprintable()), st.floats(0, 2), st.integers(1, 10**6))
def test_text_and_known_or_unknown_parameters_are_read_unchanged(text, temperature, max_tokens):
    """A parameter for which the gateway has no field is passed on."""
    call = parse_body(chat_body(text, temperature=temperature, max_tokens=max_tokens, seed=7, task_type="planning"))
    assert call.chat.messages[0].text == text
    assert (call.chat.temperature, call.chat.max_tokens, call.task_type) == (temperature, max_tokens, "planning")
    assert call.chat.extra == {"seed": 7}


@given(st.binary(max_size=300))
def test_inline_file_data_is_kept_unchanged(data):
    part = only_file({"type": "file", "file": {"file_data": encode_base64(data), "filename": "x.bin"}})
    assert part.content is not None
    assert b"".join(part.content.blob().blocks()) == data
