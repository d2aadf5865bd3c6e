"""Errors in OpenAI's format. They say what was wrong, where, and what the caller should do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson
from django.http import HttpResponse, HttpResponseBase

from routing_admin.core.fallback.chain import Attempt
from routing_admin.core.fallback.errors import RouterError, UpstreamRefused, retry_headers
from routing_admin.dispatch.recorded import failure_headers, header_value
from routing_admin.gateway.http import HttpReply, build_response
from routing_admin.limits.reservations import LimitReachedError

TYPES: Mapping[int, str] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    429: "rate_limit_error",
    504: "timeout_error",
}
"""Maps statuses to OpenAI's error types; any other 4xx is an invalid request, any other 5xx an upstream error."""


class GatewayError(Exception):
    """A refused call: its status, code and message, and the path of the invalid field."""

    def __init__(
        self, status: int, code: str, message: str, param: str | None = None, attempts: Sequence[Attempt] = ()
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.param = status, code, message, param
        self.attempts = tuple(attempts)
        self.retry_after: float | None = None
        self.should_retry = False
        self.answered_by: Attempt | None = None
        self.headers: Mapping[str, str] = {}


class BadRequestError(GatewayError):
    """The request is invalid at `param`, a path such as `messages[0].content[1].image_url.url`."""

    def __init__(self, message: str, param: str | None = None, code: str = "invalid_value", status: int = 400) -> None:
        super().__init__(status, code, message, param)


class MethodError(GatewayError):
    def __init__(self, message: str, allowed: Sequence[str]) -> None:
        super().__init__(405, "method_not_allowed", message)
        self.allowed = tuple(allowed)


def to_gateway_error(error: RouterError) -> GatewayError:
    """Convert an error from the fallback chain."""
    refusal = GatewayError(error.status, error.code, error.message, error.param, error.attempts)
    refusal.retry_after = error.retry_after
    refusal.answered_by = error.attempts[-1] if isinstance(error, UpstreamRefused) else None
    return refusal


def limit_gateway_error(error: LimitReachedError) -> GatewayError:
    """Convert a reached limit into an error with retry headers."""
    refusal = GatewayError(error.status, error.code, error.message)
    refusal.retry_after, refusal.should_retry, refusal.headers = error.retry_after, error.should_retry, error.headers
    return refusal


def error_type(status: int) -> str:
    return TYPES.get(status) or ("invalid_request_error" if status < 500 else "upstream_error")


def error_body(error: GatewayError, request_id: str) -> dict[str, Any]:
    """Return the error as JSON; if candidates were called, it contains all attempts."""
    fields: dict[str, Any] = {
        "message": error.message,
        # For an unknown model, OpenAI uses this type although the status is 404.
        "type": "invalid_request_error" if error.code == "model_not_found" else error_type(error.status),
        "code": error.code,
        "param": error.param,
        "request_id": request_id,
    }
    if error.attempts:
        fields["attempts"] = [attempt.as_json() for attempt in error.attempts]
    return {"error": fields}


WriteError = Callable[[GatewayError, str], dict[str, Any]]
"""Function that writes an error in an API's format."""


def error_reply(error: GatewayError, request_id: str, write: WriteError = error_body) -> HttpReply:
    """Return the error as a reply: the body from `write`, and headers about retries and attempts."""
    reply = json_reply(write(error, request_id), error.status)
    reply.headers["x-request-id"] = request_id
    reply.headers.update(retry_headers(error))
    reply.headers.update(error.headers)
    reply.headers.update(failure_headers(error.attempts))
    if error.answered_by is not None:
        reply.headers["x-routing-provider"] = header_value(error.answered_by.provider)
        reply.headers["x-routing-model"] = header_value(error.answered_by.model)
    if isinstance(error, MethodError):
        reply.headers["Allow"] = ", ".join(error.allowed)
    # RFC 9110 requires this header in every 401 response.
    if error.status == 401:
        reply.headers["WWW-Authenticate"] = 'Bearer realm="routing_admin"'
    return reply


def error_response(error: GatewayError, request_id: str, write: WriteError = error_body) -> HttpResponseBase:
    return build_response(error_reply(error, request_id, write))


def json_reply(value: Any, status: int = 200) -> HttpReply:
    return HttpReply(status, {"Content-Type": "application/json"}, orjson.dumps(value))


def json_response(value: Any, status: int = 200) -> HttpResponse:
    return HttpResponse(orjson.dumps(value), status=status, content_type="application/json")
