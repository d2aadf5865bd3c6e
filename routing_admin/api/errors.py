"""Error responses of the agents' API: JSON `{"error","message","requestId",…}` with the matching HTTP status."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, partial, wraps
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.core.exceptions import BadRequest, SuspiciousOperation
from django.db import DatabaseError, InterfaceError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, re_path
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError
from pydantic import BaseModel, ConfigDict

from artifacts.core.errors import ArtifactError, StoreUnavailableError
from artifacts.library import LinkExpiredError
from capabilities.core.problems import Problem
from capabilities.core.storable import format_path
from capabilities.errors import ActionError, InvalidError, first_problems
from routing_admin.api.calls import CallError, answer
from routing_admin.core.fallback.endings import UNAVAILABLE
from routing_admin.platform.databases import unavailable
from routing_admin.platform.databases.explaining import explain_failure
from routing_admin.platform.databases.lock_timeout import lock_timeout
from routing_admin.platform.databases.unavailable import WAIT_SECONDS
from routing_admin.platform.server.metrics import request_metrics
from routing_admin.platform.server.request_id import read_request_id

log = logging.getLogger(__name__)

STATUS_OF_CODE: Mapping[str, int] = {
    "too_large": 413,
    "storage_full": 507,
    "upload_failed": 400,
    "artifact_missing": 410,
    "artifact_corrupt": 410,
    "unavailable": 503,
}
"""Maps each artifact error's code to an HTTP status."""


def refusal(request: HttpRequest, status: int, code: str, message: str, **more: Any) -> HttpResponse:
    response = answer({"error": code, "message": message, "requestId": read_request_id(request), **more}, status)
    if status == 401:
        response["WWW-Authenticate"] = 'Bearer realm="routing_admin"'
    return response


def problem_details(problems: tuple[Problem, ...]) -> list[dict[str, str]]:
    return [
        {
            "path": problem.field,
            "message": problem.message,
            "constraint": problem.constraint,
            "severity": problem.severity,
        }
        for problem in first_problems(problems)
    ]


def api_name(path: str) -> str:
    """Return the API's label in metrics: `admin` for the administrators' API, `api` for the agents' API."""
    return "admin" if path.startswith("/api/v1/admin/") else "api"


def on_call_error(request: HttpRequest, error: CallError) -> HttpResponse:
    if error.status in (401, 403):
        # Count only these statuses, because any other status does not mean that the key was rejected.
        request_metrics().count_refused_key(api_name(request.path), error.code)
    response = refusal(request, error.status, error.code, str(error), **error.more)
    for name, value in error.headers.items():
        response[name] = value
    return _add_retry_after(response) if error.code == UNAVAILABLE and not error.headers else response


def on_invalid(request: HttpRequest, error: InvalidError) -> HttpResponse:
    return refusal(request, error.status, error.code, str(error), details=problem_details(error.problems))


def on_action_error(request: HttpRequest, error: ActionError) -> HttpResponse:
    return refusal(request, error.status, error.code, str(error))


def on_link_over(request: HttpRequest, error: LinkExpiredError) -> HttpResponse:
    more = {"ref": error.ref} if error.ref else {}
    return refusal(request, error.status, error.code, str(error), **more)


def on_artifact_error(request: HttpRequest, error: ArtifactError) -> HttpResponse:
    more = {"limit": error.limit} if hasattr(error, "limit") else {}
    response = refusal(request, STATUS_OF_CODE.get(error.code, 500), error.code, str(error), **more)
    if not isinstance(error, StoreUnavailableError):
        return response
    log.error("a call needs an artifact: %s", error.details)
    return _add_retry_after(response)


def on_validation_error(request: HttpRequest, error: ValidationError) -> HttpResponse:
    # Omit the first element of the error's location, which is `query` or `path`.
    details = [{"path": format_path(entry["loc"][1:]), "message": str(entry["msg"])} for entry in error.errors]
    message = "; ".join(f"{detail['path']}: {detail['message']}" for detail in details)
    return refusal(request, 422, "invalid", message, details=details)


def on_http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    return refusal(request, error.status_code, "invalid_request", str(error))


def on_bad_request(request: HttpRequest, error: Exception) -> HttpResponse:
    return refusal(request, 400, "invalid_request", "The request could not be read. Check its headers and body.")


def on_database_error(request: HttpRequest, error: DatabaseError | InterfaceError) -> HttpResponse:
    # While the database is unavailable, no key can be checked. The response is then 503 with a retry time, never 401.
    if not unavailable.is_unavailable(error):
        return on_crash(request, error)
    log.error("a call needs the database: %s", explain_failure(error))
    return _add_retry_after(refusal(request, 503, UNAVAILABLE, unavailable.explain(error)))


def _add_retry_after(response: HttpResponse) -> HttpResponse:
    response["Retry-After"] = str(round(unavailable.RETRY_SECONDS))
    return response


def on_crash(request: HttpRequest, error: Exception) -> HttpResponse:
    # The traceback is in the log under the request id; the caller receives only the id.
    log.exception("call %s %s failed, request %s", request.method, request.path, read_request_id(request))
    message = "Something went wrong on our side. The log has the details under this request id."
    return refusal(request, 500, "internal_error", message)


HANDLERS: tuple[tuple[type[Exception], Callable[[HttpRequest, Any], HttpResponse]], ...] = (
    (CallError, on_call_error),
    (InvalidError, on_invalid),
    (LinkExpiredError, on_link_over),
    (ActionError, on_action_error),
    (ArtifactError, on_artifact_error),
    (ValidationError, on_validation_error),
    (HttpError, on_http_error),
    (SuspiciousOperation, on_bad_request),
    (BadRequest, on_bad_request),
    (DatabaseError, on_database_error),
    (InterfaceError, on_database_error),
    (Exception, on_crash),
)
"""Maps each exception class to its handler; the most specific class wins."""

PREFIX = "/api/v1"
DATA_PLANE_CALLS: Mapping[str, str] = {"/models": "GET /v1/models", "/files": "POST /v1/files"}
"""Maps paths of the data plane (`/v1`) that clients request here by mistake to the call to suggest.

Chat calls are not listed: the data plane's handler for unknown URLs answers them in their own API's format.
"""


def unknown_call(
    request: HttpRequest, *args: Any, list_calls: Callable[[], Sequence[str]], **kwargs: Any
) -> HttpResponse:
    """Return 404 for an unknown path, and suggest the API's most similar calls."""
    path = request.path.removeprefix(PREFIX)
    data_plane_call = DATA_PLANE_CALLS.get(path.rstrip("/"))
    # The client may have sent a data plane call to this API's base URL.
    suggestions = [data_plane_call] if data_plane_call else similar_calls(request.method or "GET", path, list_calls())
    hint = f" Did you mean {', '.join(suggestions)}?" if suggestions else ""
    message = f"There is no such call.{hint} All calls are described at {PREFIX}/docs."
    return refusal(request, 404, "not_found", message, didYouMean=suggestions)


MAX_PATH = 200


def similar_calls(method: str, path: str, calls: Sequence[str]) -> list[str]:
    """Return up to three calls with a similar path; calls with the same method are first."""
    paths = {call.split(" ", 1)[1] for call in calls}
    similar_paths = get_close_matches(
        path[:MAX_PATH].rstrip("/").lower(), [known_path.removeprefix(PREFIX) for known_path in paths], 3, 0.6
    )
    matches = [
        call for similar_path in similar_paths for call in calls if call.split(" ", 1)[1] == PREFIX + similar_path
    ]
    return sorted(matches, key=lambda call: not call.startswith(f"{method} "))[:3]


def wrap_view(view: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a view so that its 405 response has our error format and its database queries have a short lock timeout."""
    if iscoroutinefunction(view):

        @wraps(view)
        async def awaited(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            with lock_timeout(WAIT_SECONDS):
                return _shape_405(request, await view(request, *args, **kwargs))

        return awaited

    @wraps(view)
    def called(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        with lock_timeout(WAIT_SECONDS):
            return _shape_405(request, view(request, *args, **kwargs))

    return called


def _shape_405(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if response.status_code != 405:
        return response
    methods = response["Allow"]
    message = f"{request.method} is not possible here. Possible: {methods}."
    # Ninja's own 405 is plain text.
    refused = refusal(
        request, 405, "method_not_allowed", message, allowed=[method.strip() for method in methods.split(",")]
    )
    refused["Allow"] = methods
    return refused


def with_our_errors(api: NinjaAPI) -> tuple[list[URLPattern], str, str]:
    """Return the API's URLs, all with errors in our format, and a catch-all pattern for unknown URLs."""
    for kind, handler in HANDLERS:
        api.add_exception_handler(kind, handler)
    patterns, app, namespace = api.urls

    # Build the OpenAPI document only when the first unknown call arrives: it takes 0.3 s, which would delay the
    # server's start.
    @cache
    def list_calls() -> Sequence[str]:
        paths = api.get_openapi_schema(path_prefix=f"{PREFIX}/")["paths"]
        return sorted(f"{method.upper()} {path}" for path, item in paths.items() for method in item)

    unknown = partial(unknown_call, list_calls=list_calls)
    # A POST to an unknown path must return our 404, not Django's 403.
    unknown.csrf_exempt = True  # type: ignore[attr-defined]
    api.add_exception_handler(Http404, lambda request, _error: unknown(request))
    url_patterns = [entry for entry in patterns if isinstance(entry, URLPattern)]
    for pattern in url_patterns:
        pattern.callback = wrap_view(pattern.callback)
    return [*url_patterns, re_path(".*", unknown, name="unknown-call")], app, namespace


class Body(BaseModel):
    """A JSON request body with strict types: `false` is not 0, and `"7"` is not 7.

    Unknown keys are ignored, as in configuration files. Ninja's own schemas accept any value with attributes, so a
    string or a list would pass as an object without fields.
    """

    model_config = ConfigDict(strict=True)
