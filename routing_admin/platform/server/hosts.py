"""Whether a `Host` header names this installation, for what Django does not look at itself."""

from __future__ import annotations

from functools import lru_cache

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest


@lru_cache(maxsize=100)
def is_known_host(host: str, allowed: tuple[str, ...]) -> bool:
    """Whether a `Host` header names this installation, as Django looks at it; `allowed` are the settings' hosts."""
    request = HttpRequest()
    request.META["HTTP_HOST"] = host
    try:
        request.get_host()
    except DisallowedHost:
        return False
    return True
