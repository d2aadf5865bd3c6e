"""Check the `Host` header, even outside of Django, except on paths that only health probes request."""

from __future__ import annotations

from functools import lru_cache

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponsePermanentRedirect
from django.middleware import common

PROBES = frozenset({"/healthz", "/readyz"})


class CommonMiddleware(common.CommonMiddleware):
    """Django's middleware without the host check for health probes, because orchestrators use the IP address."""

    def process_request(self, request: HttpRequest) -> HttpResponsePermanentRedirect | None:
        return None if request.path in PROBES else super().process_request(request)


@lru_cache(maxsize=100)
def is_known_host(host: str, allowed: tuple[str, ...]) -> bool:
    """Return whether a `Host` header names this installation, by Django's own rules.

    `allowed` is ALLOWED_HOSTS, which is a parameter only because it must be part of the cache key.
    """
    request = HttpRequest()
    request.META["HTTP_HOST"] = host
    try:
        request.get_host()
    except DisallowedHost:
        return False
    return True
