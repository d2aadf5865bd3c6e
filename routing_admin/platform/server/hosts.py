"""Check the `Host` header where Django does not, but not on paths that only probes request."""

from __future__ import annotations

from functools import lru_cache

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponsePermanentRedirect
from django.middleware import common

PROBES = frozenset({"/healthz", "/readyz"})


class CommonMiddleware(common.CommonMiddleware):
    """Django's middleware without the check of probes' hosts, because orchestrators call a server by its address."""

    def process_request(self, request: HttpRequest) -> HttpResponsePermanentRedirect | None:
        return None if request.path in PROBES else super().process_request(request)


@lru_cache(maxsize=100)
def is_known_host(host: str, allowed: tuple[str, ...]) -> bool:
    """Return whether a `Host` header names this installation, by Django's own rules.

    `allowed` is ALLOWED_HOSTS; it is a parameter only to be part of the cache's key.
    """
    request = HttpRequest()
    request.META["HTTP_HOST"] = host
    try:
        request.get_host()
    except DisallowedHost:
        return False
    return True
