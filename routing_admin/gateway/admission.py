"""Authenticate and authorize calls to the data plane, and convert failures to errors in OpenAI's format."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import cast

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from artifacts.core.errors import StoreUnavailableError
from capabilities.access import Principal, Refusal, refuse_call, refuse_query
from capabilities.actors import Actor
from capabilities.core.permissions import call_methods
from routing_admin.core.fallback.endings import UNAVAILABLE
from routing_admin.gateway.errors import (
    GatewayError,
    MethodError,
    WriteError,
    error_body,
    error_response,
    limit_gateway_error,
)
from routing_admin.gateway.key_cache import cached_principal, principal_by_key
from routing_admin.limits.reservations import LimitReachedError, Reservation, make_reservation
from routing_admin.platform.databases import unavailable
from routing_admin.platform.databases.explaining import explain_failure
from routing_admin.platform.databases.lock_timeout import lock_timeout
from routing_admin.platform.databases.unavailable import WAIT_SECONDS
from routing_admin.platform.server.answers import OPENAI_CODES
from routing_admin.platform.server.metrics import request_metrics
from routing_admin.platform.server.rejected_calls import rejected_calls
from routing_admin.platform.server.request_id import read_request_id

log = logging.getLogger(__name__)

View = Callable[..., HttpResponseBase]


def admit_caller(method: str, query: str, headers: Mapping[str, str], path: str) -> Principal:
    """Return the agent that calls `path` if the permission table allows the call. This queries the database.

    Raise `GatewayError`: 401 if there is no valid key, 403 if the key lacks the scope, 400 if the key is in the URL.
    """
    return _admit(refuse_query(query) or principal_by_key(headers), method, headers, path)


def admit_known_caller(method: str, query: str, headers: Mapping[str, str], path: str) -> Principal | None:
    """Return the agent from the key cache, or None if the database is needed; raise errors like `admit_caller`."""
    refusal = refuse_query(query) if query else None
    caller = refusal or cached_principal(headers)
    return None if caller is None else _admit(caller, method, headers, path)


def _admit(caller: Principal | Refusal, method: str, headers: Mapping[str, str], path: str) -> Principal:
    refusal = refuse_call(caller, method, path) if isinstance(caller, Principal) else caller
    if refusal is None:
        return cast(Principal, caller)
    # Operators find rejected keys in the metrics and in the list of rejected calls.
    request_metrics().count_refused_key("v1", refusal.code)
    rejected_calls().note(refusal.code, path, headers)
    raise GatewayError(refusal.status, OPENAI_CODES.get(refusal.code, refusal.code), refusal.message)


def actor_for(request: HttpRequest, principal: Principal) -> Actor:
    return Actor("agent", principal.agent, request.META.get("REMOTE_ADDR") or "", read_request_id(request))


def check_method(method: str | None, path: str, methods: Sequence[str]) -> None:
    """Raise `MethodError`, a `GatewayError` with status 405, if `method` is not one of `methods`."""
    if method not in methods:
        raise MethodError(f"{path} takes {' and '.join(methods)}, not {method}.", methods)


def fault_error(error: Exception) -> GatewayError:
    """Return an internal error as a `GatewayError` without its details, which are logged."""
    # While the database is unavailable, no key can be checked. The response is then a 503 with a retry time, never a
    # 401.
    if unavailable.is_unavailable(error):
        log.error("a call needs the database: %s", explain_failure(error))
        busy = GatewayError(503, UNAVAILABLE, unavailable.explain(error))
        busy.retry_after, busy.should_retry = unavailable.RETRY_SECONDS, True
        return busy
    if isinstance(error, StoreUnavailableError):
        log.error("a call needs an artifact: %s", error.details)
        return store_error(error)
    log.error("the data plane failed", exc_info=error)
    return GatewayError(
        500,
        "internal_error",
        ("Something went wrong on our side. The server log has the details under this request id."),
    )


def store_error(error: StoreUnavailableError) -> GatewayError:
    """Return a 503 with a retry time for an unavailable artifact store."""
    refusal = GatewayError(503, error.code, str(error))
    refusal.retry_after, refusal.should_retry = unavailable.RETRY_SECONDS, True
    return refusal


def endpoint(path: str, write: WriteError = error_body) -> Callable[[View], View]:
    """Wrap a data plane view so that it accepts the methods and scopes that the permission table lists for `path`.

    The agent is authenticated before the view runs, and `request_principal` returns it. Errors are handled as in
    `open_endpoint`.
    """

    def wrap(view: View) -> View:
        @wraps(view)
        def for_the_agent(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
            query = request.META.get("QUERY_STRING", "")
            principal = admit_caller(request.method or "", query, request.headers, path)
            request.auth = principal  # type: ignore[attr-defined]
            reservation = enter_limited(principal, request_size(request)) if request.method == "POST" else None
            try:
                response = view(request, *args, **kwargs)
            finally:
                if reservation is not None:
                    reservation.close()
            for name, value in (reservation.headers() if reservation is not None else {}).items():
                response[name] = value
            return response

        return open_endpoint(*call_methods(path), write=write)(for_the_agent)

    return wrap


def enter_limited(principal: Principal, size: int) -> Reservation | None:
    """Count a call with a body of `size` bytes against the agent's limits; must be called in a thread.

    Return the reservation, or None if the agent has no limits.
    """
    reservation = make_reservation(principal.holders)
    try:
        if reservation is not None:
            reservation.enter_in_thread(size)
    except LimitReachedError as error:
        raise limit_gateway_error(error) from None
    return reservation


def request_size(request: HttpRequest) -> int:
    length = request.META.get("CONTENT_LENGTH") or ""
    return int(length) if length.isdigit() else 0


def open_endpoint(*methods: str, write: WriteError = error_body) -> Callable[[View], View]:
    """Wrap a view that needs no authentication.

    `write` formats errors, CSRF tokens are not checked, and the gateway's short lock timeout applies.
    """

    def wrap(view: View) -> View:
        @csrf_exempt
        @wraps(view)
        def guarded(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
            try:
                check_method(request.method, request.path, methods)
                with lock_timeout(WAIT_SECONDS):
                    response = view(request, *args, **kwargs)
            except GatewayError as error:
                return error_response(error, read_request_id(request), write)
            except Exception as error:  # API clients must never receive an HTML error page.
                return error_response(fault_error(error), read_request_id(request), write)
            response.headers.setdefault("x-request-id", read_request_id(request))
            return response

        return guarded

    return wrap


__all__ = ["actor_for", "admit_caller", "admit_known_caller", "check_method", "endpoint", "open_endpoint"]
