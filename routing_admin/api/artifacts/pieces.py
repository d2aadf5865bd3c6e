"""Answers that hold files: their base64 is written in pieces, so that a file is never in memory as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse

from artifacts.storage.downloads import in_turn
from capabilities.core.wire import MediaData, Piece, base64_blocks, split_payload
from routing_admin.api.calls import answer


def answer_in_pieces(request: HttpRequest, value: Mapping[str, Any]) -> HttpResponse | StreamingHttpResponse:
    """A JSON response like `answer`, byte for byte, in which a file stands where the value has a `MediaData`."""
    pieces = split_payload(value)
    if not any(isinstance(piece, MediaData) for piece in pieces):
        return answer(value)
    blocks = _blocks(pieces)
    body = in_turn(blocks) if isinstance(request, ASGIRequest) else blocks
    response = StreamingHttpResponse(body, content_type="application/json; charset=utf-8")
    length = sum(piece.length if isinstance(piece, MediaData) else len(piece) for piece in pieces)
    response["Content-Length"] = str(length)
    return response


def _blocks(pieces: Sequence[Piece]) -> Iterator[bytes]:
    for piece in pieces:
        if isinstance(piece, MediaData):
            yield from base64_blocks(piece.blob)
        elif piece:
            yield piece
