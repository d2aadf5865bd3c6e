"""Request bodies for the log, if they are recorded, and digests that identify a conversation.

Text is stored without anything that looks like a key. Of files, only metadata is stored, never bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

from capabilities.core.message import (
    ChatRequest,
    FilePart,
    Message,
    NativePart,
    Part,
    Role,
    TextPart,
    ToolCall,
    UnreadableError,
)
from capabilities.core.providers.redaction import name_base64, redact
from capabilities.core.wire import Answer

BODY_BYTES = 256 * 1024
"""Maximum number of bytes of a request's text to store; newer messages have priority."""
MESSAGE_COST = 200
"""Number of bytes of the budget that each message and each part uses in addition to its text."""


@dataclass(slots=True)
class ByteBudget:
    """The number of bytes that are left for text, and whether any text has been cut."""

    remaining: int = BODY_BYTES
    cut: bool = False

    def fit(self, text: str) -> str:
        """Return as much of a text as fits into the budget, without NUL characters."""
        data = text[: max(0, self.remaining)].encode("utf-8", "replace")
        fitting = data[: max(0, self.remaining)].decode("utf-8", "ignore")
        self.cut = self.cut or fitting != text
        self.remaining -= len(data)
        # PostgreSQL cannot store NUL characters.
        return fitting.replace("\0", "")


def record_body(chat: ChatRequest, answer: Answer | None = None) -> dict[str, Any]:
    """Return the canonical request as JSON, with the answer under `answer`, cut to the maximum size.

    The result must still be passed to `clean_body`, which removes API keys and base64 data.
    """
    space = ByteBudget()
    answered = {"answer": _answer(answer, space)} if answer else {}
    messages: list[dict[str, Any]] = []
    # Begin with the newest message, so that the oldest messages are omitted if the space runs out.
    for message in reversed(chat.messages):
        if space.remaining < MESSAGE_COST:
            break
        messages.insert(0, _message(message, space))
    body: dict[str, Any] = {"messages": messages, **_parameters(chat), **answered}
    missing = len(chat.messages) - len(messages)
    if space.cut or missing:
        body["note"] = f"Cut at {BODY_BYTES} bytes; {missing} earlier messages were left out."
    return body


def clean_body(body: Any) -> Any:
    """Return the body without API keys and base64 data.

    Call this in a thread, because the search for keys takes too long for the event loop.
    """
    if isinstance(body, dict):
        return {name: clean_body(value) for name, value in body.items()}
    if isinstance(body, list):
        return [clean_body(value) for value in body]
    return name_base64(redact(body)) if isinstance(body, str) else body


def _answer(answer: Answer, space: ByteBudget) -> dict[str, Any]:
    made = [
        {
            "kind": item.kind.value,
            "mimeType": item.mime_type,
            **({"artifactRef": f"artifact:{item.artifact_id}"} if item.artifact_id else {}),
            **({"transcript": space.fit(item.transcript)} if item.transcript else {}),
        }
        for item in answer.media
    ]
    text = {"text": space.fit(answer.text)}
    return {**text, **_calls(answer.tool_calls, space), **({"media": made} if made else {})}


def read_question(body: Any) -> tuple[str, list[str]]:
    """Return the text of the last user message in a recorded body, and the ids of the artifacts in it."""
    messages = body.get("messages") if isinstance(body, dict) else None
    question: dict[str, Any] = next(
        (message for message in reversed(messages or []) if message.get("role") == Role.USER.value), {}
    )
    parts = question.get("content", [])
    files = [str(part.get("artifactRef", "")).removeprefix("artifact:") for part in parts]
    return "\n".join(part["text"] for part in parts if "text" in part), [file for file in files if file]


def _message(message: Message, space: ByteBudget) -> dict[str, Any]:
    space.remaining -= MESSAGE_COST
    names = {"name": message.name, "toolCallId": message.tool_call_id}
    return {
        "role": message.role.value,
        "content": [_part(part, space) for part in message.parts],
        **_calls(message.tool_calls, space),
        **{key: space.fit(value) for key, value in names.items() if value},
    }


def _calls(calls: Sequence[ToolCall], space: ByteBudget) -> dict[str, Any]:
    listed = [
        {"id": space.fit(call.id), "name": space.fit(call.name), "arguments": space.fit(call.arguments)}
        for call in calls
    ]
    return {"toolCalls": listed} if listed else {}


def _part(part: Part, space: ByteBudget) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": space.fit(part.text)}
    space.remaining -= MESSAGE_COST
    facts: dict[str, Any] = {"type": "file", "kind": part.kind.value, "mimeType": part.mime_type}
    if part.filename:
        facts["filename"] = space.fit(part.filename)
    if part.url and not part.url.startswith("data:"):
        facts["url"] = space.fit(part.url)
    if isinstance(part, NativePart):
        return facts
    return facts | _file_facts(part)


def _file_facts(file: FilePart) -> dict[str, Any]:
    reference = f"artifact:{file.artifact_id}" if file.artifact_id else None
    known = {"size": file.size, "artifactRef": reference}
    return {key: value for key, value in known.items() if value is not None}


def _parameters(chat: ChatRequest) -> dict[str, Any]:
    parameters = {
        "temperature": chat.temperature,
        "maxTokens": chat.max_tokens,
        "topP": chat.top_p,
        "tools": [tool.name[:200] for tool in chat.tools[:100]] or None,
    }
    return {key: value for key, value in parameters.items() if value is not None}


# Digests identify a conversation in the log without its text. Only requests with files need them, because a request
# without files is sent to every model in the same form.

DIGEST_BYTES = 8
END_BYTES = 64
"""A file in a request is identified by its size and by this many bytes at its start and at its end."""


class ConversationDigest(NamedTuple):
    """Digests of all messages of a request, and of the messages that belong to the earlier request that it continues.

    `continues` is None if there is no earlier request. `opening` covers the tools and the system messages before the
    first answer, which precede the conversation. `past` is the number of messages in the earlier request.
    """

    whole: int
    continues: int | None
    opening: int
    past: int


def digest_conversation(chat: ChatRequest) -> ConversationDigest:
    opening, history = blake2b(digest_size=DIGEST_BYTES), blake2b(digest_size=DIGEST_BYTES)
    opening.update(repr(chat.tools).encode("utf-8", "replace"))
    continues, past, is_answered, was_answer = None, 0, False, False
    for at, message in enumerate(chat.messages):
        is_answer = message.role is Role.ASSISTANT
        if is_answer and not was_answer:
            # The messages before the last answer are the same as in the earlier request.
            continues, past = _number(history.digest()), at
        is_answered, was_answer = is_answered or is_answer, is_answer
        target = opening if message.role is Role.SYSTEM and not is_answered else history
        target.update(_identity(message))
    return ConversationDigest(_number(history.digest()), continues, _number(opening.digest()), past)


def _number(digest: bytes) -> int:
    return int.from_bytes(digest, "big", signed=True)


def _identity(message: Message) -> bytes:
    # Omit a model's reasoning from the digest, because many callers do not send it back.
    parts = [_part_identity(part) for part in message.parts]
    calls = [(call.id, call.name, call.arguments) for call in message.tool_calls]
    return repr((message.role.value, parts, calls, message.tool_call_id)).encode("utf-8", "replace")


def _part_identity(part: Part) -> object:
    if isinstance(part, TextPart):
        return part.text
    if isinstance(part, FilePart) and not part.artifact_id and not part.url:
        return part.mime_type, part.size, _ends(part)
    return getattr(part, "artifact_id", None), part.url


def _ends(file: FilePart) -> bytes:
    try:
        data = next(iter(file.content.blob().blocks()), b"") if file.content else b""
    except UnreadableError:
        return b""
    return data[:END_BYTES] + data[-END_BYTES:]
