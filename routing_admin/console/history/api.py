"""Administrators' API for the configuration history: list revisions, undo the newest, restore any."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from capabilities.core.providers.redaction import redact
from routing_admin.api.calls import answer
from routing_admin.configuration.history import configuration_at, newest_configuration
from routing_admin.console.base.api import TAG, answer_at_revision, iso, script_actor
from routing_admin.console.base.consequences import consequence_json, find_restore_consequences
from routing_admin.console.base.keyset import PageCursor
from routing_admin.console.base.schemas import EntriesOut, RestoreOut, RevisionsOut, RevisionThing
from routing_admin.console.history.actions import restore, undo
from routing_admin.console.history.queries import list_revisions
from routing_admin.core.configuration.diff import Change, ChangeKind, diff, sentence
from routing_admin.core.configuration.removals import keep_agents

router = Router(tags=[TAG])
# Largest number in a 64-bit column. A larger number gets status 422 instead of causing a database error.
MAX_REVISION = 2**62
PER_PAGE = 30


def parse_change(value: Mapping[str, Any]) -> Change:
    return Change(**{**value, "action": ChangeKind(value["action"])})


@router.get("/history", response=RevisionsOut)
def admin_list_history(
    request: HttpRequest, before: Annotated[int | None, Query(ge=1, le=MAX_REVISION)] = None
) -> HttpResponse:
    """List revisions, newest first. For the next page, pass the last number of this page as `before`."""
    page = list_revisions(PageCursor(before, None), PER_PAGE)
    revisions = [
        RevisionThing(
            number=row.number,
            createdAt=iso(row.created_at),
            actorKind=row.actor_kind,
            actor=row.actor,
            act=row.message,
            # A user may have typed a key into any field, so text that looks like a key is masked.
            changes=[redact(sentence(parse_change(change))) for change in row.changes],
        )
        for row in page.rows
    ]
    return answer(RevisionsOut(revisions=revisions, next=page.rows[-1].number if page.has_older else None))


@router.post("/history/{int:number}/undo", response=EntriesOut)
def admin_undo(request: HttpRequest, number: int) -> HttpResponse:
    """Undo the newest revision. The status is 409 if a newer revision exists."""
    undo(script_actor(request), number)
    return answer_at_revision(EntriesOut())


@router.post("/history/{int:number}/restore", response=RestoreOut)
def admin_restore(request: HttpRequest, number: int, dryRun: bool = False) -> HttpResponse:  # noqa: N803
    """Restore a revision's configuration as a new revision. Agents created since then remain, with their keys.

    With `dryRun`, nothing is written: the answer lists what would change, and how that affects routes and agents. The
    status is 404 for an unknown number.
    """
    if dryRun:
        restored = configuration_at(number)
        changes = diff(newest_configuration(), keep_agents(restored, newest_configuration()))
        consequences = [consequence_json(consequence) for consequence in find_restore_consequences(restored)]
        sentences = [redact(sentence(change)) for change in changes]
        return answer_at_revision(RestoreOut(dryRun=True, changes=sentences, consequences=consequences))
    restore(script_actor(request), number)
    return answer_at_revision(EntriesOut())
