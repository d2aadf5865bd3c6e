"""Both files of the configuration: out, and in after a look at what would change."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from routing_admin.api.calls import gives
from routing_admin.api.schemas import ImportOut
from routing_admin.configuration import snapshot
from routing_admin.console.base.api import TAG, revision_seen, script_actor
from routing_admin.console.exchange.agent_api import FILE_BODY, FILE_OUT, answer_file, answer_import, named_file
from routing_admin.core.files.exporting import Mode

router = Router(tags=[TAG])


@router.post("/config/import", openapi_extra={**FILE_BODY, **gives(ImportOut)})
def admin_import_config(
    request: HttpRequest,
    dryRun: bool = False,  # noqa: N803
    prune: bool = False,
) -> HttpResponse:
    """Imports a file as one revision, or with `dryRun` returns what would change; 409 for a stale If-Match."""
    return answer_import(request, script_actor(request), revision_seen(request), dry_run=dryRun, prune=prune)


@router.get("/config/{name}", openapi_extra=FILE_OUT)
def admin_export_config(
    request: HttpRequest, name: str, mode: Annotated[Mode, Query(alias="for")] = Mode.FULL
) -> HttpResponse:
    """A file of the configuration, keys only as `${…}`; its ETag is the revision."""
    return answer_file(request, named_file(name), mode, snapshot.current())
