"""Wherever the network splits a stream, it is decoded to the same events, exactly one of which ends it."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from capabilities.core.protocols import PROTOCOLS
from capabilities.core.protocols.sse import EventTooLargeError, SseEvent, SseParser
from capabilities.core.wire import Answer, Delta, Failure, Fault, Finish, StreamEvent
from tests.lab.shapes import VENDORS, ReplyText
from tests.protocols.exchange import assemble

EACH_PROTOCOL = pytest.mark.parametrize("protocol", list(VENDORS))
REPLIES = [
    ReplyText("Grüße 你好 from the lab.", reasoning="思考 first"),
    ReplyText("", tool=("get_weather", {"city": "Zürich"}), finish="tool_calls"),
    ReplyText("cut here", finish="length"),
]


def decode_blocks(protocol: str, blocks: list[bytes]) -> list[StreamEvent]:
    decoder = PROTOCOLS[protocol].decoder()
    events = [event for block in blocks for event in decoder.feed(block)]
    return [*events, *decoder.close()]


def split_at(data: bytes, offsets: list[int]) -> list[bytes]:
    edges = [0, *sorted(offset % (len(data) + 1) for offset in offsets), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


@EACH_PROTOCOL
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
@given(reply=st.sampled_from(REPLIES), offsets=st.lists(st.integers(0, 10_000), max_size=12))
def test_stream_decodes_equally_regardless_of_network_splits(
    protocol: str, line_end: bytes, reply: ReplyText, offsets: list[int]
) -> None:
    data = b"".join(VENDORS[protocol].frames(reply, "m").all()).replace(b"\n", line_end)
    answer = assemble(decode_blocks(protocol, split_at(data, offsets)))
    assert isinstance(answer, Answer)
    assert (answer.text, answer.reasoning or "") == (reply.text, reply.reasoning)
    assert [call.arguments for call in answer.tool_calls] == (
        [json.dumps(reply.tool[1], ensure_ascii=False)] if reply.tool else []
    )
    assert answer.finish_reason == reply.finish


@EACH_PROTOCOL
def test_stream_decodes_equally_when_split_at_any_single_offset(protocol: str) -> None:
    data = b"".join(VENDORS[protocol].frames(REPLIES[0], "m").all())
    uncut = assemble(decode_blocks(protocol, [data]))
    assert all(
        assemble(decode_blocks(protocol, [data[:offset], data[offset:]])) == uncut for offset in range(len(data))
    )


@EACH_PROTOCOL
@given(length=st.integers(0, 10_000))
@example(length=0)
def test_truncated_stream_is_never_decoded_as_complete(protocol: str, length: int) -> None:
    frames = VENDORS[protocol].frames(REPLIES[0], "m")
    data = b"".join(frames.all())
    events = decode_blocks(protocol, [data[: length % len(data)]])
    assert sum(isinstance(event, Finish | Failure) for event in events) == 1
    outcome = assemble(events)
    if isinstance(outcome, Answer):
        assert outcome.text == REPLIES[0].text
    else:
        has_content = any(isinstance(event, Delta) and event.text for event in events)
        assert outcome.fault is (Fault.STREAM_TRUNCATED if has_content else Fault.STREAM_EMPTY)


@EACH_PROTOCOL
@given(blocks=st.lists(st.binary(max_size=40), max_size=6))
def test_stream_of_any_bytes_ends_in_exactly_one_outcome(protocol: str, blocks: list[bytes]) -> None:
    events = decode_blocks(protocol, blocks)
    assert isinstance(events[-1], Finish | Failure)
    assert sum(isinstance(event, Finish | Failure) for event in events) == 1


@EACH_PROTOCOL
@given(
    lines=st.lists(
        st.sampled_from(['data: {"choices":[{"delta":3}]}', "data: {}", "data: null", 'data: {"error":{"code":429}}'])
        | st.text(max_size=20).map(lambda text: f"data: {text}"),
        max_size=8,
    )
)
def test_stream_of_any_events_ends_in_exactly_one_outcome(protocol: str, lines: list[str]) -> None:
    events = decode_blocks(protocol, ["".join(f"{line}\n\n" for line in lines).encode()])
    assert sum(isinstance(event, Finish | Failure) for event in events) == 1


@EACH_PROTOCOL
def test_malformed_events_are_skipped_and_the_third_breaks_the_stream(protocol: str) -> None:
    vendor = VENDORS[protocol]
    frames, malformed = vendor.frames(REPLIES[0], "m"), vendor.bad_events()
    decoder = PROTOCOLS[protocol].decoder()
    with_two_malformed = b"".join([*frames.head, *malformed[:2], *frames.content, *frames.finish, *frames.done])
    assert isinstance(assemble([*decoder.feed(with_two_malformed), *decoder.close()]), Answer)
    assert getattr(decoder, "bad_events") == 2  # noqa: B009 - a detail of this decoder, not of the interface
    outcome = assemble(decode_blocks(protocol, [b"".join([*frames.head, *frames.content, *malformed])]))
    assert isinstance(outcome, Failure)
    assert outcome.fault is Fault.STREAM_BROKEN


@EACH_PROTOCOL
def test_keep_alive_comments_yield_no_event(protocol: str) -> None:
    assert PROTOCOLS[protocol].decoder().feed(b": PROCESSING\n\n: ping\n\n") == []


@EACH_PROTOCOL
def test_finish_event_is_emitted_once_and_later_events_are_ignored(protocol: str) -> None:
    data = b"".join(VENDORS[protocol].frames(REPLIES[0], "m").all())
    decoder = PROTOCOLS[protocol].decoder()
    assert isinstance(decoder.feed(data)[-1], Finish)
    assert decoder.feed(data) == []
    assert decoder.close() == []


@EACH_PROTOCOL
def test_stream_error_is_classified_before_content_and_a_broken_stream_after_content(protocol: str) -> None:
    """Before any content, the error's code determines its class, since another candidate may still answer.

    After content, any error counts as a broken stream.
    """
    vendor = VENDORS[protocol]
    frames, event = vendor.frames(REPLIES[0], "m"), vendor.error_event(429, "rate_limit_error", "slow down")
    early = assemble(decode_blocks(protocol, [*frames.head, event]))
    late = assemble(decode_blocks(protocol, [*frames.head, *frames.content, event]))
    assert isinstance(early, Failure)
    assert isinstance(late, Failure)
    assert (early.fault, early.status) == (Fault.HTTP_429, 429)
    assert (late.fault, late.status, late.message) == (Fault.STREAM_BROKEN, 429, "slow down")


@EACH_PROTOCOL
def test_complete_response_to_a_stream_request_is_accepted(protocol: str) -> None:
    """Some hosts ignore `stream` and return a complete response. An error object in place of a stream is an error."""
    vendor = VENDORS[protocol]
    body = json.dumps(vendor.plain(REPLIES[0], "m"), ensure_ascii=False).encode()
    answer = assemble(decode_blocks(protocol, [body[:20], body[20:]]))
    assert isinstance(answer, Answer)
    assert answer.text == REPLIES[0].text
    failure = assemble(decode_blocks(protocol, [json.dumps(vendor.error(429, "rate_limit_error", "x", 429)).encode()]))
    assert isinstance(failure, Failure)
    assert failure.fault is Fault.HTTP_429


@EACH_PROTOCOL
def test_html_response_to_a_stream_request_is_detected_by_its_first_bytes(protocol: str) -> None:
    (event,) = PROTOCOLS[protocol].decoder().feed(b"<!DOCTYPE html><html>")
    assert isinstance(event, Failure)
    assert event.fault is Fault.BAD_CONTENT_TYPE


def test_openai_stream_waits_for_the_usage_chunk_after_the_finish_reason() -> None:
    """The usage chunk follows the finish reason and is included in the `Finish` event. `[DONE]` need not follow."""
    frames = VENDORS["openai"].frames(ReplyText("hi"), "m")
    decoder = PROTOCOLS["openai"].decoder()
    assert not any(
        isinstance(e, Finish) for e in decoder.feed(b"".join([*frames.head, *frames.content, frames.finish[0]]))
    )
    (finish,) = decoder.feed(frames.finish[1])
    assert isinstance(finish, Finish)
    assert finish.usage.total_tokens == 18


def test_sse_event_above_the_size_limit_raises_an_error() -> None:
    parser = SseParser(limit=100)
    parser.feed(b"data: " + b"a" * 90)
    with pytest.raises(EventTooLargeError):
        parser.feed(b"a" * 20)


@given(
    events=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1), max_size=5),
    offsets=st.lists(st.integers(0, 1000), max_size=6),
)
def test_sse_parser_yields_the_sent_texts_in_order(events: list[str], offsets: list[int]) -> None:
    data = "".join(f": note\nid: 7\ndata: {text}\n\n" for text in events).encode()
    parser = SseParser()
    parsed = [event for block in split_at(data, offsets) for event in parser.feed(block)]
    assert [*parsed, *parser.close()] == [SseEvent(text) for text in events]


def call_piece(index: int | None, identity: str = "", name: str = "", arguments: str = "") -> bytes:
    index_field = {} if index is None else {"index": index}
    function = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
    piece = {**index_field, **({"id": identity} if identity else {}), "function": function}
    delta = {"choices": [{"index": 0, "delta": {"tool_calls": [piece]}, "finish_reason": None}]}
    return b"data: " + json.dumps(delta).encode() + b"\n\n"


END_OF_STREAM = b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}\n\ndata: [DONE]\n\n'


@pytest.mark.parametrize(
    "calls",
    [
        [(0, "a", "f", '{"x"'), (0, "", "", ": 1}"), (1, "b", "g", "{}")],
        [(0, "a", "f", '{"x"'), (0, "a", "f", ": 1}"), (1, "b", "g", "{}")],
        [(None, "a", "f", '{"x"'), (None, "", "", ": 1}"), (None, "b", "g", "{}")],
        [(0, "a", "f", '{"x": 1}'), (0, "b", "g", "{}")],
        [(0, "a", "", ""), (0, "", "f", '{"x": 1}'), (1, "b", "g", "{}")],
        [(0, "a", "f", '{"x"'), (1, "b", "g", ""), (0, "", "", ": 1}"), (1, "", "", "{}")],
    ],
    ids=["as due", "id and name repeated", "no index", "every index 0", "name late", "interleaved"],
)
def test_streamed_tool_calls_are_separated_even_with_wrong_indexes(calls) -> None:
    answer = assemble(decode_blocks("openai", [*(call_piece(*block) for block in calls), END_OF_STREAM]))
    assert isinstance(answer, Answer)
    assert [(call.id, call.name, call.arguments) for call in answer.tool_calls] == [
        ("a", "f", '{"x": 1}'),
        ("b", "g", "{}"),
    ]


def test_stream_event_with_a_complete_message_is_an_answer() -> None:
    """Some hosts send the complete answer in one event, as `message` instead of `delta`."""
    event = {"choices": [{"index": 0, "message": {"content": "all"}, "finish_reason": "stop"}]}
    answer = assemble(decode_blocks("openai", [b"data: " + json.dumps(event).encode() + b"\n\n"]))
    assert isinstance(answer, Answer)
    assert answer.text == "all"
