"""Build a call's URL: the endpoint if it already ends in the call's path, else the endpoint with the path appended."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import urlsplit, urlunsplit


@lru_cache(maxsize=1000)
def call_url(endpoint: str, call: str) -> str:
    """Return the call's full URL. The endpoint's query is preserved, and `/v1` is never inserted."""
    parts = urlsplit(endpoint.strip())
    path = parts.path.rstrip("/")
    return urlunsplit(parts._replace(path=path if path.endswith(call) else path + call, fragment=""))


@lru_cache(maxsize=1000)
def sibling_url(endpoint: str, call: str, sibling: str) -> str:
    """Return the full URL of another call of the same API, for an endpoint that may end in `call`."""
    parts = urlsplit(endpoint.strip())
    path = parts.path.rstrip("/").removesuffix(call)
    return call_url(urlunsplit(parts._replace(path=path)), sibling)
