"""Compress pages and JSON, but not streams, with gzip.

A page contains its CSRF secret next to text that the author of a link may control. The compressed length must not
reveal the secret (BREACH, RFC 9110 §17.8). Therefore Django masks the secret differently in each page, and its gzip
header has a random length.
"""

from __future__ import annotations

import re

from django.http import HttpRequest, HttpResponseBase
from django.middleware.gzip import GZipMiddleware

COMPRESSIBLE = re.compile(r"text/(?!event-stream)|application/(\w+\+)?json|application/javascript|image/svg")
UNCOMPRESSED_PATHS = ("/v1/", "/v1beta/")
"""Paths of agent calls, whose responses are not compressed: they are streams or small, and compression takes time."""


class CompressionMiddleware(GZipMiddleware):
    """Compress text responses of pages and `/api/v1`; streaming responses such as downloads stay unchanged."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        is_text = COMPRESSIBLE.match(response.headers.get("Content-Type", ""))
        if response.streaming or not is_text or request.path_info.startswith(UNCOMPRESSED_PATHS):
            return response
        answer: HttpResponseBase = super().process_response(request, response)
        return answer
