"""The gateway's responses, validated with the strict types and the stream accumulators of the vendors' own SDKs.

The patterns below list the keys that a vendor may send as null. The SDKs' Python types do not say which keys these are,
but their TypeScript types do. The patterns were taken from openai 6.49 (chat/completions, responses, shared) and
@anthropic-ai/sdk 1.13 (messages) on 2026-11-24.
"""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import anthropic.types
import openai.types.chat
import openai.types.responses
from anthropic.lib.streaming._messages import accumulate_event
from openai import omit
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.lib.streaming.responses._responses import ResponseStreamState
from pydantic import BaseModel, TypeAdapter

Json = Any
LOGPROB_BYTES = r"(.*\.)?logprobs\.content\[\](\.top_logprobs\[\])?\.bytes"
CHAT_NULLS = re.compile(
    rf"choices\[\]\.message\.(content|refusal)|choices\[\]\.(logprobs(\.content|\.refusal)?|finish_reason)|usage"
    rf"|{LOGPROB_BYTES}|error\.(code|param)"
)
RESPONSES_NULLS = re.compile(
    r"(response\.)?(error|incomplete_details|instructions|max_output_tokens|max_tool_calls|previous_response_id"
    r"|completed_at|reasoning\.(effort|summary)|safety_identifier|prompt_cache_key|text\.format\.description)|error\.(code|param)"
)
MESSAGES_NULLS = re.compile(
    r"((message|delta)\.)?(stop_reason|stop_sequence)|(delta\.)?stop_details\.(category|explanation)"
    r"|(content\[\]\.citations\[\]|delta\.citation)\.(title|document_title|file_id)"
)
CALLERS = re.compile(r"(response\.|message\.)?(content\[\]\.input|content_block\.input|metadata)\..*")
"""Paths to values that the caller or the model chooses."""


def nulls_in(value: Json, path: str = "") -> Iterator[str]:
    if value is None:
        yield path.removeprefix(".")
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from nulls_in(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from nulls_in(inner, f"{path}[]")


def check_nulls(value: Json, known: re.Pattern[str]) -> None:
    unexpected = {path for path in nulls_in(value) if not (known.fullmatch(path) or CALLERS.fullmatch(path))}
    assert not unexpected, (unexpected, value)


def events_in(stream: bytes) -> list[tuple[str, Json]]:
    events = []
    for block in stream.decode().strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        if fields["data"] != "[DONE]":
            events.append((fields.get("event", ""), json.loads(fields["data"])))
    return events


def validate_strictly(kind: Any, value: Json) -> Any:
    """Convert the value to this SDK type and return it. Raise pydantic's `ValidationError` if it does not fit."""
    return _adapter(kind).validate_json(json.dumps(value), strict=True)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def members_by_type(union: Any) -> Mapping[str, Any]:
    """Map each `type` in a union of event types to its class."""
    members: dict[str, Any] = {}
    for member in typing.get_args(union):
        if isinstance(member, type) and issubclass(member, BaseModel):
            members |= dict.fromkeys(typing.get_args(member.model_fields["type"].annotation), member)
        else:
            members |= members_by_type(member)
    return members


RESPONSE_EVENTS = members_by_type(openai.types.responses.ResponseStreamEvent)
MESSAGE_EVENTS = members_by_type(anthropic.types.RawMessageStreamEvent)


def read_chunks(stream: bytes) -> str:
    state = ChatCompletionStreamState()
    for _, value in events_in(stream):
        check_nulls(value, CHAT_NULLS)
        if value.keys() == {"error"}:
            return ""
        chunk = validate_strictly(openai.types.chat.ChatCompletionChunk, value)
        try:
            state.handle_chunk(chunk)
        except (openai.ContentFilterFinishReasonError, openai.LengthFinishReasonError):
            # The SDK raises these exceptions for finish reasons that are valid in a stream.
            continue
    return state.current_completion_snapshot.choices[0].message.content or ""


def read_response_events(stream: bytes) -> str:
    state, text = ResponseStreamState(input_tools=omit, text_format=omit), ""
    for name, value in events_in(stream):
        assert name == value["type"]
        check_nulls(_without_count(value), RESPONSES_NULLS)
        event = validate_strictly(RESPONSE_EVENTS[name], value)
        state.handle_event(event)
        if name in ("response.completed", "response.incomplete"):
            text = event.response.output_text
    return text


def _without_count(value: Json) -> Json:
    """Return the event without `usage`, which is null while the response is in progress and after a failure."""
    if value["type"] not in ("response.created", "response.in_progress", "response.failed"):
        return value
    return {**value, "response": {name: item for name, item in value["response"].items() if name != "usage"}}


def read_message_events(stream: bytes) -> str:
    message = accumulate_message(stream)
    return "".join(block.text for block in message.content if block.type == "text") if message else ""


def accumulate_message(stream: bytes) -> Any:
    """Return the message that the SDK accumulates from a stream, or None if the stream broke off."""
    snapshot: Any = None
    buffers: dict[int, bytes] = {}
    for name, value in events_in(stream):
        check_nulls(value, MESSAGES_NULLS)
        if name == "error":
            validate_strictly(anthropic.types.ErrorResponse, value)
            return None
        assert name == value["type"]
        event = validate_strictly(MESSAGE_EVENTS[name], value)
        try:
            snapshot = accumulate_event(event=event, current_snapshot=snapshot, json_bufs=buffers)
        except ValueError as error:
            # A model may write arguments that are not valid JSON. The gateway passes them on unchanged.
            if "Unable to parse tool parameter JSON" not in str(error):
                raise
    return snapshot


@dataclass(frozen=True)
class SdkApi:
    """How an SDK reads one API: the type of a response, its nullable keys, and a function that reads a stream."""

    whole: Any
    nulls: re.Pattern[str]
    read: Callable[[bytes], str]


SDK_APIS: Mapping[str, SdkApi] = {
    "chat completions": SdkApi(openai.types.chat.ChatCompletion, CHAT_NULLS, read_chunks),
    "messages": SdkApi(anthropic.types.Message, MESSAGES_NULLS, read_message_events),
    "responses": SdkApi(openai.types.responses.Response, RESPONSES_NULLS, read_response_events),
}


def check_whole(api: str, value: Json) -> Any:
    check_nulls(value, SDK_APIS[api].nulls)
    return validate_strictly(SDK_APIS[api].whole, value)
