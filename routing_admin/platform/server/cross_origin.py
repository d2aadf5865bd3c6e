"""Allow pages of other origins to call the agents' APIs from a browser (CORS, Fetch standard §3.2), off by default.

Only the agents' APIs are shared, and only for calls with keys. Cookies are never accepted from other origins, so their
pages cannot use a user's session with this installation. Preflight requests are answered immediately, without a key or
a database query.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any

from routing_admin.platform.server.answers import send_refusal
from routing_admin.platform.server.request_limit import App, Receive, Send, scope_headers
from routing_admin.platform.server.url_aliases import resolve_path

SETTING = "ROUTING_ADMIN_CORS_ORIGINS"
SHARED = re.compile(r"/(?:v1|v1beta|mcp|api/v1(?!/docs$))(?:/.*)?", re.S)
"""Paths of the agents' APIs, except their documentation page."""
METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
MAX_AGE = "600"
"""How long a browser caches the response to a preflight request, in seconds."""
READABLE = (
    "x-request-id",
    "request-id",
    "x-should-retry",
    "retry-after",
    "www-authenticate",
    "allow",
    "location",
    "etag",
    "x-revision",
    "accept-ranges",
    "content-range",
    "content-disposition",
    "mcp-session-id",
    "mcp-protocol-version",
)
"""Response headers that pages may read, in addition to headers that CORS always allows and headers with one of the
prefixes below.
"""
PREFIXES = ("x-routing-", "x-ratelimit-", "ratelimit", "anthropic-ratelimit-")
TOKENS = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,4096}")
"""Pattern of a comma-separated list of header names (RFC 9110 §5.6.2)."""
Headers = list[tuple[bytes, bytes]]


def share(app: App, origins: Collection[str]) -> App:
    """Wrap the application so that pages of `origins` may read its responses; `*` means all origins.

    Without origins, return the application unchanged.
    """
    if not origins:
        return app
    any_origin = "*" in origins

    async def application(scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not SHARED.fullmatch(resolve_path(scope["path"])):
            await app(scope, receive, send)
            return
        headers = scope_headers(scope)
        origin = headers.get("origin", "")
        grant = "*" if any_origin else origin if origin in origins else ""
        # A preflight request contains no key, so it is answered before authentication.
        if origin and scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            await _answer_preflight(scope, grant, headers.get("access-control-request-headers", ""), send)
            return

        async def sharing(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": _add_grant(message["headers"], grant if origin else "", any_origin)}
            await send(message)

        await app(scope, receive, sharing)

    return application


async def _answer_preflight(scope: Any, grant: str, requested_headers: str, send: Send) -> None:
    if not grant:
        message = f"Pages from this origin cannot call this API. An administrator can add it to {SETTING}."
        await send_refusal(scope, 403, "origin_not_allowed", message, send)
        return
    headers: Headers = [
        (b"access-control-allow-origin", grant.encode("latin-1")),
        (b"access-control-allow-methods", METHODS.encode()),
        (b"access-control-max-age", MAX_AGE.encode()),
        (b"vary", b"Origin, Access-Control-Request-Method, Access-Control-Request-Headers"),
    ]
    if TOKENS.fullmatch(requested_headers):
        headers.append((b"access-control-allow-headers", requested_headers.encode()))
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def _add_grant(headers: Iterable[tuple[bytes, bytes]], grant: str, any_origin: bool) -> Headers:
    answer = list(headers)
    # The `Vary` header makes caches distinguish responses to different origins.
    if not any_origin:
        varies = [value for name, value in answer if name.lower() == b"vary"]
        answer = [pair for pair in answer if pair[0].lower() != b"vary"]
        answer.append((b"vary", b", ".join([*varies, b"Origin"])))
    if grant:
        names = (name.decode("latin-1").lower() for name, _ in answer)
        readable = [*READABLE, *(name for name in names if name.startswith(PREFIXES))]
        answer.append((b"access-control-allow-origin", grant.encode("latin-1")))
        answer.append((b"access-control-expose-headers", ", ".join(dict.fromkeys(readable)).encode("latin-1")))
    return answer
