"""Addresses that programs miss by little: doubled slashes, one at the end, the version left out. They are served.

The server asks before it knows who answers, and the first middleware for whoever runs Django alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

CHAT = "/v1/chat/completions"
ELSEWHERE = {
    "/chat/completions": CHAT,
    "/api/chat/completions": CHAT,
    "/api/v1/chat/completions": CHAT,
    "/v1beta/openai/chat/completions": CHAT,
    "/api/v1": "/api/v1/",
}
"""What stands nowhere and can only mean one thing."""
OF_PROGRAMS = re.compile(r"/+(?:api/+)?(?:v1(?:alpha|beta1?)?(?:/.*)?|chat/+completions/*|models/.+:[a-zA-Z]+/*)", re.S)
GEMINI = re.compile(
    r"/(?:api/)?(?:v1\w*/)*(?:(?:projects/[^/]+/locations/[^/]+/)?publishers/[^/]+/)?"
    r"(models/.+:(?:generateContent|streamGenerateContent|countTokens))",
    re.S,
)
"""Gemini's calls, whose clients write another version or none: google-genai writes `v1` from its third release on."""
SLASHES = re.compile(r"/{2,}")


def meant_path(path: str) -> str:
    """The address of a program's call without the slashes that say nothing; a page's is as it is."""
    if not OF_PROGRAMS.fullmatch(path):
        return path
    tidy = SLASHES.sub("/", path).rstrip("/")
    gemini = GEMINI.fullmatch(tidy)
    return f"/v1beta/{gemini[1]}" if gemini else ELSEWHERE.get(tidy, tidy)


class NearMissesMiddleware:
    """Leads a call where it meant to go, without a redirect, which clients follow by a GET."""

    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """The response of the address that was meant."""
        request.path = request.path_info = meant_path(request.path_info)
        return self.get_response(request)
