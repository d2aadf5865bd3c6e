"""Agents' keys: issued with their terms, changed, revoked and rotated."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router

from capabilities.core.permissions import DEFAULT_SCOPES
from capabilities.core.problems import Problem
from capabilities.core.services.key_terms import LIMITS
from capabilities.core.services.labels import LabelKind
from capabilities.errors import ConflictError, InvalidError
from routing_admin.api.calls import answer, gives, read_as, takes
from routing_admin.configuration.agents.actions import change_key, issue_key, revoke_key, roll_key
from routing_admin.configuration.agents.queries import find_agent, find_key, list_keys
from routing_admin.configuration.revisions import ledger
from routing_admin.console.agents.key_forms import KeyTermsForm
from routing_admin.console.base.api import (
    TAG,
    answer_entry,
    check_gives,
    expectation_in,
    iso,
    require,
    script_actor,
)
from routing_admin.console.base.limit_schemas import limit_fields, problems_of
from routing_admin.console.base.schemas import IssuedOut, KeyIn, KeyOut, KeysOut, KeyTermsIn, RotateIn
from routing_admin.console.exchange.entries import check_expectation

if TYPE_CHECKING:
    from capabilities.models import AgentKey

router = Router(tags=[TAG])
OVERLAP = timedelta(hours=24)
"""How long an old key goes on where nobody says otherwise."""
LONGEST = timedelta(days=3650)
"""How far off a key's end may be."""


def key_json(row: AgentKey) -> dict[str, Any]:
    """A key without its secret."""
    return {
        "id": row.public_id,
        "label": row.label,
        "scopes": row.scopes,
        "team": row.terms.get(LabelKind.TEAM, ""),
        "project": row.terms.get(LabelKind.PROJECT, ""),
        "limits": row.terms.get(LIMITS, {}),
        "state": "revoked" if row.revoked_at else "expired" if is_over(row) else "active",
        "createdAt": iso(row.created_at),
        "expiresAt": iso(row.expires_at),
        "lastUsedAt": iso(row.last_used_at),
    }


@router.get("/agents/{path:agent_id}/keys", openapi_extra=gives(KeysOut))
def admin_list_keys(request: HttpRequest, agent_id: str) -> HttpResponse:
    """The keys of an agent, without their secrets."""
    row = require(find_agent(agent_id), "agent", agent_id)
    return answer({"keys": [key_json(key) for key in list_keys(row)]})


@router.post("/agents/{path:agent_id}/keys", response={201: IssuedOut}, openapi_extra=takes(KeyIn))
def admin_issue_key(request: HttpRequest, agent_id: str) -> HttpResponse:
    """A new key, shown only in this answer. 403 for a scope like `config:write` that the token itself lacks."""
    body = read_as(request, KeyIn)
    check_gives(request, body.scopes or (), "Such a key")
    row = require(find_agent(agent_id), "agent", agent_id)
    ends = timezone.now() + timedelta(days=body.days) if body.days else None
    scopes = DEFAULT_SCOPES if body.scopes is None else body.scopes
    form = terms_form(body)
    key, made = issue_key(
        script_actor(request), row, scopes=scopes, label=body.label or "", expires_at=ends, terms=form.terms
    )
    return issued(key, made)


@router.put("/agents/{path:agent_id}/keys/{key_id}", openapi_extra={**takes(KeyTermsIn), **gives(KeyOut)})
def admin_change_key(request: HttpRequest, agent_id: str, key_id: str) -> HttpResponse:
    """Gives a key another name, terms and, where `expiresAt` is said, another end; from now on.

    409 for a key that has ended.
    """
    body = read_as(request, KeyTermsIn)
    with ledger.exclusive():
        row = require(find_key(agent_id, key_id), "key", key_id)
        check_expectation(expectation_in(request), entry_of(row))
        if row.revoked_at is not None or is_over(row):
            raise ConflictError(f"The key {key_id} has ended. Issue a new one.")
        form, ends = terms_form(body), read_end(body) if "expiresAt" in body.model_fields_set else row.expires_at
        if (row.label, row.terms, row.expires_at) != (form.cleaned_data["label"], form.terms, ends):
            change_key(script_actor(request), row, label=form.cleaned_data["label"], terms=form.terms, expires_at=ends)
    return answer_entry({"key": key_json(row)}, entry_of(row))


@router.get("/agents/{path:agent_id}/keys/{key_id}", openapi_extra=gives(KeyOut))
def admin_get_key(request: HttpRequest, agent_id: str, key_id: str) -> HttpResponse:
    """A key of an agent, without its secret."""
    row = require(find_key(agent_id, key_id), "key", key_id)
    return answer_entry({"key": key_json(row)}, entry_of(row))


def terms_form(body: KeyTermsIn | KeyIn) -> KeyTermsForm:
    """The page's form with what the script sent, which it takes. Raises `InvalidError`."""
    words = {"label": body.label or "", "team": body.team or "", "project": body.project or ""}
    form = KeyTermsForm({**words, **limit_fields(body.limits or {})})
    if not form.is_valid():
        raise InvalidError(problems_of(form, {}))
    return form


def read_end(body: KeyTermsIn) -> datetime | None:
    """The moment that a key is to end, None for never. Raises `InvalidError` for none that is to come."""
    if body.expiresAt is None:
        return None
    try:
        moment = datetime.fromisoformat(body.expiresAt)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or not timezone.now() < moment < timezone.now() + LONGEST:
        message = "A moment to come is expected, with its time zone, such as 2027-01-31T12:00:00+00:00."
        raise InvalidError([Problem("expiresAt", message, "range")])
    return moment


def is_over(row: AgentKey) -> bool:
    """Whether the key's time is over."""
    return row.expires_at is not None and row.expires_at <= timezone.now()


def entry_of(row: AgentKey) -> dict[str, Any]:
    """What of a key its tag speaks of: not when it was used."""
    return {name: value for name, value in key_json(row).items() if name != "lastUsedAt"}


@router.delete("/agents/{path:agent_id}/keys/{key_id}", response={204: None})
def admin_revoke_key(request: HttpRequest, agent_id: str, key_id: str) -> HttpResponse:
    """Revokes a key immediately and permanently; one that has ended is no error."""
    row = require(find_key(agent_id, key_id), "key", key_id)
    if row.revoked_at is None:
        revoke_key(script_actor(request), row)
    return HttpResponse(status=204)


@router.post("/agents/{path:agent_id}/keys/{key_id}/rotate", response={201: IssuedOut}, openapi_extra=takes(RotateIn))
def admin_rotate_key(request: HttpRequest, agent_id: str, key_id: str) -> HttpResponse:
    """A new key with the same scopes; the old key keeps working for the overlap, one day by default.

    409 for a key that is revoked, 403 for one with a scope like `config:write` that the token itself lacks.
    """
    seconds = read_as(request, RotateIn).overlapSeconds
    row = require(find_key(agent_id, key_id), "key", key_id)
    check_gives(request, row.scopes, "Such a key")
    overlap = OVERLAP if seconds is None else timedelta(seconds=seconds)
    return issued(*roll_key(script_actor(request), row, overlap=overlap))


def issued(key: str, row: AgentKey) -> HttpResponse:
    """The one answer that holds a whole key."""
    return answer({"key": key, "issued": key_json(row)}, 201)
