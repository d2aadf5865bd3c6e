"""Refusals of the server itself, before anybody is asked who answers: in the error shape of the address."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from types import MappingProxyType
from typing import Any

from routing_admin.platform.server.request_id import make_request_id, request_id_of_scope

TYPES: Mapping[str, str] = {
    "key_invalid": "authentication_error",
    "request_timeout": "timeout_error",
    "overloaded": "server_error",
    "too_many_connections": "server_error",
}
"""OpenAI's word for the kind of error; every other code is the request's fault."""
ANTHROPIC_TYPES: Mapping[str, str] = {
    "key_invalid": "authentication_error",
    "request_timeout": "timeout_error",
    "overloaded": "overloaded_error",
    "too_many_connections": "overloaded_error",
    "too_large": "request_too_large",
}
"""The same in Anthropic's words."""

GOOGLE_STATUSES: Mapping[int, str] = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    410: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    504: "DEADLINE_EXCEEDED",
}
"""Google's word for a status; every other 4xx is an argument's fault, every other 5xx is `UNAVAILABLE`."""
OPENAI_CODES: Mapping[str, str] = {"key_invalid": "invalid_api_key"}
"""What OpenAI calls a refusal that has another name with us; programs look for it."""


async def send_refusal(
    scope: Mapping[str, Any],
    status: int,
    code: str,
    message: str,
    send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    headers: Mapping[str, str] = MappingProxyType({}),
    **more: Any,
) -> None:
    """The refusal as an ASGI answer to the request of that scope, under its id, and the end of the connection."""
    usual, body = refusal_parts(scope["path"], status, code, message, request_id_of_scope(scope), **more)
    pairs = dict(usual) | {name.lower().encode(): value.encode() for name, value in headers.items()}
    await send({"type": "http.response.start", "status": status, "headers": [*pairs.items()]})
    await send({"type": "http.response.body", "body": body})


def refusal_parts(
    path: str, status: int, code: str, message: str, request_id: str = "", **more: Any
) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Headers and body of a refusal after which the connection is closed; a 503 may be tried again a second later."""
    request_id = request_id or make_request_id("")
    body = json.dumps(refusal_json(path, status, code, message, request_id, **more)).encode()
    headers = [
        (b"content-type", b"application/json; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"x-request-id", request_id.encode()),
        (b"connection", b"close"),
    ]
    return [*headers, (b"retry-after", b"1")] if status == 503 else headers, body


def google_error(
    status: int, code: str, message: str, request_id: str, details: Iterable[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Return an error in Google's shape (AIP-193): its status in a word, our code as the reason, then the details."""
    info = {"reason": code.upper(), "domain": "routing_admin", "metadata": {"requestId": request_id}}
    listed = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", **info}, *details]
    word = GOOGLE_STATUSES.get(status) or ("INVALID_ARGUMENT" if status < 500 else "UNAVAILABLE")
    return {"error": {"code": status, "message": message, "status": word, "details": listed}}


def refusal_json(path: str, status: int, code: str, message: str, request_id: str, **more: Any) -> dict[str, Any]:
    """The error's object: that of the vendor whose address it is, ours elsewhere, where `more` goes along."""
    if path.startswith("/v1beta/"):
        return google_error(status, code, message, request_id)
    if path.startswith("/v1/messages"):
        error = {"type": ANTHROPIC_TYPES.get(code, "invalid_request_error"), "message": message, "code": code}
        return {"type": "error", "error": error, "request_id": request_id}
    if path.startswith("/v1/"):
        fields = {"message": message, "type": TYPES.get(code, "invalid_request_error")}
        return {"error": {**fields, "code": OPENAI_CODES.get(code, code), "param": None, "request_id": request_id}}
    return {"error": code, "message": message, **more, "requestId": request_id}
