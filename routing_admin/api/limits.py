"""An agent's limits on the calls of its API: each that brings something counts as a request and by its bytes."""

from __future__ import annotations

from django.http import HttpRequest

from capabilities.access import Principal
from routing_admin.api.calls import AgentKeyAuth, CallError
from routing_admin.limits.reservations import LimitReachedError, limit_headers, reservation_of

COUNTED = frozenset({"POST", "PUT"})
OWN_COUNT = frozenset({"/api/v1/llm/send"})
"""Calls that ask a model: they reserve more, and wait without holding a thread."""


class LimitedKeyAuth(AgentKeyAuth):
    """`AgentKeyAuth`, which lets in no more than the agent's limits do."""

    def __call__(self, request: HttpRequest) -> Principal:
        """Who calls. Raises `CallError`, also 429 where a limit is reached, and 503 where nobody can say."""
        principal = super().__call__(request)
        if not principal.holders or request.method not in COUNTED or request.path in OWN_COUNT:
            return principal
        hold = reservation_of(principal.holders)
        if hold is not None:
            try:
                hold.enter_in_thread(size_of(request))
            except LimitReachedError as error:
                raise call_error_of(error) from None
            finally:
                hold.close()
        return principal


def size_of(request: HttpRequest) -> int:
    """How many bytes the request says that its body has."""
    length = request.META.get("CONTENT_LENGTH") or ""
    return int(length) if length.isdigit() else 0


def call_error_of(error: LimitReachedError) -> CallError:
    """What an agent's limits do not let in, for a caller of this API."""
    refused = CallError(error.status, error.code, error.message)
    refused.headers = limit_headers(error)
    return refused
