"""No request body grows past what its address takes, whatever was announced: counted while it is received.

Django writes a whole body to disk before a view, its key check included, sees the request. So the count happens
outside, in the ASGI application; inside, each address then applies its own and finer limit.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from capabilities.body_limits import received_limit
from routing_admin.server.ids import new_id

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[..., Awaitable[None]]

SETTING = "ROUTING_ADMIN_MAX_UPLOAD_BYTES"
"""The setting that the limits here grow with."""


class _BodyTooLargeError(Exception):
    """More was received than the address takes."""


def limit_bodies(app: App) -> App:
    """The application, with bodies that are too large answered by 413 as soon as that is known."""

    async def application(scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        limit, received, started = received_limit(scope["path"]), 0, False

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                raise _BodyTooLargeError
            return message

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            if announced_length(scope) > limit:
                raise _BodyTooLargeError
            await app(scope, counted, watched)
        except _BodyTooLargeError:
            if not started:
                await refuse(scope["path"], limit, send)

    return application


def announced_length(scope: Any) -> int:
    """The length a request says it has; 0 when it says none that makes sense."""
    value = dict(scope["headers"]).get(b"content-length", b"")
    return int(value) if value.isdigit() and len(value) < 20 else 0


async def refuse(path: str, limit: int, send: Send) -> None:
    """413 in the error shape of the address, and the end of the connection."""
    request_id = new_id("req_")
    body = json.dumps(refusal_json(path, limit, request_id)).encode()
    headers = [
        (b"content-type", b"application/json; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"x-request-id", request_id.encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def refusal_json(path: str, limit: int, request_id: str) -> dict[str, Any]:
    """The error's object: OpenAI's under `/v1`, ours elsewhere."""
    message = f"The request is larger than the {limit} bytes this address takes. Send less, or raise {SETTING}."
    if path.startswith("/v1/"):
        inner = {"type": "invalid_request_error", "code": "too_large", "param": None, "request_id": request_id}
        return {"error": {"message": message, **inner}}
    return {"error": "too_large", "message": message, "limit": limit, "requestId": request_id}
