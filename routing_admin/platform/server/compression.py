"""Pages and JSON in gzip, for browsers and programs that take it; never what comes piece by piece.

A page holds the secret of its forms beside words of whoever sent a link. Its length tells nothing (BREACH, RFC 9110
§17.8): that secret is masked anew in every page, and a random number of bytes stands in the compressed header.
"""

from __future__ import annotations

import re

from django.http import HttpRequest, HttpResponseBase
from django.middleware.gzip import GZipMiddleware

TEXTS = re.compile(r"text/(?!event-stream)|application/(\w+\+)?json|application/javascript|image/svg")
DATA_PLANE = ("/v1/", "/v1beta/")
"""Calls of agents, whose answers are streams or small, and whose programs wait for every millisecond."""


class CompressionMiddleware(GZipMiddleware):
    """Compresses whole texts of pages and of `/api/v1`; downloads, parts and streams stay as they are."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """The answer, compressed where that makes it shorter."""
        is_text = TEXTS.match(response.headers.get("Content-Type", ""))
        if response.streaming or not is_text or request.path_info.startswith(DATA_PLANE):
            return response
        answer: HttpResponseBase = super().process_response(request, response)
        return answer
