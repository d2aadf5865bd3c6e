"""Encode requests to the embedded provider. They are only shown in previews and never sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from capabilities.core.message import ChatRequest, Message, NativePart, Part, TextPart, ToolCall
from capabilities.core.protocols.echo import replies
from capabilities.core.protocols.echo.embedded import answer
from capabilities.core.protocols.echo.stream import BufferedDecoder
from capabilities.core.protocols.media import bare_base64
from capabilities.core.protocols.parameters import dropped_fields, list_unsent
from capabilities.core.providers.origins import EMBEDDED
from capabilities.core.wire import Answer, Failure, StreamDecoder, Target, UpstreamRequest


@dataclass(frozen=True)
class Echo:
    """The protocol `echo`. Its payload is only for previews, because `embedded.answer` produces the answer.

    `reply` encodes the answer as bytes, and `decode` and `decoder` read them, so that the protocol can be used like any
    other.
    """

    name: str = "echo"

    def encode(self, chat: ChatRequest, target: Target, *, stream: bool) -> UpstreamRequest:
        messages = [_message_json(message) for message in chat.messages]
        payload: dict[str, Any] = {"model": target.model, "messages": messages}
        parameters = {"temperature": chat.temperature, "max_tokens": chat.max_tokens, "top_p": chat.top_p}
        payload |= {name: value for name, value in parameters.items() if value is not None}
        if chat.tools:
            payload["tools"] = [tool.name for tool in chat.tools]
        if stream:
            payload["stream"] = True
        return UpstreamRequest(EMBEDDED, {}, payload, dropped_params=_list_dropped(chat))

    def reply(self, chat: ChatRequest, model: str) -> tuple[int, bytes]:
        return replies.encode_reply(answer(chat, model))

    def decode(self, status: int, headers: Mapping[str, str], body: bytes) -> Answer | Failure:
        return replies.decode(status, body)

    def decoder(self) -> StreamDecoder:
        return BufferedDecoder()


def _list_dropped(chat: ChatRequest) -> tuple[str, ...]:
    # The description of the request does not mention these parameters.
    unheard = {
        "stop": bool(chat.stop),
        "response_format": chat.response_format is not None,
        "tool_choice": bool(chat.tools and (chat.tool_choice or chat.tool_name)),
        "parallel_tool_calls": bool(chat.tools) and chat.parallel_tool_calls is False,
    }
    names = tuple(name for name, is_set in unheard.items() if is_set)
    return (*names, *list_unsent(chat, ()), *dropped_fields(chat, "echo"))


def _message_json(message: Message) -> dict[str, Any]:
    out: dict[str, Any] = {"role": message.role.value, "content": [_part_json(part) for part in message.parts]}
    if message.tool_calls:
        out["tool_calls"] = [_call_json(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        out["tool_call_id"] = message.tool_call_id
    return out


def _call_json(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "arguments": call.arguments}


def _part_json(part: Part) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    name_field = {"filename": part.filename} if part.filename else {}
    if isinstance(part, NativePart) and part.blob is not None:
        return {"type": part.kind.value, "mimeType": part.mime_type, **name_field, "data": bare_base64(part)}
    return {"type": part.kind.value, "mimeType": part.mime_type, **name_field, "url": part.url}
