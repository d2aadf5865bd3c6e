"""Anthropic Messages."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from capabilities.core.message import ChatRequest, Message, NativePart, Part, Role, TextPart, Tool
from capabilities.core.protocols.anthropic import replies
from capabilities.core.protocols.anthropic.stream import BlockReader
from capabilities.core.protocols.arguments import object_of
from capabilities.core.protocols.media import bare_base64, natives_of, placeholder, words_of
from capabilities.core.protocols.payload import headers_for, merge, split_params
from capabilities.core.protocols.schema import closed, instruction, schema_of, wants_json
from capabilities.core.protocols.stream import EventStream
from capabilities.core.protocols.turns import Conversation, leading_system
from capabilities.core.protocols.urls import call_url
from capabilities.core.providers.presets import quirks_for
from capabilities.core.providers.quirks import quirk, unwanted_params
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Answer, Failure, StreamDecoder, Target, UpstreamRequest

CALL = "/messages"
MAX_TOKENS = 4096
"""The longest answer where neither the request nor the model's row names one; the field is required."""
EFFORTS = frozenset({"low", "medium", "high", "xhigh", "max"})
TITLE_CHARACTERS = 500
OPENING = {"type": "text", "text": "."}
PDF = "application/pdf"
_BAD_ID = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True)
class Anthropic:
    """The protocol `anthropic`; `clock` as in `openai`."""

    name: str = "anthropic"
    clock: Callable[[], float] = time.time

    def encode(self, chat: ChatRequest, target: Target, *, stream: bool) -> UpstreamRequest:
        """The call for a derived request."""
        ways = quirks_for(target.endpoint, target.quirks)
        parameters, dropped = _parameters(chat, target, ways)
        system, messages = _conversation(chat, ways)
        payload = {"model": target.model, **parameters, **system, "messages": messages}
        if stream:
            payload["stream"] = True
        version = str(quirk(ways, "anthropic_version", "anthropic"))
        headers = headers_for(target, "x-api-key", stream=stream, anthropic_version=version)
        body = merge(payload, target.extra_body)
        return UpstreamRequest(call_url(target.endpoint, CALL), headers, body, dropped_params=dropped)

    def decode(self, status: int, headers: Mapping[str, str], body: bytes) -> Answer | Failure:
        """The outcome of a whole response."""
        return replies.decode(status, headers, body, self.clock())

    def decoder(self) -> StreamDecoder:
        """A fresh decoder for one streamed response with status 200."""
        return EventStream(BlockReader(), lambda body: self.decode(200, {}, body))


def _parameters(chat: ChatRequest, target: Target, ways: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Everything but words, and the names of what this protocol or this provider does not take."""
    refused = unwanted_params(ways, "anthropic")
    given, lost = split_params(_options(chat, ways, refused), refused)
    given["max_tokens"] = chat.max_tokens or target.max_output_tokens or MAX_TOKENS
    return given, (*lost, *_list_left_out(chat, ways, refused))


def _options(chat: ChatRequest, ways: Mapping[str, Any], refused: set[str]) -> dict[str, Any]:
    stops = [word for word in chat.stop if word.strip()]
    given: dict[str, Any] = {"stop_sequences": stops} if stops and "stop" not in refused else {}
    if quirk(ways, "sampling", "anthropic"):
        given |= _sampling(chat)
    if chat.tools:
        given |= {"tools": [_tool(tool) for tool in chat.tools], "tool_choice": _choice(chat)}
    output = _output(chat, ways, refused)
    given |= {"output_config": output or None}
    return {name: value for name, value in given.items() if value is not None}


def _sampling(chat: ChatRequest) -> dict[str, Any]:
    """Temperature within 0 … 1; newer models refuse top_p beside it."""
    if chat.temperature is not None:
        return {"temperature": min(max(chat.temperature, 0.0), 1.0)}
    top = {"top_p": chat.top_p} if chat.top_p is not None else {}
    return {**top, **({"top_k": chat.extra["top_k"]} if chat.extra.get("top_k") is not None else {})}


def _output(chat: ChatRequest, ways: Mapping[str, Any], refused: set[str]) -> dict[str, Any]:
    output: dict[str, Any] = {}
    schema = schema_of(chat.response_format)
    if schema is not None and _takes_schema(ways):
        output["format"] = {"type": "json_schema", "schema": closed(schema)}
    if chat.extra.get("reasoning_effort") in EFFORTS and not refused & {"reasoning_effort", "effort"}:
        output["effort"] = chat.extra["reasoning_effort"]
    return output


def _takes_schema(ways: Mapping[str, Any]) -> bool:
    return bool(quirk(ways, "structured", "anthropic") == "json_schema")


def _list_left_out(chat: ChatRequest, ways: Mapping[str, Any], refused: set[str]) -> tuple[str, ...]:
    """The parameters that do not reach the model."""
    lost: list[str] = []
    sampling = quirk(ways, "sampling", "anthropic")
    if chat.temperature is not None and not sampling:
        lost.append("temperature")
    if chat.top_p is not None and (not sampling or chat.temperature is not None):
        lost.append("top_p")
    if chat.stop and ("stop" in refused or any(not word.strip() for word in chat.stop)):
        lost.append("stop")
    for name, value in chat.extra.items():
        said = (name == "reasoning_effort" and value in EFFORTS and not refused & {name, "effort"}) or (
            name == "top_k" and sampling and chat.temperature is None
        )
        if value is not None and not said and not (name == "n" and value == 1):
            lost.append(name)
    return tuple(lost)


def _tool(tool: Tool) -> dict[str, Any]:
    out: dict[str, Any] = {"name": tool.name}
    if tool.description:
        out["description"] = tool.description
    out["input_schema"] = {"type": "object", "properties": {}, **tool.parameters}
    return {**out, "strict": tool.strict} if tool.strict is not None else out


def _choice(chat: ChatRequest) -> dict[str, Any] | None:
    """The choice among tools, with the refusal of parallel calls inside it."""
    kinds = {"none": "none", "auto": "auto", "required": "any"}
    choice: dict[str, Any] | None = {"type": kinds[chat.tool_choice]} if chat.tool_choice in kinds else None
    if chat.tool_name:
        choice = {"type": "tool", "name": chat.tool_name}
    if chat.parallel_tool_calls is False and (choice is None or choice["type"] != "none"):
        choice = {**(choice or {"type": "auto"}), "disable_parallel_tool_use": True}
    return choice


def _conversation(chat: ChatRequest, ways: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The system field and the turns."""
    system, rest = leading_system(chat.messages)
    schema_sent = schema_of(chat.response_format) is not None and _takes_schema(ways)
    if wants_json(chat.response_format) and not schema_sent:
        system = [*system, instruction(chat.response_format)]
    talk, ids = Conversation("user", "assistant"), _Ids()
    for message in rest:
        _add(message, talk, ids, ways)
    turns = [{"role": turn.speaker, "content": turn.content} for turn in talk.turns(OPENING)]
    return ({"system": "\n\n".join(system)} if system else {}), turns


class _Ids:
    """Tool call ids in the letters that are allowed, the same for the call and its result."""

    def __init__(self) -> None:
        self._sent: dict[str, str] = {}

    def of(self, original: str) -> str:
        """The id to send for this one."""
        if original not in self._sent:
            plain = _BAD_ID.sub("_", original) or "call"
            used = set(self._sent.values())
            number = 2
            name = plain
            while name in used:
                name, number = f"{plain}_{number}", number + 1
            self._sent[original] = name
        return self._sent[original]

    def knows(self, original: str | None) -> bool:
        """Whether a call with that id came before."""
        return original in self._sent


def _add(message: Message, talk: Conversation, ids: _Ids, ways: Mapping[str, Any]) -> None:
    if message.role is Role.ASSISTANT:
        talk.model(_assistant(message, ids))
        talk.postpone([_native(part) for part in natives_of(message)])
    elif message.role is Role.TOOL and ids.knows(message.tool_call_id):
        _result(message, talk, ids, ways)
    elif message.role is Role.TOOL:
        talk.user([{"type": "text", "text": f"Tool result: {message.text}"}, *_media(message)])
    elif message.role is Role.SYSTEM:
        talk.postpone(_blocks(message.parts))  # in the middle of a talk there is no system role: it leads the next turn
    else:
        talk.user(_blocks(message.parts))


def _assistant(message: Message, ids: _Ids) -> list[dict[str, Any]]:
    """Signed thoughts, words, calls; unsigned thoughts are another vendor's and would be refused."""
    blocks: list[dict[str, Any]] = []
    signature = next((call.signature for call in message.tool_calls if call.signature), "") or ""
    mark = replies.SIGNED
    if message.reasoning and signature.startswith(mark):
        signed = signature.removeprefix(mark)
        blocks.append({"type": "thinking", "thinking": message.reasoning, "signature": signed})
    if text := words_of(message.parts).rstrip():
        blocks.append({"type": "text", "text": text})
    for call in message.tool_calls:
        arguments = object_of(call.arguments)
        blocks.append({"type": "tool_use", "id": ids.of(call.id), "name": call.name, "input": arguments})
    return blocks


def _result(message: Message, talk: Conversation, ids: _Ids, ways: Mapping[str, Any]) -> None:
    way = quirk(ways, "tool_media", "anthropic")
    media = natives_of(message)
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": ids.of(message.tool_call_id or "")}
    if not media or way == "hoist":
        talk.result({**block, "content": words_of(message.parts)})
        talk.postpone([_native(part) for part in media])
    elif way == "text":
        lines = [words_of(message.parts), *(placeholder(part) for part in media)]
        talk.result({**block, "content": "\n".join(line for line in lines if line)})
    else:
        talk.result({**block, "content": _blocks(message.parts)})


def _media(message: Message) -> list[dict[str, Any]]:
    return [_native(part) for part in natives_of(message)]


def _blocks(parts: tuple[Part, ...]) -> list[dict[str, Any]]:
    """Text and files in order; an empty text would be refused."""
    return [
        {"type": "text", "text": part.text} if isinstance(part, TextPart) else _native(part)
        for part in parts
        if isinstance(part, NativePart) or (isinstance(part, TextPart) and part.text.strip())
    ]


def _native(part: NativePart) -> dict[str, Any]:
    if part.kind is Kind.IMAGE:
        return {"type": "image", "source": _source(part)}
    if part.kind in {Kind.DOCUMENT, Kind.OTHER} and (part.mime_type == PDF or part.blob is None):
        titled = {"title": part.filename[:TITLE_CHARACTERS]} if part.filename else {}
        return {"type": "document", "source": _source(part), **titled}
    return {"type": "text", "text": placeholder(part)}


def _source(part: NativePart) -> dict[str, Any]:
    if part.blob is None:
        return {"type": "url", "url": part.url or ""}
    return {"type": "base64", "media_type": part.mime_type, "data": bare_base64(part)}
