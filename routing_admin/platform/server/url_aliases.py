"""Serve URLs that clients get slightly wrong, such as doubled or trailing slashes or another API version.

The ASGI application corrects the path before it chooses a handler. When Django runs without that application, the
middleware corrects the path.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

CHAT = "/v1/chat/completions"
CORRECT_PATHS = {
    "/chat/completions": CHAT,
    "/api/chat/completions": CHAT,
    "/api/v1/chat/completions": CHAT,
    "/v1beta/openai/chat/completions": CHAT,
    "/api/v1": "/api/v1/",
}
"""Maps paths that do not exist to the only existing path that each can mean."""
OF_PROGRAMS = re.compile(r"/+(?:api/+)?(?:v1(?:alpha|beta1?)?(?:/.*)?|chat/+completions/*|models/.+:[a-zA-Z]+/*)", re.S)
GEMINI = re.compile(
    r"/(?:api/)?(?:v1\w*/)*(?:(?:projects/[^/]+/locations/[^/]+/)?publishers/[^/]+/)?"
    r"(models/.+:(?:generateContent|streamGenerateContent|countTokens))",
    re.S,
)
"""Pattern for paths of Gemini's methods with a different API version or none; google-genai uses `v1` from its third
major version on.
"""
SLASHES = re.compile(r"/{2,}")


def resolve_path(path: str) -> str:
    """Return the correct path for a client's call; paths of pages are returned unchanged."""
    if not OF_PROGRAMS.fullmatch(path):
        return path
    tidy = SLASHES.sub("/", path).rstrip("/")
    gemini = GEMINI.fullmatch(tidy)
    return f"/v1beta/{gemini[1]}" if gemini else CORRECT_PATHS.get(tidy, tidy)


class UrlAliasesMiddleware:
    """Serve the corrected path instead of redirecting to it, because clients would follow a redirect with a GET."""

    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        request.path = request.path_info = resolve_path(request.path_info)
        return self.get_response(request)
