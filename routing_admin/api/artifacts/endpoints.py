"""Endpoints of the agents' API for artifacts, for tools such as get_artifact, and for messages with attachments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from ninja import Query, Router
from pydantic import BeforeValidator, WithJsonSchema

from artifacts import library as actions
from artifacts.core.delivery.get_artifact import ArtifactNotFound
from artifacts.core.delivery.tools import tool_definitions
from artifacts.library import queries as library
from artifacts.storage.content import RowStore, build_file_part, download, open_artifact
from artifacts.storage.uploads import received_files
from capabilities.access import request_principal
from capabilities.core.message import Blob, FilePart, UnreadableError, make_blob
from capabilities.core.problems import Problem
from capabilities.core.services.adapter import AttachmentInfo, ContentAdapter
from capabilities.core.services.agents import AgentProfile, has_capability_for
from capabilities.core.services.capability_router import AgentMessage, CapabilityRouter, Loaded, RoutingResult
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import WriteData, base64_text, open_media
from capabilities.errors import InvalidError
from capabilities.json_bodies import load_json
from routing_admin.api.artifacts.describing import describer_for, description_text
from routing_admin.api.artifacts.schemas import (
    ArtifactOut,
    ArtifactsOut,
    ContentRouteOut,
    CorrectionIn,
    PreviewOut,
    TextArtifactIn,
    ToolsOut,
    UploadIn,
    artifact_out,
)
from routing_admin.api.artifacts.tool_calls import ToolCaller, agent_service_id, choose_language, read_artifact
from routing_admin.api.artifacts.uploads import answer_in_chunks
from routing_admin.api.calls import CallError, agent_actor, answer, parse_as, read_as, takes
from routing_admin.api.service_schemas import MessageIn, RequiredIn, RequiredOut, RouteMessageIn, RoutingResultOut
from routing_admin.configuration import snapshot
from routing_admin.dispatch.model_endpoints import build_registry, default_language, list_readers
from routing_admin.dispatch.preview import preview

if TYPE_CHECKING:
    from artifacts.models import Artifact


@dataclass(frozen=True, slots=True)
class Messages:
    """Routes one agent's messages. It loads the attachments that the agent may read and completes their metadata.

    `describe` lets a model describe a file; it is None if the agent did not request descriptions.
    """

    agent: str
    language: str | None = None
    describe: Callable[[FilePart | None], str] | None = None

    def route(self, message: AgentMessage, service_id: str, write: WriteData = base64_text) -> RoutingResult:
        """Return the message in the form that the service can receive (MCR-2); `write` encodes a file's data."""
        store = RowStore(self.agent)
        rows = {attachment.artifact_ref: store.row(attachment.artifact_ref) for attachment in message.attachments}
        completed = tuple(_complete(attachment, rows[attachment.artifact_ref]) for attachment in message.attachments)
        registry = build_registry(snapshot.current())
        adapter = ContentAdapter(
            registry,
            snapshot.current().directory,
            self.language or default_language(),
            can_read=can_really_read,
            agent_id=self.agent,
        )
        router = CapabilityRouter(
            registry,
            adapter,
            lambda attachment: _load(rows[attachment.artifact_ref]),
            write,
            lambda attachment: self._describe_row(rows[attachment.artifact_ref]),
        )
        return router.route_content(AgentMessage(message.text, completed), service_id)

    def _describe_row(self, row: Artifact | None) -> str:
        return self.describe(build_file_part(row)) if self.describe is not None and row is not None else ""


def can_really_read(agent: AgentProfile, file: FilePart) -> bool:
    """Return whether the agent's model would accept this file.

    If the file's type is unknown, check only whether the model can read files of this kind, such as images.
    """
    if file.mime_type == "application/octet-stream":
        return has_capability_for(agent, file)
    return agent.id in list_readers(snapshot.current(), replace(file, content=_MetadataOnly()))


@dataclass(frozen=True, slots=True)
class _MetadataOnly:
    """Placeholder content for decisions that depend only on a file's metadata."""

    def blob(self) -> Blob:
        return make_blob(b"")

    def text(self) -> None:
        return None

    def convert(self, _: object) -> None:
        return None


def _complete(attachment: AttachmentInfo, row: Artifact | None) -> AttachmentInfo:
    # Stored metadata supplies the fields that the message omits (MCR-3.2, 3.4).
    if row is None:
        return attachment
    return replace(
        attachment,
        filename=attachment.filename or row.filename or None,
        size=row.size if attachment.size is None else attachment.size,
        mime_type=attachment.mime_type or row.mime_type,
    )


def _load(row: Artifact | None) -> Loaded:
    # Opening the content does not read its bytes.
    artifact = open_artifact(row) if row is not None else None
    if artifact is None or artifact.unreadable or artifact.content is None:
        raise UnreadableError((artifact.unreadable if artifact else None) or "artifact_missing")
    return Loaded(artifact.content.blob(), artifact.mime_type, artifact.filename, artifact.part())


router = Router()

UPLOAD_BODY: dict[str, Any] = takes(TextArtifactIn)
UPLOAD_BODY["requestBody"]["content"]["multipart/form-data"] = {
    "schema": {
        "type": "object",
        "required": ["file"],
        "properties": {
            "file": {"type": "string", "format": "binary"},
            **UploadIn.model_json_schema()["properties"],
            "metadata": {"type": "string", "description": "A JSON object."},
        },
    }
}
AnyKind = Annotated[
    Kind | None,
    BeforeValidator(lambda value: value or None),
    WithJsonSchema({"type": "string", "enum": ["", *Kind]}),
]
"""An artifact kind, or an empty string for all kinds."""
Language = Annotated[str | None, Query(max_length=35)]


@router.get("/tools", tags=["messages"], response=ToolsOut)
def list_tools(request: HttpRequest, language: Language = None) -> HttpResponse:
    """Return the agents' tools as function definitions that fit the `tools` field of a chat request."""
    return answer({"tools": tool_definitions(choose_language(language))})


@router.post(
    "/messages/route",
    response=RoutingResultOut,
    tags=["messages"],
    openapi_extra=takes(RouteMessageIn),
)
def route_message(request: HttpRequest) -> HttpResponseBase:
    """Return a message as a service can receive it: attachments that it supports as data, others as descriptions.

    With `describe`, a model writes these descriptions; this requires the scope `route`.
    """
    body, agent = read_as(request, RouteMessageIn, any_text=True), request_principal(request).agent
    service = body.serviceId or agent_service_id(agent)
    describe_file = describer_for(request, choose_language(body.language)) if body.describe else None
    describe_text = partial(description_text, describe=describe_file) if describe_file else None
    routed = Messages(agent, body.language, describe_text).route(build_message(body.message), service, open_media)
    return answer_in_chunks(request, routed.as_json())


@router.post(
    "/messages/required-capabilities",
    response=RequiredOut,
    tags=["messages"],
    openapi_extra=takes(RequiredIn),
)
def required_capabilities(request: HttpRequest) -> HttpResponse:
    """Return the capabilities that a model needs to read the whole message."""
    message = build_message(read_as(request, RequiredIn, any_text=True).message)
    capabilities = dict.fromkeys(["text", *(attachment.capability for attachment in message.attachments)])
    return answer(RequiredOut(capabilities=list(capabilities)))


@router.post("/artifacts", response={201: ArtifactOut}, tags=["artifacts"], openapi_extra=UPLOAD_BODY)
def store_artifact(request: HttpRequest) -> HttpResponse:
    """Store a file (multipart `file`) or text (JSON `{text, filename}`), which may be empty.

    The status is 415 for any other content type.
    """
    kind = (request.content_type or "").lower()
    if kind == "multipart/form-data":
        return answer(artifact_out(_store_uploaded(request)), 201)
    if kind == "application/json":
        body = read_as(request, TextArtifactIn, any_text=True)
        row = actions.store_text(agent_actor(request), body.text, **_label_fields(request, body))
        return answer(artifact_out(row), 201)
    raise CallError(415, "unsupported_media_type", "Send multipart/form-data with a part named file, or JSON {text}.")


def _store_uploaded(request: HttpRequest) -> Artifact:
    files = received_files(request)
    if len(files) != 1:
        message = "Send exactly one part named file, with a filename."
        raise InvalidError([Problem("file", message, "required" if not files else "range")])
    # An empty form field counts as omitted.
    form = {name: str(request.POST[name]) for name in UploadIn.model_fields if request.POST.get(name)}
    fields = {name: _parse_object(text) if name == "metadata" else text for name, text in form.items()}
    body = parse_as(fields, UploadIn)
    return actions.store_upload(agent_actor(request), files[0], **_label_fields(request, body))


def _parse_object(text: str) -> Any:
    try:
        return load_json(text.encode())
    except ValueError:
        raise InvalidError([Problem("metadata", "metadata must be a JSON object.", "type")]) from None


def _label_fields(request: HttpRequest, body: TextArtifactIn | UploadIn) -> actions.MetadataFields:
    return {
        "owner": request_principal(request).agent,
        "filename": body.filename,
        "type": body.type,
        "metadata": body.metadata or {},
        "visibility": body.visibility,
        "expires_in": body.expiresInSeconds,
    }


@router.get("/artifacts", response=ArtifactsOut, tags=["artifacts"])
def list_artifacts(
    request: HttpRequest,
    cursor: str = "",
    limit: Annotated[int, Query(ge=1, le=library.MAX_PAGE)] = library.PAGE,
    q: str = "",
    kind: AnyKind = None,
) -> HttpResponse:
    """List the calling agent's own artifacts, newest first."""
    page = library.list_artifacts(
        owner=request_principal(request).agent, cursor=cursor, limit=limit, q=q, kind=kind or ""
    )
    return answer(ArtifactsOut(artifacts=[artifact_out(row) for row in page.rows], nextCursor=page.next_cursor))


@router.get("/artifacts/{path:ref}/raw", tags=["artifacts"])
async def raw_artifact(request: HttpRequest, ref: str) -> HttpResponseBase:
    """Download the content; the status is 410 if the content is missing or damaged."""
    row = await sync_to_async(find_readable)(request, ref)
    return await sync_to_async(download)(request, row)


@router.get("/artifacts/{path:ref}/info", response=ArtifactOut, tags=["artifacts"])
def artifact_info(request: HttpRequest, ref: str) -> HttpResponse:
    """Return an artifact's metadata and the evidence for its type."""
    return answer(artifact_out(find_readable(request, ref)))


@router.get("/artifacts/{path:ref}/preview", response=PreviewOut, tags=["artifacts"])
def artifact_preview(request: HttpRequest, ref: str, language: Language = None) -> HttpResponse:
    """Show how every model service would receive the artifact: the exact payload, but without file data."""
    row = find_readable(request, ref)
    previewed = preview(row, language=language, agent=request_principal(request).agent)
    return answer(
        PreviewOut(
            artifact=artifact_out(row),
            request=previewed.request,
            deliveries=[delivery.as_json() for delivery in previewed.deliveries],
            canRead=list(previewed.readers),
        )
    )


@router.post("/artifacts/{path:ref}/attachments/{int:number}", response={201: ArtifactOut}, tags=["artifacts"])
def store_attachment(request: HttpRequest, ref: str, number: int) -> HttpResponse:
    """Store an attachment of an email, identified by its number in the email's text, as the calling agent's artifact.

    Equal bytes are stored once. The status is 404 if the email has no such attachment, or if the attachment is larger
    than the upload limit.
    """
    row = find_readable(request, ref)
    stored = actions.store_attachment(
        agent_actor(request), row, number, request_principal(request).agent, settings.MAX_UPLOAD_BYTES
    )
    if stored is None:
        raise CallError(404, "attachment_not_found", f"This file has no attachment {number} that can be stored.")
    return answer(artifact_out(stored), 201)


@router.get("/artifacts/{path:ref}", response=ContentRouteOut, tags=["artifacts"])
def route_artifact(
    request: HttpRequest,
    ref: str,
    serviceId: Annotated[str | None, Query(max_length=200)] = None,  # noqa: N803 - the name in the query
    offset: Annotated[int | None, Query(ge=0)] = None,
    limit: Annotated[int | None, Query(ge=1)] = None,
    language: Language = None,
    describe: bool = False,
) -> HttpResponseBase:
    """Return the artifact in the form that the given service, or the calling agent's service, can read (get_artifact).

    With `describe`, a model describes a file that the service cannot read; this requires the scope `route`. The status
    is 422 for an `offset` or `limit` (in characters) out of range, and 404 for an artifact that this agent cannot find.
    """
    caller = ToolCaller(
        agent=request_principal(request).agent, actor=agent_actor(request), language=choose_language(language)
    )
    describe_file = describer_for(request, caller.language) if describe else None
    result = read_artifact(
        caller, ref, service_id=serviceId, offset=offset, limit=limit, write=open_media, describe=describe_file
    )
    if isinstance(result, ArtifactNotFound):
        raise not_found(ref, result.message)
    return answer_in_chunks(request, result.as_json())


@router.patch("/artifacts/{path:ref}", response=ArtifactOut, tags=["artifacts"], openapi_extra=takes(CorrectionIn))
def correct_artifact(request: HttpRequest, ref: str) -> HttpResponse:
    """Correct the type, encoding or visibility of one of the calling agent's artifacts.

    A corrected type or encoding overrides the declared and the detected one immediately and everywhere. The status is
    403 for another agent's artifact.
    """
    body, row = read_as(request, CorrectionIn), find_own(request, ref)
    fields = actions.CorrectionFields()
    # null restores the detected value; an omitted field changes nothing.
    if "mimeType" in body.model_fields_set:
        fields["mime_type"] = body.mimeType
    if "encoding" in body.model_fields_set:
        fields["encoding"] = body.encoding
    if "visibility" in body.model_fields_set:
        fields["visibility"] = body.visibility
    return answer(artifact_out(actions.correct_artifact(agent_actor(request), row, **fields)))


@router.delete("/artifacts/{path:ref}", response={204: None}, tags=["artifacts"])
def delete_artifact(request: HttpRequest, ref: str) -> HttpResponse:
    """Delete one of the calling agent's artifacts. The status is 403 for another agent's artifact."""
    row = find_own(request, ref)
    actions.delete_artifacts(agent_actor(request), [row.pk])
    return HttpResponse(status=204)


def find_readable(request: HttpRequest, ref: str) -> Artifact:
    """Return the artifact if the calling agent may read it; raise `CallError` 404 otherwise."""
    row = RowStore(request_principal(request).agent).row(ref)
    if row is None:
        raise not_found(ref, "The artifact does not exist or has been deleted.")
    return row


def find_own(request: HttpRequest, ref: str) -> Artifact:
    """Return the artifact if the calling agent stored it; raise `CallError` 404, or 403 for another agent's."""
    row = find_readable(request, ref)
    if row.owner != request_principal(request).agent:
        raise CallError(403, "forbidden", "Only the agent that stored an artifact can change or delete it.", ref=ref)
    return row


def not_found(ref: str, message: str) -> CallError:
    # Give the same response for a missing artifact, another agent's private artifact, and an invalid reference.
    return CallError(404, "artifact_not_found", message, ref=ref)


def build_message(body: MessageIn) -> AgentMessage:
    attachments = (
        AttachmentInfo(
            attachment.type, attachment.artifactRef, attachment.filename, attachment.size, attachment.mimeType
        )
        for attachment in body.attachments or ()
    )
    return AgentMessage(body.text or "", tuple(attachments))
