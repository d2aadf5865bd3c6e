"""Whatever values a provider sends, its response is decoded as an answer or a failure that can be encoded."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.message import ChatRequest
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.protocols.stream import repair_outcome
from capabilities.core.wire import Answer, Delta, Failure, Finish, StreamEvent, Supplement
from routing_admin.gateway.chat.rendering import Chunks, completion_json
from routing_admin.gateway.chat_api import AnswerEvents, ChatCall
from routing_admin.gateway.gemini.events import GeminiChunks
from routing_admin.gateway.gemini.rendering import response_json as gemini_json
from routing_admin.gateway.messages.events import MessageEvents
from routing_admin.gateway.messages.rendering import message_json
from routing_admin.gateway.responses.events import ResponseEvents
from routing_admin.gateway.responses.rendering import ResponseHead, response_json
from tests.lab.recordings import RECORDINGS, Recording
from tests.lab.response_recordings import RESPONSE_RECORDINGS

NAMES = sorted(set(RECORDINGS) - {"large_image"})
ORIGIN = "0123456789ab"
ODD = st.sampled_from(
    [
        *(None, True, 0, -1, 1.5, 2**70, -(2**70), 1e300, float("nan")),
        *("", "x", "\x00", "\ud83d", "\ude00"),
        *([], ["x"], [{}], [None], [[[]]], {}, {"type": "x"}, {"a": [1]}),
    ]
)


def paths_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    pairs: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield from paths_in(inner, (*path, key))


def spoil(draw: st.DrawFn, value: Any) -> Any:
    """Return a copy of the value with unusual values in up to three places."""
    value = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 3))):
        *path_to_holder, last = draw(st.sampled_from([*paths_in(value)][1:])) if value else [None]
        if last is None:
            return value
        holder = value
        for step in path_to_holder:
            holder = holder[step]
        holder[last] = copy.deepcopy(draw(ODD))
    return value


def recording(draw: st.DrawFn, protocol: str) -> Recording:
    name = draw(st.sampled_from(NAMES))
    return RESPONSE_RECORDINGS[name] if protocol == "openai-responses" else RECORDINGS[name][protocol]


@st.composite
def bodies(draw: st.DrawFn) -> tuple[str, bytes]:
    protocol = draw(st.sampled_from(VENDORS))
    return protocol, json.dumps(spoil(draw, recording(draw, protocol).whole)).encode()


@st.composite
def streams(draw: st.DrawFn) -> tuple[str, bytes]:
    protocol = draw(st.sampled_from(VENDORS))
    events = spoil(draw, recording(draw, protocol).events)
    return protocol, b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events)


VENDORS = ("openai", "openai-responses", "anthropic", "gemini")
CALL = ChatCall(ChatRequest(()), "m")
EVENTS: list[Callable[[], AnswerEvents]] = [
    lambda: Chunks("m", include_usage=True, origin=ORIGIN),
    lambda: MessageEvents("m", ORIGIN),
    lambda: ResponseEvents(ResponseHead("m", CALL.chat), ORIGIN),
    lambda: GeminiChunks(model="m", origin=ORIGIN, shows_thoughts=True),
]


@given(case=bodies())
def test_complete_answer_with_unusual_values_is_decoded_and_encoded(case: tuple[str, bytes]) -> None:
    protocol, body = case
    answer = repair_outcome(PROTOCOLS[protocol].decode(200, {}, body), body)
    if isinstance(answer, Failure):
        assert str(answer.message).encode()
        return
    for value in (
        completion_json(answer, "m", ORIGIN),
        message_json(answer, CALL, "m", ORIGIN),
        response_json(answer, CALL, "m", ORIGIN),
        gemini_json(answer, CALL, "m", ORIGIN),
    ):
        assert orjson.dumps(value)


@given(case=streams())
def test_stream_with_unusual_values_is_decoded_and_encoded(case: tuple[str, bytes]) -> None:
    protocol, body = case
    decoder = PROTOCOLS[protocol].decoder()
    events = [*decoder.feed(body), *decoder.close()]
    for make in EVENTS:
        encoder = make()
        assert all(isinstance(encode_event(encoder, event), bytes) for event in events)


def encode_event(events: AnswerEvents, event: StreamEvent) -> bytes:
    """Encode an event as an API would, without stored media. A failure is encoded as its message."""
    if isinstance(event, Delta):
        return events.write_delta(event)
    if isinstance(event, Supplement):
        return events.write_annotations(event.annotations) if event.annotations else b""
    return events.write_finish(event) if isinstance(event, Finish) else str(event.message).encode()


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**400])
def test_number_beyond_64_bits_becomes_a_float(number: int) -> None:
    """No encoder accepts such a number as an integer.

    The response also contains a lone surrogate, which only the slower of the two JSON parsers can read.
    """
    part = {"functionCall": {"name": "f", "args": {"n": number, "half": "\ud83d"}}}
    body = json.dumps({"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]}).encode()
    answer = repair_outcome(PROTOCOLS["gemini"].decode(200, {}, body), body)
    assert isinstance(answer, Answer)
    assert orjson.dumps(message_json(answer, CALL, "m", ORIGIN))
