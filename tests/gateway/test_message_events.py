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


def write(deltas: Iterable[Delta], finish: Finish | None = None) -> bytes:
    events = MessageEvents("m", ORIGIN)
    blocks = [events.write_delta(delta) for delta in deltas]
    return b"".join([*blocks, events.write_finish(finish or Finish("stop", Usage(5, 7)))])


def told(stream: bytes) -> list[tuple[str, dict[str, object]]]:
    found = []
    for block in stream.decode().strip().split("\n\n"):
        name, data = block.split("\n")
        value = json.loads(data.removeprefix("data: "))
        assert name == f"event: {value['type']}"
        found.append((value["type"], value))
    return found


def read(stream: bytes) -> list[object]:
    decoder = PROTOCOLS["anthropic"].decoder()
    return [*decoder.feed(stream), *decoder.close()]


def test_a_stream_of_words_has_anthropics_events():
    """Text is one block between one start and one end, and the finish reason has the usage."""
    names = [name for name, _ in told(write([Delta("Hel"), Delta("lo")]))]
    assert names == [
        *("message_start", "content_block_start", "content_block_delta", "content_block_delta"),
        *("content_block_stop", "message_delta", "message_stop"),
    ]


def test_thinking_is_signed_by_its_origin_and_stands_before_the_words():
    """The signature, marked with its origin, ends the thinking block; the text begins the next block."""
    events = told(write([Delta(reasoning="hm"), Delta(thoughts=(SIGNED,)), Delta("Yes")]))
    blocks = [value["content_block"]["type"] for name, value in events if name == "content_block_start"]
    deltas = [value["delta"]["type"] for name, value in events if name == "content_block_delta"]
    assert blocks == ["thinking", "text"]
    assert deltas == ["thinking_delta", "signature_delta", "text_delta"]
    signature = next(value["delta"]["signature"] for _, value in events if "signature" in value.get("delta", {}))
    assert signature == label_signature("sig", ORIGIN)


FOREIGN = ReasoningBlock(ThoughtForm.ENCRYPTED, "", "c2ln", dialect="google-gemini-v1")


def kinds_of(stream: bytes) -> list[object]:
    return [value["content_block"]["type"] for name, value in told(stream) if name == "content_block_start"]


def test_thinking_that_its_model_does_not_sign_ends_with_a_mark_of_ours():
    """Clients drop a block with an empty signature, so unsigned reasoning has a signature of ours."""
    events = told(write([Delta(reasoning="hm"), Delta("Yes")]))
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
def test_another_vendors_proof_waits_for_a_block_behind_it(after, kinds):
    assert kinds_of(write([Delta("Yes"), Delta(thoughts=(FOREIGN,)), *after])) == kinds


def test_a_stream_without_thinking_has_words_alone():
    """A call without thinking and tools has only text, since its client reads `content[0]`."""
    events = MessageEvents("m", ORIGIN, thinks=False)
    said = [Delta(reasoning="hm"), Delta(thoughts=(SIGNED, FOREIGN)), Delta("Yes")]
    assert kinds_of(b"".join(map(events.write_delta, said)) + events.write_finish(Finish("stop"))) == ["text"]


def test_calls_beside_each_other_are_told_one_after_the_other():
    """Pieces of a second call are held back until the first has ended."""
    pieces = [
        ToolCallDelta(0, "a", "add", '{"x"'),
        ToolCallDelta(1, "b", "sub", '{"y"'),
        ToolCallDelta(0, arguments=": 1}"),
        ToolCallDelta(1, arguments=": 2}"),
    ]
    found = read(write([Delta(tool_calls=(each,)) for each in pieces], Finish("tool_calls")))
    calls: dict[int, str] = {}
    for event in found:
        for piece in event.tool_calls if isinstance(event, Delta) else ():
            calls[piece.index] = calls.get(piece.index, "") + piece.arguments
    assert list(calls.values()) == ['{"x": 1}', '{"y": 2}']
    assert isinstance(found[-1], Finish)
    assert found[-1].finish_reason == "tool_calls"


@pytest.mark.parametrize("first", [ToolCallDelta(0, "a", "now"), ToolCallDelta(0, "a", "patch", "*** x", custom=True)])
def test_a_later_call_is_written_when_its_arguments_come(first: ToolCallDelta):
    """Neither missing arguments nor free text have a visible end, so such a call ends when the next one sends
    arguments.
    """
    events = MessageEvents("m")
    second = (ToolCallDelta(1, "b", "sub"), ToolCallDelta(1, arguments='{"y": 2}'))
    begun = b"".join(events.write_delta(Delta(tool_calls=(each,))) for each in (first, *second))
    assert kinds_of(begun) == ["tool_use", "tool_use"]
    assert b'{\\"y\\": 2}' in begun


@pytest.mark.parametrize("stop", ["END", None])
def test_the_stop_sequence_that_was_met_is_named(stop):
    last = dict(told(write([Delta("x")], Finish("stop", details=AnswerDetails("stop_sequence", stop_sequence=stop)))))
    ending = last["message_delta"]["delta"]
    assert (ending["stop_reason"], ending["stop_sequence"]) == (
        ("stop_sequence", "END") if stop else ("end_turn", None)
    )


words = st.text(min_size=1, max_size=10)
deltas = st.lists(
    st.one_of(
        words.map(lambda said: Delta(said)),
        words.map(lambda said: Delta(reasoning=said)),
        st.just(Delta(thoughts=(ReasoningBlock(ThoughtForm.ENCRYPTED, "", "ZGF0YQ", dialect="anthropic-claude-v1"),))),
    ),
    max_size=12,
)


@given(said=deltas)
def test_words_and_thoughts_arrive_whole_and_in_order(said):
    """In any order, the decoder finds all text, reasoning and signatures, and every block that starts also stops."""
    stream = write([*said, Delta("end")])
    found = [event for event in read(stream) if isinstance(event, Delta)]
    assert "".join(each.text for each in found) == "".join(each.text for each in said) + "end"
    assert "".join(each.reasoning for each in found) == "".join(each.reasoning for each in said)
    proofs = [thought.proof for each in found for thought in each.thoughts if thought.proof != UNSIGNED]
    assert len(proofs) == sum(len(each.thoughts) for each in said)
    names = [name for name, _ in told(stream)]
    assert names.count("content_block_start") == names.count("content_block_stop")


@pytest.mark.parametrize(("word", "reason"), [("stop", "end_turn"), ("length", "max_tokens"), ("odd", "end_turn")])
def test_the_end_has_its_reason_and_the_count(word, reason):
    """The last event has Anthropic's stop reason and the usage without cached tokens."""
    last = dict(told(write([Delta("x")], Finish(word, Usage(5, 7, cached_tokens=2)))))["message_delta"]
    assert (last["delta"]["stop_reason"], last["delta"]["stop_sequence"]) == (reason, None)
    assert (last["usage"]["input_tokens"], last["usage"]["output_tokens"]) == (3, 7)


def test_what_a_model_made_is_words_about_it():
    """A message cannot contain a generated image, so it has text that names the artifact."""
    events = MessageEvents("m")
    stream = events.write_media([Media(Kind.IMAGE, "image/png", artifact_id="a1")])
    assert "[image/png artifact:a1]" in stream.decode()
    assert events.write_sound(Media(Kind.AUDIO, "audio/wav", data="AA==")) == b""


def test_a_break_is_an_error_event():
    """An error has Anthropic's shape and our code."""
    stream = MessageEvents("m").write_error(GatewayError(502, "stream_broken", "The answer broke off."), "req_1")
    ((name, value),) = told(stream)
    assert (name, value["error"]["type"], value["error"]["code"]) == ("error", "api_error", "stream_broken")
