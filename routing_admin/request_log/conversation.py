"""How a conversation is known again in the log: by digests, never by its words.

Only requests with files have them: without files nothing of a request depends on who reads it, or on its past.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

from capabilities.core.message import ChatRequest, FilePart, Message, Part, Role, TextPart, UnreadableError

DIGEST_BYTES = 8
END_BYTES = 64
"""Of a file that came inside a request, so many bytes at its beginning and its end are looked at beside its size."""


class ConversationDigest(NamedTuple):
    """What was said up to the end of a request, and up to the end of the one it continues; None where it begins one.

    `opening` is of the system messages before the first answer and of the tools, which stand before all that was said.
    `past` is how many messages the earlier request had.
    """

    whole: int
    continues: int | None
    opening: int
    past: int


def digest_of(chat: ChatRequest) -> ConversationDigest:
    """The digests of a request in its canonical form."""
    opening, said = blake2b(digest_size=DIGEST_BYTES), blake2b(digest_size=DIGEST_BYTES)
    opening.update(repr(chat.tools).encode("utf-8", "replace"))
    continues, past, is_answered, was_answer = None, 0, False, False
    for at, message in enumerate(chat.messages):
        is_answer = message.role is Role.ASSISTANT
        if is_answer and not was_answer:
            continues, past = _number(said.digest()), at
        is_answered, was_answer = is_answered or is_answer, is_answer
        heard = opening if message.role is Role.SYSTEM and not is_answered else said
        heard.update(_identity(message))
    return ConversationDigest(_number(said.digest()), continues, _number(opening.digest()), past)


def _number(digest: bytes) -> int:
    return int.from_bytes(digest, "big", signed=True)


def _identity(message: Message) -> bytes:
    """What tells a message from others; a model's reasoning is left out, as many callers leave it out, too."""
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
    """The first and last bytes of a file that is in memory; nothing of one that cannot be read."""
    try:
        data = next(iter(file.content.blob().blocks()), b"") if file.content else b""
    except UnreadableError:
        return b""
    return data[:END_BYTES] + data[-END_BYTES:]
