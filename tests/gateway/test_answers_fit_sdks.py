"""Whatever a provider sends, the vendors' own SDKs accept each chat API's response."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import anthropic.types
import openai.types
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capabilities.core.message import ChatRequest, VendorItem
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.protocols.stream import repair_outcome
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Answer, Delta, Failure, Finish, Media, StreamEvent, Supplement
from routing_admin.gateway.chat.rendering import Chunks, completion_json
from routing_admin.gateway.chat_api import AnswerEvents, ChatCall
from routing_admin.gateway.errors import GatewayError, error_body
from routing_admin.gateway.messages.events import MessageEvents
from routing_admin.gateway.messages.rendering import error_json, message_json
from routing_admin.gateway.responses.events import ResponseEvents
from routing_admin.gateway.responses.rendering import ResponseHead, response_json
from tests.gateway.sdk_types import (
    CHAT_NULLS,
    MESSAGES_NULLS,
    SDK_APIS,
    check_nulls,
    check_whole,
    members_by_type,
    validate_strictly,
)
from tests.gateway.test_interleaved_streams import PROVIDERS, Call, Step, mixed_answers
from tests.gateway.test_odd_answers import NAMES, VENDORS, bodies, streams
from tests.lab.recordings import RECORDINGS, Recording
from tests.lab.response_recordings import RESPONSE_RECORDINGS

ORIGIN = "0123456789ab"
CALL = ChatCall(ChatRequest((), extra={"thinking": {"type": "enabled", "budget_tokens": 1024}}), "m")
"""A request that asks for the model's reasoning."""
WHOLE: Mapping[str, Callable[[Answer], dict[str, Any]]] = {
    "chat completions": lambda answer: completion_json(answer, "m", ORIGIN),
    "messages": lambda answer: message_json(answer, CALL, "m", ORIGIN),
    "responses": lambda answer: response_json(answer, CALL, "m", ORIGIN),
}
STREAMED: Mapping[str, Callable[[], AnswerEvents]] = {
    "chat completions": lambda: Chunks("m", include_usage=True, origin=ORIGIN),
    "messages": lambda: MessageEvents("m", ORIGIN),
    "responses": lambda: ResponseEvents(ResponseHead("m", CALL.chat), ORIGIN),
}
FEW = settings(max_examples=max(settings().max_examples // 8, 20))
"""Generate fewer examples than usual, because validating each one with an SDK is slow."""
KNOWN_KINDS = members_by_type(anthropic.types.ContentBlock) | members_by_type(openai.types.responses.ResponseOutputItem)
each_api = pytest.mark.parametrize("api", SDK_APIS)


def recording(name: str, protocol: str) -> Recording:
    return RESPONSE_RECORDINGS[name] if protocol == "openai-responses" else RECORDINGS[name][protocol]


def decode_whole(protocol: str, body: bytes) -> Answer | Failure:
    return repair_outcome(PROTOCOLS[protocol].decode(200, {}, body), body)


def encode(events: AnswerEvents, decoded_events: list[StreamEvent]) -> bytes:
    out, recordings = b"", list[Media]()
    for event in decoded_events:
        if isinstance(event, Delta):
            out += events.write_delta(event)
        elif isinstance(event, Supplement):
            audio = [media for media in event.media if media.kind is Kind.AUDIO]
            other_media = [media for media in event.media if media.kind is not Kind.AUDIO]
            out += b"".join(map(events.write_sound, audio)) + (events.write_media(other_media) if other_media else b"")
            out += events.write_annotations(event.annotations) if event.annotations else b""
            recordings += audio
        elif isinstance(event, Finish):
            out += b"".join(events.write_sound(sound, reference=True) for sound in recordings) + events.write_finish(
                event
            )
        else:
            out += events.write_error(GatewayError(502, event.fault.value, event.message), "req_1")
    return out


def decode(protocol: str, body: bytes) -> list[StreamEvent]:
    decoder = PROTOCOLS[protocol].decoder()
    return [*decoder.feed(body), *decoder.close()]


def is_newer(item: VendorItem) -> bool:
    """Return whether a block or item has a type that the vendor's SDK does not know yet. Such blocks pass unchanged."""
    value = item.value
    block = value.get("content_block") or value.get("item") or value
    return block.get("type") not in KNOWN_KINDS and "type" in block and item.name == block["type"]


def without_newer(events: list[StreamEvent]) -> list[StreamEvent]:
    """Return the stream. If one of its blocks is newer than the SDK, leave out all vendor-specific events."""
    if not any(is_newer(item) for event in events if isinstance(event, Delta) for item in event.vendor):
        return events
    return [event._replace(vendor=()) if isinstance(event, Delta) else event for event in events]


def sse_body(events: list[dict[str, Any]]) -> bytes:
    return b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events)


@each_api
@pytest.mark.parametrize("protocol", VENDORS)
@pytest.mark.parametrize("name", NAMES)
def test_recorded_answer_is_valid_for_the_sdk(name: str, protocol: str, api: str) -> None:
    answer = decode_whole(protocol, json.dumps(recording(name, protocol).whole).encode())
    assert isinstance(answer, Answer)
    check_whole(api, WHOLE[api](answer))
    stream = encode(STREAMED[api](), decode(protocol, sse_body(recording(name, protocol).events)))
    text = SDK_APIS[api].read(stream)
    assert text.startswith(answer.text)


@each_api
@FEW
@given(case=bodies())
def test_complete_answer_with_unusual_values_is_valid_for_the_sdk(api: str, case: tuple[str, bytes]) -> None:
    answer = decode_whole(*case)
    if isinstance(answer, Answer):
        answer = replace(answer, vendor=tuple(item for item in answer.vendor if not is_newer(item)))
        check_whole(api, WHOLE[api](answer))


@each_api
@FEW
@given(case=streams())
def test_stream_with_unusual_values_is_valid_for_the_sdk(api: str, case: tuple[str, bytes]) -> None:
    if stream := encode(STREAMED[api](), without_newer(decode(*case))):
        SDK_APIS[api].read(stream)


@each_api
@pytest.mark.parametrize("provider", PROVIDERS)
@FEW
@given(pieces=mixed_answers())
def test_any_mixture_of_text_reasoning_and_calls_is_valid_for_the_sdk(
    provider: str, api: str, pieces: tuple[list[Call], list[Step]]
) -> None:
    calls, steps = pieces
    steps = [*steps, ("text", 0, "end")]
    protocol, send = PROVIDERS[provider]
    stream = encode(STREAMED[api](), decode(protocol, sse_body(list(send(calls, steps)))))
    assert SDK_APIS[api].read(stream).endswith("end")


ERRORS = st.builds(
    GatewayError,
    st.sampled_from([400, 401, 402, 403, 404, 408, 409, 422, 429, 500, 502, 503, 504, 529]),
    st.sampled_from(["invalid_value", "upstream_400", "all_providers_failed", "stream_broken"]),
    st.text(max_size=9),
    st.none() | st.just("messages[0]"),
)


@FEW
@given(error=ERRORS)
def test_error_is_valid_for_the_sdk(error: GatewayError) -> None:
    chat = error_body(error, "req_1")
    check_nulls(chat, CHAT_NULLS)
    validate_strictly(openai.types.ErrorObject, chat["error"])
    message = error_json(error, "req_1")
    check_nulls(message, MESSAGES_NULLS)
    validate_strictly(anthropic.types.ErrorResponse, message)
    for api, make in STREAMED.items():
        events = make()
        SDK_APIS[api].read(events.write_delta(Delta("So")) + events.write_error(error, "req_1"))
