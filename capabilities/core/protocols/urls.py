"""Build the URL of a model call: the endpoint, followed by the call's path unless the endpoint already ends in it."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import urlsplit, urlunsplit


@lru_cache(maxsize=1000)
def call_url(endpoint: str, call: str) -> str:
    """Return the full URL of a call. The endpoint's query string is preserved, and `/v1` is never inserted."""
    parts = urlsplit(endpoint.strip())
    path = parts.path.rstrip("/")
    return urlunsplit(parts._replace(path=path if path.endswith(call) else path + call, fragment=""))


@lru_cache(maxsize=1000)
def sibling_url(endpoint: str, call: str, sibling: str) -> str:
    """Return the full URL of another call to the same API. The endpoint may already end in the path of `call`."""
    parts = urlsplit(endpoint.strip())
    path = parts.path.rstrip("/").removesuffix(call)
    return call_url(urlunsplit(parts._replace(path=path)), sibling)
