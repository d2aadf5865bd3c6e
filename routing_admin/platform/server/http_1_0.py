"""Answers to callers who speak HTTP/1.0, which knows no chunks."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

Message = MutableMapping[str, Any]


def without_chunks(cycle: RequestResponseCycle, app: Any) -> Any:
    """The application, whose answers of unknown length are sent as they are: each piece is all that is expected.

    The connection is closed at the end anyhow.
    """

    async def answering(scope: Any, receive: Any, send: Any) -> None:
        is_open = False

        async def sending(message: Message) -> None:
            nonlocal is_open
            if message["type"] == "http.response.start":
                is_open = all(name.lower() != b"content-length" for name, _ in message.get("headers", ()))
                cycle.chunked_encoding = False if is_open else None
            elif is_open:
                cycle.expected_content_length = len(message.get("body", b""))
            await send(message)

        await app(scope, receive, sending)

    return answering
