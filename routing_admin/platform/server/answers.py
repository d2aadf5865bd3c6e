"""Send complete ASGI responses, including the server's own errors in the error format of the API at the path."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from types import MappingProxyType
from typing import Any

from routing_admin.platform.server.request_id import make_request_id, read_scope_id

CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
"""Control characters that no header may contain, because they would end the line or be removed."""

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


async def send_whole(status: int, headers: Mapping[str, str], body: bytes, send: Send) -> None:
    """Send a complete response with its Content-Length; raise `ValueError` for an invalid header."""
    pairs = [*header_pairs(headers), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


def header_pairs(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Return headers in ASGI's format; raise `ValueError` for an invalid header."""
    pairs = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    if CONTROL.search(b" ".join([value for _, value in pairs])):
        raise ValueError("a header of the answer holds a control character")
    return pairs


TYPES: Mapping[str, str] = {
    "key_invalid": "authentication_error",
    "request_timeout": "timeout_error",
    "overloaded": "server_error",
    "too_many_connections": "server_error",
}
"""Maps our codes to OpenAI's error types; all other codes have the type `invalid_request_error`."""
ANTHROPIC_TYPES: Mapping[str, str] = {
    "key_invalid": "authentication_error",
    "request_timeout": "timeout_error",
    "overloaded": "overloaded_error",
    "too_many_connections": "overloaded_error",
    "too_large": "request_too_large",
}
"""Maps our codes to Anthropic's error types."""

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
"""Maps HTTP statuses to Google's names; any other 4xx is `INVALID_ARGUMENT`, any other 5xx `UNAVAILABLE`."""
OPENAI_CODES: Mapping[str, str] = {"key_invalid": "invalid_api_key"}
"""Maps our codes to OpenAI's codes where these differ, because clients check them."""


async def send_refusal(
    scope: Mapping[str, Any],
    status: int,
    code: str,
    message: str,
    send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    headers: Mapping[str, str] = MappingProxyType({}),
    **extra: Any,
) -> None:
    """Respond to a request with an error that contains the request's id, and close the connection."""
    default_headers, body = refusal_parts(scope["path"], status, code, message, read_scope_id(scope), **extra)
    pairs = dict(default_headers) | {name.lower().encode(): value.encode() for name, value in headers.items()}
    await send({"type": "http.response.start", "status": status, "headers": [*pairs.items()]})
    await send({"type": "http.response.body", "body": body})


def refusal_parts(
    path: str, status: int, code: str, message: str, request_id: str = "", **extra: Any
) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Return the headers and body of an error that closes the connection; a 503 allows a retry after a second."""
    request_id = request_id or make_request_id("")
    body = json.dumps(refusal_json(path, status, code, message, request_id, **extra)).encode()
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
    """Return an error in Google's format (AIP-193), with the status name, our code as the reason, and the details."""
    info = {"reason": code.upper(), "domain": "routing_admin", "metadata": {"requestId": request_id}}
    listed = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", **info}, *details]
    status_name = GOOGLE_STATUSES.get(status) or ("INVALID_ARGUMENT" if status < 500 else "UNAVAILABLE")
    return {"error": {"code": status, "message": message, "status": status_name, "details": listed}}


def refusal_json(path: str, status: int, code: str, message: str, request_id: str, **extra: Any) -> dict[str, Any]:
    """Return an error in the format of the vendor's API at the path, or else in our own format with `extra` fields."""
    if path.startswith("/v1beta/"):
        return google_error(status, code, message, request_id)
    if path.startswith("/v1/messages"):
        error = {"type": ANTHROPIC_TYPES.get(code, "invalid_request_error"), "message": message, "code": code}
        return {"type": "error", "error": error, "request_id": request_id}
    if path.startswith("/v1/"):
        fields = {"message": message, "type": TYPES.get(code, "invalid_request_error")}
        return {"error": {**fields, "code": OPENAI_CODES.get(code, code), "param": None, "request_id": request_id}}
    return {"error": code, "message": message, **extra, "requestId": request_id}
