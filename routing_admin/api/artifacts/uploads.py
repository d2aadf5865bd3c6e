"""Upload links for agents that cannot send bytes themselves, and responses that contain files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.request import UnreadablePostError
from ninja import Router

from artifacts import library
from artifacts.core.store import BLOCK
from artifacts.library import OfferedUpload, upload_by_link
from artifacts.storage.content import iterate_async
from artifacts.storage.uploads import MAX_NAME, PATH, UploadFailedError
from capabilities.access import request_principal
from capabilities.core.wire import MediaData, Piece, base64_blocks, split_payload
from routing_admin.api.artifacts.schemas import ArtifactOut, UploadLinkIn, UploadLinkOut, artifact_out
from routing_admin.api.calls import CallError, answer, read_as, takes

router = Router()

UNDECLARED = frozenset({"", "application/octet-stream", "application/x-www-form-urlencoded"})
"""Content types that clients send by default if they do not know the file's type."""
BYTES: dict[str, Any] = {
    "requestBody": {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
}


def request_base_url(request: HttpRequest) -> str:
    """Return the base URL that the caller used, such as `https://llm.example`.

    The scheme is https if the settings require it or a trusted proxy reports it.
    """
    host, public = request.get_host(), urlsplit(settings.PUBLIC_URL)
    is_https = request.is_secure() or (public.scheme, public.netloc) == ("https", host)
    return f"{'https' if is_https else 'http'}://{host}"


def link_out(offered: OfferedUpload, base_url: str) -> UploadLinkOut:
    """Return an upload link as JSON; `base_url` is the URL that the agent used for this server."""
    return UploadLinkOut(
        uploadUrl=f"{base_url}{PATH}{offered.token}",
        method="PUT",
        expiresAt=offered.expires_at.isoformat(),
        maxBytes=offered.max_bytes,
        ref=offered.ref,
    )


@router.post("/uploads", response={201: UploadLinkOut}, tags=["artifacts"], openapi_extra=takes(UploadLinkIn))
def offer_upload(request: HttpRequest) -> HttpResponse:
    """Return a link for uploading one file with a single PUT within 15 minutes; the upload needs no key.

    `ref` will be the artifact's reference.
    """
    body, principal = read_as(request, UploadLinkIn), request_principal(request)
    offered = library.offer_upload(principal.agent, principal.key, body.filename, body.mimeType, body.size)
    return answer(link_out(offered, request_base_url(request)), 201)


@router.put("/uploads/{token}", response={201: ArtifactOut}, auth=None, tags=["artifacts"], openapi_extra=BYTES)
def receive_upload(request: HttpRequest, token: str) -> HttpResponse:
    """Store the request body as the file that the link was made for.

    The status is 404 for an unknown link, 410 for a used or expired one, and 413 for a file that is too large.
    """
    # Refuse a content encoding: the bytes are stored as received, so the stored file would be compressed.
    if request.headers.get("content-encoding", "identity") != "identity":
        raise CallError(415, "unsupported_encoding", "Send the file without Content-Encoding.")
    # Refuse a multipart form: the bytes are stored as received, so the file would contain the form's delimiters and
    # headers.
    if request.content_type == "multipart/form-data":
        message = "Send the file's bytes as the body, not a form: curl -T FILE URL."
        raise CallError(415, "unsupported_media_type", message)
    declared = "" if request.content_type in UNDECLARED else request.content_type or ""
    charset = (request.content_params or {}).get("charset", "")
    encoding = charset if declared and 0 < len(charset) <= MAX_NAME else None
    address, request_id = request.META.get("REMOTE_ADDR") or "", getattr(request, "request_id", "")
    row = upload_by_link(token, _blocks(request), declared, encoding, address, request_id)
    return answer(artifact_out(row), 201)


def _blocks(request: HttpRequest) -> Iterator[bytes]:
    try:
        while block := request.read(BLOCK):
            yield block
    except UnreadablePostError as error:
        raise UploadFailedError("The upload is incomplete. Send the file again.") from error


# Responses that contain files. Base64 is written in chunks, so that a file is never completely in memory.


def answer_in_chunks(request: HttpRequest, value: Mapping[str, Any]) -> HttpResponse | StreamingHttpResponse:
    """Return the same JSON response as `answer`, but send the content of each `MediaData` in chunks."""
    pieces = split_payload(value)
    if not any(isinstance(piece, MediaData) for piece in pieces):
        return answer(value)
    blocks = _write_chunks(pieces)
    body = iterate_async(blocks) if isinstance(request, ASGIRequest) else blocks
    response = StreamingHttpResponse(body, content_type="application/json; charset=utf-8")
    # Compute the length of the base64 text before encoding anything.
    length = sum(piece.length if isinstance(piece, MediaData) else len(piece) for piece in pieces)
    response["Content-Length"] = str(length)
    return response


def _write_chunks(pieces: Sequence[Piece]) -> Iterator[bytes]:
    for piece in pieces:
        if isinstance(piece, MediaData):
            yield from base64_blocks(piece.blob)
        elif piece:
            yield piece
