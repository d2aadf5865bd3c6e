"""Respond to URLs that almost match the data plane with a 404 in the caller's format that names the correct URL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import URLPattern, path, re_path
from django.views.decorators.csrf import csrf_exempt

from capabilities.core.operations.table import OPERATIONS
from routing_admin.gateway.errors import GatewayError, error_response, json_response
from routing_admin.platform.server.answers import google_error
from routing_admin.platform.server.rejected_calls import rejected_calls
from routing_admin.platform.server.request_id import read_request_id

CHAT = "POST /v1/chat/completions"
Shape = Callable[[HttpRequest, str], HttpResponseBase]
View = Callable[..., HttpResponseBase]


def as_openai(request: HttpRequest, message: str) -> HttpResponseBase:
    return error_response(GatewayError(404, "unknown_url", message), read_request_id(request))


def as_anthropic(request: HttpRequest, message: str) -> HttpResponse:
    error = {"type": "not_found_error", "message": message}
    return _refuse(request, {"type": "error", "error": error, "request_id": read_request_id(request)})


def as_gemini(request: HttpRequest, message: str) -> HttpResponse:
    return _refuse(request, google_error(404, "unknown_url", message, read_request_id(request)))


def _refuse(request: HttpRequest, body: dict[str, Any]) -> HttpResponse:
    response = json_response(body, 404)
    # Anthropic's clients read the request id from `request-id`.
    response.headers["x-request-id"] = response.headers["request-id"] = read_request_id(request)
    response.headers["x-should-retry"] = "false"
    return response


def unknown_url_view(shape: Shape, correct_url: str) -> View:
    @csrf_exempt
    def view(request: HttpRequest, **kwargs: object) -> HttpResponseBase:
        rejected_calls().note("unknown_url", request.path, request.headers)
        return shape(request, f"{request.method} {request.path[:200]} is not here. Use {correct_url} on this server.")

    return view


def unless_posted(view: View) -> View:
    """Wrap a view that shows a model, so that a POST with a verb of Gemini's API gets a 404 with the correct URL.

    Only the method distinguishes `models/x:batchGenerateContent` from a model name, because model names may also
    contain a colon (`task:coding`).
    """
    unknown = unknown_url_view(as_gemini, GEMINI)

    @csrf_exempt
    def described(request: HttpRequest, **kwargs: object) -> HttpResponseBase:
        is_call = request.method == "POST" and ":" in request.path
        return (unknown if is_call else view)(request, **kwargs)

    return described


GEMINI = "POST /v1beta/models/{name}:generateContent, :streamGenerateContent or :countTokens, or GET /v1beta/models"
RESPONSES, MESSAGES = "POST /v1/responses", "POST /v1/messages"
PASSED = tuple(operation.path for operation in OPERATIONS)
ALL_CALLS = (
    f"{CHAT}, {RESPONSES}, {MESSAGES}, POST /v1beta/models/{{name}}:generateContent, "
    f"{', '.join(f'POST /v1{path}' for path in PASSED)}, GET /v1/models or /v1/files; "
    "the agents' API is under /api/v1"
)
SOUNDS, IMAGES = (
    " or ".join(f"POST /v1{path}" for path in PASSED if path.startswith(f"/{group}/")) for group in ("audio", "images")
)

BELOW_V1: list[URLPattern] = [
    re_path(
        r"^v1/responses/.+$",
        unknown_url_view(as_openai, f"{RESPONSES} with the whole conversation as input"),
        name="unknown_url",
    ),
    re_path(r"^v1/audio/.+$", unknown_url_view(as_openai, SOUNDS), name="unknown_url"),
    re_path(r"^v1/images/.+$", unknown_url_view(as_openai, IMAGES), name="unknown_url"),
    re_path(r"^v1/messages/.+$", unknown_url_view(as_anthropic, MESSAGES), name="unknown_url"),
    re_path(
        r"^(?:v1|v1beta)/models/.+:(?:embedContent|(?:async)?[bB]atchEmbedContents?)$",
        unknown_url_view(as_gemini, "POST /v1/embeddings (OpenAI's format)"),
        name="unknown_url",
    ),
]
"""URL patterns below `/v1/` for unsupported calls of other vendors or API versions."""

OTHERS_BELOW_V1 = re_path(r"^v1(?:/.*)?$", unknown_url_view(as_openai, ALL_CALLS), name="unknown_url")
"""URL pattern for all other paths below `/v1`, matched after the real URLs."""

BESIDE_V1: list[URLPattern] = [
    *(
        path(f"{prefix}{call}", unknown_url_view(shape, correct_url), name="unknown_url")
        for prefix in ("", "api/v1/", "api/")
        for call, shape, correct_url in (
            ("responses", as_openai, RESPONSES),
            *((path[1:], as_openai, f"POST /v1{path}") for path in PASSED),
            ("messages", as_anthropic, MESSAGES),
        )
    ),
    re_path(
        r"^(?:upload/v1\w*|v1beta)/files(?:/.*)?$",
        unknown_url_view(as_gemini, "POST /v1/files, and the id it returns as fileUri,"),
        name="unknown_url",
    ),
    re_path(r"^v1(?:alpha|beta1?)(?:/.*)?$", unknown_url_view(as_gemini, GEMINI), name="unknown_url"),
]
"""URL patterns for calls without `/v1/` in the path, or with the prefix of the agents' API."""
