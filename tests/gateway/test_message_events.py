"""Streams of the Messages API, read by the decoder for Anthropic's protocol."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.protocols import PROTOCOLS
from capabilities.core.thoughts import ReasoningBlock, ThoughtForm
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import AnswerDetails, Delta, Finish, Media, ToolCallDelta, Usage
from routing_admin.gateway.errors import GatewayError
from routing_admin.gateway.messages.events import MessageEvents
from routing_admin.gateway.messages.thinking_blocks import UNSIGNED
from routing_admin.gateway.reasoning_signatures import label_signature

ORIGIN = "0123456789ab"
SIGNED = ReasoningBlock(ThoughtForm.TEXT, "hm", "sig", dialect="anthropic-claude-v1")


def encode_stream(deltas: Iterable[Delta], finish: Finish | None = None) -> bytes:
    events = MessageEvents("m", ORIGIN)
    blocks = [events.write_delta(delta) for delta in deltas]
    return b"".join([*blocks, events.write_finish(finish or Finish("stop", Usage(5, 7)))])


def read_events(stream: bytes) -> list[tuple[str, dict[str, object]]]:
    events = []
    for block in stream.decode().strip().split("\n\n"):
        name, data = block.split("\n")
        value = json.loads(data.removeprefix("data: "))
        assert name == f"event: {value['type']}"
        events.append((value["type"], value))
    return events


def decode(stream: bytes) -> list[object]:
    decoder = PROTOCOLS["anthropic"].decoder()
    return [*decoder.feed(stream), *decoder.close()]


def test_text_stream_has_anthropics_events():
    names = [name for name, _ in read_events(encode_stream([Delta("Hel"), Delta("lo")]))]
    assert names == [
        *("message_start", "content_block_start", "content_block_delta", "content_block_delta"),
        *("content_block_stop", "message_delta", "message_stop"),
    ]


def test_thinking_block_is_signed_and_precedes_the_text():
    events = read_events(encode_stream([Delta(reasoning="hm"), Delta(thoughts=(SIGNED,)), Delta("Yes")]))
    blocks = [value["content_block"]["type"] for name, value in events if name == "content_block_start"]
    deltas = [value["delta"]["type"] for name, value in events if name == "content_block_delta"]
    assert blocks == ["thinking", "text"]
    assert deltas == ["thinking_delta", "signature_delta", "text_delta"]
    signature = next(value["delta"]["signature"] for _, value in events if "signature" in value.get("delta", {}))
    assert signature == label_signature("sig", ORIGIN)


FOREIGN = ReasoningBlock(ThoughtForm.ENCRYPTED, "", "c2ln", dialect="google-gemini-v1")


def block_kinds(stream: bytes) -> list[object]:
    return [value["content_block"]["type"] for name, value in read_events(stream) if name == "content_block_start"]


def test_unsigned_thinking_gets_the_gateways_own_signature():
    """Clients drop a thinking block with an empty signature."""
    events = read_events(encode_stream([Delta(reasoning="hm"), Delta("Yes")]))
    signed = [value["delta"]["signature"] for _, value in events if "signature" in value.get("delta", {})]
    assert signed == [UNSIGNED]


@pytest.mark.parametrize(
    ("after", "kinds"),
    [
        ([], ["text"]),
        ([Delta(" more")], ["text", "redacted_thinking", "text"]),
        ([Delta(tool_calls=(ToolCallDelta(0, "a", "add", "{}"),))], ["text", "redacted_thinking", "tool_use"]),
    ],
)
def test_redacted_thinking_of_another_vendor_is_never_the_last_block(after, kinds):
    assert block_kinds(encode_stream([Delta("Yes"), Delta(thoughts=(FOREIGN,)), *after])) == kinds


def test_stream_has_only_text_unless_thinking_or_tools_are_requested():
    """A client that requests neither of them reads `content[0]`."""
    events = MessageEvents("m", ORIGIN, thinks=False)
    deltas_sent = [Delta(reasoning="hm"), Delta(thoughts=(SIGNED, FOREIGN)), Delta("Yes")]
    assert block_kinds(b"".join(map(events.write_delta, deltas_sent)) + events.write_finish(Finish("stop"))) == ["text"]


def test_parallel_tool_calls_are_written_one_after_another():
    pieces = [
        ToolCallDelta(0, "a", "add", '{"x"'),
        ToolCallDelta(1, "b", "sub", '{"y"'),
        ToolCallDelta(0, arguments=": 1}"),
        ToolCallDelta(1, arguments=": 2}"),
    ]
    events = decode(encode_stream([Delta(tool_calls=(piece,)) for piece in pieces], Finish("tool_calls")))
    calls: dict[int, str] = {}
    for event in events:
        for piece in event.tool_calls if isinstance(event, Delta) else ():
            calls[piece.index] = calls.get(piece.index, "") + piece.arguments
    assert list(calls.values()) == ['{"x": 1}', '{"y": 2}']
    assert isinstance(events[-1], Finish)
    assert events[-1].finish_reason == "tool_calls"


@pytest.mark.parametrize("first", [ToolCallDelta(0, "a", "now"), ToolCallDelta(0, "a", "patch", "*** x", custom=True)])
def test_tool_call_without_a_recognizable_end_ends_when_the_next_call_starts(first: ToolCallDelta):
    """A tool call without arguments, or with free text as input, has no recognizable end."""
    events = MessageEvents("m")
    second = (ToolCallDelta(1, "b", "sub"), ToolCallDelta(1, arguments='{"y": 2}'))
    begun = b"".join(events.write_delta(Delta(tool_calls=(piece,))) for piece in (first, *second))
    assert block_kinds(begun) == ["tool_use", "tool_use"]
    assert b'{\\"y\\": 2}' in begun


@pytest.mark.parametrize("stop", ["END", None])
def test_last_event_names_the_matched_stop_sequence(stop):
    last = dict(
        read_events(
            encode_stream([Delta("x")], Finish("stop", details=AnswerDetails("stop_sequence", stop_sequence=stop)))
        )
    )
    ending = last["message_delta"]["delta"]
    assert (ending["stop_reason"], ending["stop_sequence"]) == (
        ("stop_sequence", "END") if stop else ("end_turn", None)
    )


texts = st.text(min_size=1, max_size=10)
deltas = st.lists(
    st.one_of(
        texts.map(lambda text: Delta(text)),
        texts.map(lambda text: Delta(reasoning=text)),
        st.just(Delta(thoughts=(ReasoningBlock(ThoughtForm.ENCRYPTED, "", "ZGF0YQ", dialect="anthropic-claude-v1"),))),
    ),
    max_size=12,
)


@given(sent=deltas)
def test_text_and_reasoning_arrive_complete_and_in_order(sent):
    stream = encode_stream([*sent, Delta("end")])
    received = [event for event in decode(stream) if isinstance(event, Delta)]
    assert "".join(delta.text for delta in received) == "".join(delta.text for delta in sent) + "end"
    assert "".join(delta.reasoning for delta in received) == "".join(delta.reasoning for delta in sent)
    proofs = [thought.proof for delta in received for thought in delta.thoughts if thought.proof != UNSIGNED]
    assert len(proofs) == sum(len(delta.thoughts) for delta in sent)
    names = [name for name, _ in read_events(stream)]
    assert names.count("content_block_start") == names.count("content_block_stop")


@pytest.mark.parametrize(
    ("finish_reason", "reason"), [("stop", "end_turn"), ("length", "max_tokens"), ("odd", "end_turn")]
)
def test_last_event_has_the_stop_reason_and_usage(finish_reason, reason):
    """In the Messages API, the input tokens exclude cached tokens."""
    last = dict(read_events(encode_stream([Delta("x")], Finish(finish_reason, Usage(5, 7, cached_tokens=2)))))[
        "message_delta"
    ]
    assert (last["delta"]["stop_reason"], last["delta"]["stop_sequence"]) == (reason, None)
    assert (last["usage"]["input_tokens"], last["usage"]["output_tokens"]) == (3, 7)


def test_generated_image_becomes_text_with_its_artifact_reference():
    """A message cannot contain a generated image, so a text block has the reference to the image's artifact."""
    events = MessageEvents("m")
    stream = events.write_media([Media(Kind.IMAGE, "image/png", artifact_id="a1")])
    assert "[image/png artifact:a1]" in stream.decode()
    assert events.write_sound(Media(Kind.AUDIO, "audio/wav", data="AA==")) == b""


def test_broken_stream_ends_with_an_error_event():
    stream = MessageEvents("m").write_error(GatewayError(502, "stream_broken", "The answer broke off."), "req_1")
    ((name, value),) = read_events(stream)
    assert (name, value["error"]["type"], value["error"]["code"]) == ("error", "api_error", "stream_broken")
