"""How answers of unknown length go over the connection: in chunks, but to HTTP/1.0, which knows none, up to its end."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

Message = MutableMapping[str, Any]


class Protocol(HttpToolsProtocol):
    """uvicorn's, which sends chunks to every client; to HTTP/1.0 it closes the connection at the end anyhow."""

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        super()._start_asgi_task(cycle, _without_chunks(cycle, app) if cycle.scope["http_version"] == "1.0" else app)


def _without_chunks(cycle: RequestResponseCycle, app: Any) -> Any:
    """The application, whose answers of unknown length are sent as they are: each piece is all that is expected."""

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
