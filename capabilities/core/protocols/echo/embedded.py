"""Answer a request with an exact description of the request, without network access."""

from __future__ import annotations

from collections.abc import Iterator

from capabilities.core.message import ChatRequest, Message, NativePart, Part, TextPart
from capabilities.core.translatable import pluralize, translatable
from capabilities.core.wire import Answer, Failure, Fault, Usage

MODELS = ("echo-text", "echo-vision", "echo-503")
BROKEN = "echo-503"
CHARACTERS_PER_TOKEN = 4


def answer(chat: ChatRequest, model: str) -> Answer | Failure:
    """Return the embedded model's answer. The model `echo-503` always fails, and all others describe the request."""
    if model == BROKEN:
        sentence = translatable("echo-503 always fails, to demonstrate a fallback.")
        return Failure(Fault.HTTP_503, sentence, 503, "unavailable")
    text = "\n".join(_lines(chat, model))
    input_chars = sum(len(message.text) for message in chat.messages)
    prompt, completion = _tokens(input_chars), _tokens(len(text))
    return Answer(text, usage=Usage(prompt, completion, prompt + completion), model=model)


def _tokens(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN)


def _lines(chat: ChatRequest, model: str) -> Iterator[str]:
    yield f"{model} received {pluralize(len(chat.messages), 'message')}."
    for number, message in enumerate(chat.messages, 1):
        yield f"{number}. {_headline(message)}"
        for part in message.parts:
            yield from _part(part)
        for call in message.tool_calls:
            yield f"   - calls {call.name} with {call.arguments} ({call.id})"
    if chat.tools:
        yield f"Tools offered: {', '.join(tool.name for tool in chat.tools)}."
    settings = {"temperature": chat.temperature, "max_tokens": chat.max_tokens, "top_p": chat.top_p}
    parameters = [f"{name} {value}" for name, value in settings.items() if value is not None]
    if parameters:
        yield f"Parameters: {', '.join(parameters)}."


def _headline(message: Message) -> str:
    files = sum(isinstance(part, NativePart) for part in message.parts)
    length = sum(len(part.text) for part in message.parts if isinstance(part, TextPart))
    contents = [pluralize(length, "character") + " of text"] if length or not files else []
    contents += [pluralize(files, "file")] if files else []
    answers = f" (answers {message.tool_call_id})" if message.tool_call_id else ""
    return f"{message.role.value}{answers}: {', '.join(contents)}"


def _part(part: Part) -> Iterator[str]:
    if isinstance(part, TextPart):
        yield from (f"   > {text_line}" for text_line in part.text.splitlines())
    elif isinstance(part, NativePart):
        size = f"{part.blob.size:,} bytes" if part.blob is not None else f"at {part.url}"
        name = f", {part.filename}" if part.filename else ""
        yield f"   - {part.kind.value}, {part.mime_type}{name}, {size}"
