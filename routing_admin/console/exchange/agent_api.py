"""Endpoints of the agents' API for task routes, providers and configuration files."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from artifacts.storage.uploads import IN_MEMORY, received_files
from capabilities.actors import Actor
from capabilities.core.problems import Problem
from capabilities.errors import ConflictError, InvalidError, NotFoundError
from capabilities.json_bodies import MIB, JsonTooLargeError, check_json
from routing_admin.api.calls import CallError, agent_actor, answer, read_body
from routing_admin.api.errors import problem_details
from routing_admin.api.schemas import ImportOut, ProviderOut, ProvidersOut, RouteOut, RoutesOut
from routing_admin.configuration import exports, snapshot
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.console.base.api import parse_revision_tag
from routing_admin.console.base.consequences import consequence_json, find_consequences
from routing_admin.console.exchange.actions import ImportPreview, check_may_import, import_configuration, preview_import
from routing_admin.core.configuration.diff import sentence
from routing_admin.core.documents.problem_sentences import errors
from routing_admin.core.files.exporting import Mode
from routing_admin.core.files.importing import FileFormat
from routing_admin.core.files.llm_routing import write_route

MAX_WAIT = 60.0
# Maximum time to wait for a new revision, and time between two checks for one, in seconds.
POLL_SECONDS = 0.25

router = Router()
FILE_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "llm-routing.json or llmservices.json, or both as multipart parts named file.",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
}
FILE_OUT: dict[str, Any] = {"responses": {200: {"content": {"application/json": {"schema": {"type": "object"}}}}}}
"""OpenAPI schemas for a configuration file in requests and responses."""


@router.get("/routes", tags=["configuration"], response=RoutesOut)
def list_routes(request: HttpRequest) -> HttpResponse:
    """List the task routes in their configured order, written as in llm-routing.json."""
    configuration = snapshot.current().configuration
    names = {provider.name for provider in configuration.providers}
    routes = [
        RouteOut(**{"taskType": route.task_type, "fallback": [], **write_route(route, names)})
        for route in configuration.routes
    ]
    return answer(RoutesOut(routes=routes))


@router.get("/providers", tags=["configuration"], response=ProvidersOut)
def list_providers(request: HttpRequest) -> HttpResponse:
    """List the providers in their configured order, and whether each can be called; keys are never returned."""
    return answer(ProvidersOut(providers=list_providers_out(snapshot.current())))


def list_providers_out(state: Snapshot) -> list[ProviderOut]:
    providers = []
    for provider in state.configuration.providers:
        key = state.keys[provider.name]
        reason = key.reason or ("" if provider.enabled else f"{provider.name} is disabled.")
        providers.append(
            ProviderOut(
                providerName=provider.name,
                protocol=provider.protocol,
                endpoint=provider.endpoint,
                defaultModel=provider.default_model,
                enabled=provider.enabled,
                usable=provider.enabled and key.usable,
                **({"reason": reason} if reason else {}),
            )
        )
    return providers


@router.post(
    "/config/import",
    tags=["configuration"],
    response=ImportOut,
    openapi_extra=FILE_BODY,
)
def import_config(request: HttpRequest, dryRun: bool = False, prune: bool = False) -> HttpResponse:  # noqa: N803
    """Import a file as one revision or, with `dryRun`, return what would change and how that affects routes and agents.

    `If-Match` names the revision that the caller has read; the status is 409 if there is a newer revision. If the file
    has an error, nothing changes and the status is 422 with every problem.
    """
    expected = parse_revision_tag(request.headers.get("if-match", ""))
    return answer_import(request, agent_actor(request), expected, dry_run=dryRun, prune=prune)


def answer_import(
    request: HttpRequest, actor: Actor, expected: int | None, *, dry_run: bool, prune: bool
) -> HttpResponse:
    """Import the files in the request body, or preview the import. Return the response.

    Raise `InvalidError` with all problems, and `ConflictError` if `expected` is not the newest revision.
    """
    files = read_files(request)
    if not dry_run:
        applied = import_configuration(actor, files, prune=prune, expected=expected)
        return answer(import_out(applied.preview, applied.revision or applied.preview.revision))
    preview = preview_import(files, prune=prune)
    if expected is not None and expected != (preview.revision or 0):
        raise ConflictError("The configuration changed in the meantime. Review the new difference, then apply.")
    if not preview.imported.accepted:
        raise InvalidError(errors(preview.imported.problems))
    check_may_import(actor, preview)
    consequences = [consequence_json(consequence) for consequence in find_consequences(preview.imported.configuration)]
    return answer(import_out(preview, preview.revision, dryRun=True, consequences=consequences))


@router.get(
    "/config/{name}",
    tags=["configuration"],
    openapi_extra=FILE_OUT,
)
async def export_config(
    request: HttpRequest,
    name: str,
    mode: Annotated[Mode, Query(alias="for")] = Mode.FULL,
    wait: Annotated[float, Query(ge=0, description=f"Seconds, of which {MAX_WAIT:g} are waited at most.")] = 0,
    since: int | None = None,
) -> HttpResponse:
    """Return a configuration file, with keys only as `${…}`; its ETag is the revision.

    With `since`, the answer is immediate unless `since` is the current revision. In that case, it is delayed until
    there is a newer revision, or for at most `wait` seconds. `If-None-Match` with the current ETag gives 304.
    """
    file = parse_format(name)
    return answer_file(request, file, mode, await wait_for_change(since, min(wait, MAX_WAIT)))


def answer_file(request: HttpRequest, file: FileFormat, mode: Mode, state: Snapshot) -> HttpResponse:
    """Return a configuration file from the snapshot, or 304 if the request names its ETag."""
    tag = f'"{state.revision or 0}"'
    if request.headers.get("if-none-match") == tag:
        response = HttpResponse(status=304)
    else:
        text = exports.export(file, mode, state.configuration).text
        response = HttpResponse(text, content_type="application/json; charset=utf-8")
    response["ETag"], response["x-revision"] = tag, str(state.revision or 0)
    # A private cache may store the file but must revalidate it, using its ETag.
    response["Cache-Control"] = "private, no-cache"
    return response


async def wait_for_change(since: int | None, wait: float) -> Snapshot:
    """Wait at most `wait` seconds until the newest revision differs from `since`. Return the current snapshot."""
    read_snapshot, end = sync_to_async(snapshot.current), time.monotonic() + wait
    state = await read_snapshot()
    while since is not None and (state.revision or 0) == since and time.monotonic() < end:
        await asyncio.sleep(min(POLL_SECONDS, max(end - time.monotonic(), 0)))
        state = await read_snapshot()
    return state


def parse_format(name: str) -> FileFormat:
    try:
        return FileFormat(name.removesuffix(".json"))
    except ValueError:
        raise NotFoundError(f"There is no file {name}. There are: {', '.join(FileFormat)}.") from None


def import_out(preview: ImportPreview, revision: int | None, **dry_run: Any) -> ImportOut:
    return ImportOut(
        revision=revision,
        changes=[
            {
                "action": change.action.value,
                "kind": change.kind,
                "name": change.name,
                "field": change.field,
                "text": sentence(change),
            }
            for change in preview.changes
        ],
        problems=problem_details(preview.imported.problems),
        keptUnknown=list(preview.imported.kept_unknown),
        **dry_run,
    )


def read_files(request: HttpRequest) -> list[bytes]:
    """Return the files in a request: its whole body, or every multipart part named `file`.

    Raise `InvalidError` if there is no file, or if a file is too large for memory.
    """
    if request.content_type != "multipart/form-data":
        return [check_text(read_body(request))]
    files = received_files(request)
    if not files or any(file.file is None for file in files):
        message = f"Send one or two parts named file, each below {IN_MEMORY // MIB} MiB."
        raise InvalidError([Problem("file", message, "required")])
    return [check_text(file.open().read()) for file in files]


def check_text(data: bytes) -> bytes:
    """Return the file's text unchanged. Raise `CallError` if it contains too many JSON values."""
    try:
        check_json(data)
    except JsonTooLargeError as error:
        raise CallError(error.status, error.code, str(error)) from None
    return data
