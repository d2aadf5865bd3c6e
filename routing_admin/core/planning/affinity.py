"""By what a conversation is known again, so that it stays with one of a provider's keys: how it begins."""

from __future__ import annotations

from hashlib import blake2b

from capabilities.core.message import ChatRequest, FilePart, Role, TextPart

OPENING_CHARACTERS = 4096
"""Of each text at the beginning that is looked at: two conversations that differ later only may share a key."""


def opening_of(chat: ChatRequest) -> str:
    """A digest of the messages up to the first one of a user: the same for every later turn of a conversation."""
    digest = blake2b(digest_size=16)
    for message in chat.messages:
        digest.update(f"\n{message.role.value}:".encode())
        for part in message.parts:
            text = part.text[:OPENING_CHARACTERS] if isinstance(part, TextPart) else ""
            file = f"{part.artifact_id}{part.size}" if isinstance(part, FilePart) else ""
            digest.update(f"{text}\0{file}\0".encode("utf-8", "replace"))
        if message.role is Role.USER:
            break
    return digest.hexdigest()
