"""Under which id a request comes in, and under which one it is logged: the first middleware."""

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
    """The ids that callers gave to calls of this process lately, none of which a second call has."""

    def __init__(self) -> None:
        self._ids: dict[str, None] = {}

    def claim(self, word: str) -> str:
        """Return the word as an id, with a mark of its own where an earlier call has it; else one of our own."""
        if not REQUEST_ID.fullmatch(word):
            return new_id("req_")
        if word in self._ids:
            return f"{word[:55]}~{new_id('')[-8:]}"
        self._ids[word] = None
        if len(self._ids) > REMEMBERED:
            self._ids.pop(next(iter(self._ids)), None)
        return word

    def clear(self) -> None:
        """Forget them."""
        self._ids.clear()


recent_ids = owned(RecentIds)
"""Those of this process."""


def request_id_of(request: HttpRequest) -> str:
    """The id of this request: the caller's `x-request-id` when it is a plain word, else one of our own."""
    known: str | None = getattr(request, "request_id", None)
    if known:
        return known
    made = make_request_id(request.headers.get(HEADER, ""))
    request.request_id = made  # type: ignore[attr-defined]
    return made


def claim_request_id(request: HttpRequest) -> str:
    """`request_id_of` for a request that is logged: one that no other has."""
    claimed: str | None = getattr(request, "claimed_id", None)
    if claimed:
        return claimed
    made = recent_ids().claim(request.headers.get(HEADER, ""))
    request.request_id = request.claimed_id = made  # type: ignore[attr-defined]
    logs.request_id.set(made)
    return made


def claim_scope_id(scope: MutableMapping[str, Any], headers: Mapping[str, str]) -> str:
    """The same for a call that Django does not see; `headers` are the scope's."""
    made: str
    made = scope[SCOPE_KEY] = recent_ids().claim(headers.get(HEADER, ""))
    logs.request_id.set(made)
    return made


def request_id_of_scope(scope: Mapping[str, Any]) -> str:
    """The id that the request of a scope has, or would be given."""
    words = [value for name, value in scope["headers"] if name == HEADER.encode()]
    return scope.get(SCOPE_KEY) or make_request_id(words[0].decode("latin-1") if len(words) == 1 else "")


def make_request_id(word: str) -> str:
    """The id that a caller gave when it is a plain word, else one of our own."""
    return word if REQUEST_ID.fullmatch(word) else new_id("req_")


class RequestIdMiddleware:
    """Gives each request its id and sends it back."""

    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """The view's response with `x-request-id`."""
        logs.request_id.set(request_id_of(request))
        response = self.get_response(request)
        response.headers.setdefault(HEADER, request_id_of(request))
        return response


# Ids that name and guard nothing: unlike any other, and made without asking the system each time.
#
# `secrets` lets go of the interpreter for each id, and another thread then has it for a while. What must not be
# guessed (keys, tokens) still comes from `secrets`.
#
# An id begins with its second: those that follow one another lie beside one another in the indexes of the log, which
# halves what logging a request costs.

_random = Random()  # noqa: S311  # seeded by the system; ids are no secrets
os.register_at_fork(after_in_child=_random.seed)


def new_id(prefix: str, now: float | None = None) -> str:
    """The prefix and 24 hexadecimal digits: eight for the second it is made in, sixteen at random."""
    return f"{prefix}{int(time.time() if now is None else now):08x}{_random.getrandbits(64):016x}"
