"""The embedded provider: it answers with a description of exactly what it received, and needs no network."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from capabilities.core.message import ChatRequest, Message, NativePart, Part, TextPart, ToolCall
from capabilities.core.protocols.media import bare
from capabilities.core.wire import (
    Answer,
    Delta,
    Failure,
    Fault,
    Finish,
    StreamDecoder,
    StreamEvent,
    Target,
    UpstreamRequest,
    Usage,
)

URL = "echo://local"
MODELS = ("echo-text", "echo-vision", "echo-503")
BROKEN = "echo-503"
PIECE = 24
"""Characters of one piece of a streamed answer."""
CHARACTERS_PER_TOKEN = 4


def answer(chat: ChatRequest, model: str) -> Answer | Failure:
    """What the embedded model says to a derived request: `echo-503` always fails, the others describe it."""
    if model == BROKEN:
        return Failure(Fault.HTTP_503, "echo-503 always fails; it is there to show a fallback.", 503, "unavailable")
    text = "\n".join(_lines(chat, model))
    asked = sum(len(message.text) for message in chat.messages)
    prompt, said = _tokens(asked), _tokens(len(text))
    return Answer(text, usage=Usage(prompt, said, prompt + said), model=model)


def events(chat: ChatRequest, model: str) -> list[StreamEvent]:
    """The same as a stream: several pieces and the end, or the failure alone."""
    return stream_of(answer(chat, model))


def stream_of(outcome: Answer | Failure) -> list[StreamEvent]:
    """An outcome cut into the events of a stream."""
    if isinstance(outcome, Failure):
        return [outcome]
    text = outcome.text
    pieces = [Delta(text=text[start : start + PIECE]) for start in range(0, len(text), PIECE)]
    return [*pieces, Finish(outcome.finish_reason, outcome.usage, outcome.model, outcome.id)]


def _tokens(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN)


def _lines(chat: ChatRequest, model: str) -> Iterator[str]:
    yield f"{model} received {_counted(len(chat.messages), 'message')}."
    for number, message in enumerate(chat.messages, 1):
        yield f"{number}. {_headline(message)}"
        for part in message.parts:
            yield from _part(part)
        for call in message.tool_calls:
            yield f"   - calls {call.name} with {call.arguments} ({call.id})"
    if chat.tools:
        yield f"Tools offered: {', '.join(tool.name for tool in chat.tools)}."
    settings = {"temperature": chat.temperature, "max_tokens": chat.max_tokens, "top_p": chat.top_p}
    given = [f"{name} {value}" for name, value in settings.items() if value is not None]
    if given:
        yield f"Parameters: {', '.join(given)}."


def _headline(message: Message) -> str:
    files = sum(isinstance(part, NativePart) for part in message.parts)
    length = sum(len(part.text) for part in message.parts if isinstance(part, TextPart))
    what = [_counted(length, "character") + " of text"] if length or not files else []
    what += [_counted(files, "file")] if files else []
    answers = f" (answers {message.tool_call_id})" if message.tool_call_id else ""
    return f"{message.role.value}{answers}: {', '.join(what)}"


def _part(part: Part) -> Iterator[str]:
    """Text quoted line by line; a file by kind, type, name and bytes."""
    if isinstance(part, TextPart):
        yield from (f"   > {line}" for line in part.text.splitlines())
    elif isinstance(part, NativePart):
        size = f"{part.blob.size:,} bytes" if part.blob is not None else f"at {part.url}"
        name = f", {part.filename}" if part.filename else ""
        yield f"   - {part.kind.value}, {part.mime_type}{name}, {size}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


@dataclass(frozen=True)
class Echo:
    """The protocol `echo`: its payload is for previews, its answer comes from `answer` and `events`.

    `reply` writes that answer as bytes, which `decode` and `decoder` read back, so that it can be driven like others.
    """

    name: str = "echo"

    def encode(self, chat: ChatRequest, target: Target, *, stream: bool) -> UpstreamRequest:
        """The payload as previews show it; nothing is sent."""
        messages = [_shown(message) for message in chat.messages]
        payload: dict[str, Any] = {"model": target.model, "messages": messages}
        given = {"temperature": chat.temperature, "max_tokens": chat.max_tokens, "top_p": chat.top_p}
        payload |= {name: value for name, value in given.items() if value is not None}
        if chat.tools:
            payload["tools"] = [tool.name for tool in chat.tools]
        if stream:
            payload["stream"] = True
        return UpstreamRequest(URL, {}, payload)

    def reply(self, chat: ChatRequest, model: str) -> tuple[int, bytes]:
        """Status and body of the answer."""
        outcome = answer(chat, model)
        if isinstance(outcome, Failure):
            return outcome.status or 500, json.dumps({"error": outcome.message, "code": outcome.code}).encode()
        body = {"text": outcome.text, "model": outcome.model, "usage": asdict(outcome.usage)}
        return 200, json.dumps(body, ensure_ascii=False).encode()

    def decode(self, status: int, headers: Mapping[str, str], body: bytes) -> Answer | Failure:
        """The outcome that `reply` wrote."""
        try:
            value = json.loads(body)
        except ValueError:
            return Failure(Fault.BAD_JSON, "the body is no JSON", status)
        if not isinstance(value, dict):
            return Failure(Fault.BAD_SHAPE, "a JSON object was due", status)
        if status != 200:
            known = f"http_{status}"
            fault = Fault(known) if known in set(Fault) else Fault.HTTP_OTHER
            return Failure(fault, str(value.get("error", "")), status, value.get("code"))
        return Answer(value["text"], usage=Usage(**value["usage"]), model=value["model"])

    def decoder(self) -> StreamDecoder:
        """A decoder that gives the whole answer in pieces when it is complete."""
        return _Whole(self)


class _Whole:
    due = False

    def __init__(self, protocol: Echo) -> None:
        self._protocol = protocol
        self._body = bytearray()

    def feed(self, block: bytes) -> list[StreamEvent]:
        """Nothing before the end."""
        self._body += block
        return []

    def close(self) -> list[StreamEvent]:
        """The answer in pieces."""
        return stream_of(self._protocol.decode(200, {}, bytes(self._body)))


def _shown(message: Message) -> dict[str, Any]:
    out: dict[str, Any] = {"role": message.role.value, "content": [_shown_part(part) for part in message.parts]}
    if message.tool_calls:
        out["tool_calls"] = [_shown_call(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        out["tool_call_id"] = message.tool_call_id
    return out


def _shown_call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "arguments": call.arguments}


def _shown_part(part: Part) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    named = {"filename": part.filename} if part.filename else {}
    if isinstance(part, NativePart) and part.blob is not None:
        return {"type": part.kind.value, "mimeType": part.mime_type, **named, "data": bare(part)}
    return {"type": part.kind.value, "mimeType": part.mime_type, **named, "url": part.url}
