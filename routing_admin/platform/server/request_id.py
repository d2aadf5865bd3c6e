"""Request ids: the caller's id or a new one, and a unique id for each logged request."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, MutableMapping
from random import Random
from typing import Any

from django.http import HttpRequest, HttpResponseBase

from capabilities.runtime import owned
from routing_admin.platform.server import logs

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
HEADER = "x-request-id"
SCOPE_KEY = "routing_admin.request_id"
REMEMBERED = 10_000


class RecentIds:
    """Ids that callers chose for this process's recent requests, so that no two logged requests get the same id."""

    def __init__(self) -> None:
        self._ids: dict[str, None] = {}

    def claim(self, candidate: str) -> str:
        """Return `candidate` as an id, with a random suffix if it was used before, or a new id if it is invalid."""
        if not REQUEST_ID.fullmatch(candidate):
            return new_id("req_")
        if candidate in self._ids:
            return f"{candidate[:55]}~{new_id('')[-8:]}"
        self._ids[candidate] = None
        if len(self._ids) > REMEMBERED:
            self._ids.pop(next(iter(self._ids)), None)
        return candidate

    def clear(self) -> None:
        self._ids.clear()


recent_ids = owned(RecentIds)


def read_request_id(request: HttpRequest) -> str:
    """Return a request's id: the caller's `x-request-id` if it is valid, or else a new id."""
    known: str | None = getattr(request, "request_id", None)
    if known:
        return known
    made = make_request_id(request.headers.get(HEADER, ""))
    request.request_id = made  # type: ignore[attr-defined]
    return made


def claim_request_id(request: HttpRequest) -> str:
    """Return a unique id for a request that will be logged."""
    claimed: str | None = getattr(request, "claimed_id", None)
    if claimed:
        return claimed
    made = recent_ids().claim(request.headers.get(HEADER, ""))
    request.request_id = request.claimed_id = made  # type: ignore[attr-defined]
    logs.request_id.set(made)
    return made


def claim_scope_id(scope: MutableMapping[str, Any], headers: Mapping[str, str]) -> str:
    """Return a unique id for a request that bypasses Django; `headers` are those of its ASGI scope."""
    made: str
    made = scope[SCOPE_KEY] = recent_ids().claim(headers.get(HEADER, ""))
    logs.request_id.set(made)
    return made


def read_scope_id(scope: Mapping[str, Any]) -> str:
    """Return the id that a request with this ASGI scope has or would get."""
    values = [value for name, value in scope["headers"] if name == HEADER.encode()]
    return scope.get(SCOPE_KEY) or make_request_id(values[0].decode("latin-1") if len(values) == 1 else "")


def make_request_id(candidate: str) -> str:
    return candidate if REQUEST_ID.fullmatch(candidate) else new_id("req_")


class RequestIdMiddleware:
    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        logs.request_id.set(read_request_id(request))
        response = self.get_response(request)
        response.headers.setdefault(HEADER, read_request_id(request))
        return response


# The remaining functions generate ids that are unique but not secret, without a system call. `secrets` would release
# the GIL for each id, and this thread would then have to wait for other threads. Values that must not be guessed (keys,
# tokens) still use `secrets`. An id starts with the second in which it was created, so that successive ids are adjacent
# in the request log's indexes, which halves the cost of logging a request.

_random = Random()  # noqa: S311  # seeded by the system; ids are no secrets
os.register_at_fork(after_in_child=_random.seed)


def new_id(prefix: str, now: float | None = None) -> str:
    """Return the prefix and 24 hexadecimal digits: eight for the current second and sixteen random ones."""
    return f"{prefix}{int(time.time() if now is None else now):08x}{_random.getrandbits(64):016x}"
