"""OpenAI's Files API for artifacts: upload, list, read, download and delete.

A file's id is its artifact's reference, so it is valid as `file_id` in a chat request, and wherever else a reference is
valid.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase

from artifacts.core.errors import ArtifactError, StorageFullError, StoreUnavailableError, TooLargeError
from artifacts.library import delete_artifacts, store_upload
from artifacts.library.storing import find_own_file, list_own_files
from artifacts.storage.content import RowStore, download
from artifacts.storage.uploads import received_files
from capabilities.access import request_principal
from capabilities.core.translatable import translatable
from capabilities.errors import ActionError
from routing_admin.gateway.admission import actor_for, endpoint
from routing_admin.gateway.errors import BadRequestError, GatewayError, json_response
from routing_admin.gateway.fields import missing_field_error
from routing_admin.gateway.media import find_by_either_id

if TYPE_CHECKING:
    from artifacts.models import Artifact

PAGE, MAX_PAGE = 100, 1000
STATUS_OF: dict[type[Exception], int] = {TooLargeError: 413, StorageFullError: 507}


@endpoint("/v1/files")
def files(request: HttpRequest) -> HttpResponse:
    """List the agent's own files, or upload a file."""
    return upload(request) if request.method == "POST" else list_files(request)


@endpoint("/v1/files/{ref}")
def file(request: HttpRequest, ref: str) -> HttpResponse:
    """Return a file's metadata, or delete it."""
    return remove(request, ref) if request.method == "DELETE" else json_response(file_json(find_file(request, ref)))


@endpoint("/v1/files/{ref}/content")
def content(request: HttpRequest, ref: str) -> HttpResponseBase:
    """Return the file as a download; raise `GatewayError` 410 if its bytes are missing or damaged."""
    row = find_file(request, ref)
    try:
        return download(request, row)
    # The store is only temporarily unavailable, so do not report the file as missing.
    except StoreUnavailableError:
        raise
    except ArtifactError as error:
        raise GatewayError(410, error.code, str(error)) from None


def upload(request: HttpRequest) -> HttpResponse:
    """Store the multipart field `file`; `purpose` is stored but has no effect.

    Raise `BadRequestError` if there is no file, or `GatewayError` with the status of the artifact store's error.
    """
    principal = request_principal(request)
    if not (request.content_type or "").startswith("multipart/form-data"):
        raise BadRequestError(translatable("Send multipart/form-data with the fields purpose and file."), "file")
    try:
        uploads = received_files(request)
        if not uploads:
            raise missing_field_error("file")
        purpose = request.POST.get("purpose", "user_data")[:100]
        row = store_upload(
            actor_for(request, principal),
            uploads[0],
            owner=principal.agent,
            metadata={"purpose": purpose},
            expires_in=parse_lifetime(request.POST.get("expires_after[seconds]")),
        )
    # The upload itself is valid, so let `endpoint` report a 503.
    except StoreUnavailableError:
        raise
    except (ArtifactError, ActionError) as error:
        raise GatewayError(STATUS_OF.get(type(error), 400), error.code, str(error), "file") from None
    return json_response(file_json(row))


def list_files(request: HttpRequest) -> HttpResponse:
    """List the agent's files, newest first, or oldest first with `order=asc`; filter by `limit`, `after` and `purpose`.

    Raise `BadRequestError` if `after` is not one of the agent's files.
    """
    principal = request_principal(request)
    newest_first = request.GET.get("order", "desc") != "asc"
    purpose, after = request.GET.get("purpose", ""), request.GET.get("after")
    find = partial(find_own_file, principal.agent, purpose=purpose)
    last = find_by_either_id(find, after) if after else None
    if after and last is None:
        raise BadRequestError(translatable("after is not one of your files."), "after")
    limit = parse_limit(request.GET.get("limit"))
    page = list_own_files(principal.agent, limit=limit, after=last, purpose=purpose, newest_first=newest_first)
    data = [file_json(row) for row in page.rows]
    ids = {"first_id": data[0]["id"], "last_id": data[-1]["id"]} if data else {"first_id": None, "last_id": None}
    return json_response({"object": "list", "data": data, "has_more": page.has_more, **ids})


def remove(request: HttpRequest, ref: str) -> HttpResponse:
    """Delete one of the agent's own files; raise `GatewayError` 404 for any other file."""
    principal = request_principal(request)
    row = find_by_either_id(partial(find_own_file, principal.agent), ref)
    if row is None:
        raise missing_file()
    delete_artifacts(actor_for(request, principal), [row.pk])
    return json_response({"id": row.ref, "object": "file", "deleted": True})


def find_file(request: HttpRequest, ref: str) -> Artifact:
    """Return the artifact with this reference; raise `GatewayError` 404 if the agent has no such artifact."""
    row = find_by_either_id(RowStore(request_principal(request).agent).row, ref)
    if row is None:
        raise missing_file()
    return row


def missing_file() -> GatewayError:
    return GatewayError(404, "artifact_not_found", "There is no such file. GET /v1/files lists yours.", "file_id")


def parse_lifetime(text: str | None) -> float | None:
    """Return a file's lifetime in seconds, or None if it is absent; raise `BadRequestError` for an invalid number."""
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        message = translatable("%(param)s must be a whole number of at least 1.", param="expires_after[seconds]")
        raise BadRequestError(message, "expires_after")
    return float(text)


def parse_limit(text: str | None) -> int:
    """Return the page size; raise `BadRequestError` if it is not between 1 and `MAX_PAGE`."""
    if text is None:
        return PAGE
    if not text.isdecimal() or not 1 <= int(text) <= MAX_PAGE:
        message = translatable("%(param)s must be a whole number from 1 to %(most)s.", param="limit", most=MAX_PAGE)
        raise BadRequestError(message, "limit", "out_of_range")
    return int(text)


def file_json(row: Artifact) -> dict[str, Any]:
    return {
        "id": row.ref,
        "object": "file",
        "bytes": row.size,
        "created_at": int(row.created_at.timestamp()),
        **({"expires_at": int(row.expires_at.timestamp())} if row.expires_at else {}),
        "filename": row.filename or row.id,
        "purpose": row.metadata.get("purpose", "user_data"),
        "status": "processed",
        "kind": row.kind,
        "mime_type": row.mime_type,
    }
