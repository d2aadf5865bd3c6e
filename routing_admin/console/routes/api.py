"""Administrators' API for aliases: model names that callers may use, each with its target."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router

from capabilities.core.problems import Problem
from capabilities.errors import InvalidError
from routing_admin.api.calls import read_as, takes
from routing_admin.configuration import rows, snapshot
from routing_admin.configuration.revisions import ledger
from routing_admin.console.base.api import (
    TAG,
    answer_at_revision,
    answer_entry,
    form_problems,
    read_expectation,
    require,
    script_actor,
)
from routing_admin.console.base.schemas import AliasesOut, AliasIn, AliasOut, AliasThing, ChangedOut
from routing_admin.console.exchange.actions import check_expectation
from routing_admin.console.routes.actions import save_alias
from routing_admin.console.routes.forms import AliasForm
from routing_admin.core.configuration.specs import Configuration
from routing_admin.core.planning.model_names import is_target

router = Router(tags=[TAG])


def list_alias_entries(configuration: Configuration) -> dict[str, dict[str, Any]]:
    return {alias.name: {"name": alias.name, "target": alias.target} for alias in configuration.aliases}


def list_entries() -> dict[str, dict[str, Any]]:
    return list_alias_entries(snapshot.current().configuration)


@router.get("/aliases", response=AliasesOut)
def admin_list_aliases(request: HttpRequest) -> HttpResponse:
    """List all aliases with their targets."""
    return answer_at_revision(AliasesOut(aliases=[AliasThing(**entry) for entry in list_entries().values()]))


@router.get("/aliases/{path:alias}", response=AliasOut)
def admin_get_alias(request: HttpRequest, alias: str) -> HttpResponse:
    """Return one alias."""
    entry = require(list_entries().get(alias), "alias", alias)
    return answer_entry(AliasOut(alias=AliasThing(**entry)), entry)


@router.put("/aliases/{path:alias}", response={200: ChangedOut, 201: ChangedOut}, openapi_extra=takes(AliasIn))
def admin_put_alias(request: HttpRequest, alias: str) -> HttpResponse:
    """Set the target of an alias: a route, a service or a provider's model; the alias `*` matches every other name.

    The status is 422 for an invalid name or target.
    """
    form = AliasForm({"name": alias, "target": read_as(request, AliasIn).target})
    if not form.is_valid():
        raise InvalidError(form_problems(form, {}))
    entry, changes = dict(form.cleaned_data), list[str]()
    # Read, check and write under one lock, so that the `If-Match` condition still holds when the alias is saved.
    with ledger.exclusive():
        configuration = rows.read()
        before = list_alias_entries(configuration).get(alias)
        check_expectation(read_expectation(request), before)
        if not is_target(configuration, entry["target"]):
            raise InvalidError([Problem("target", "No task route or model service has this name.", "reference")])
        if before != entry:
            save_alias(script_actor(request), entry["name"], entry["target"])
            changes = [f"{entry['name']} now leads to {entry['target']}."]
    status = 200 if before else 201
    return answer_entry(ChangedOut(created=before is None, changes=changes, warnings=[]), entry, status)


@router.delete("/aliases/{path:alias}", response={204: None})
def admin_delete_alias(request: HttpRequest, alias: str) -> HttpResponse:
    """Remove an alias; removing a missing alias is not an error."""
    with ledger.exclusive():
        before = list_alias_entries(rows.read()).get(alias)
        check_expectation(read_expectation(request), before)
        if before is not None:
            save_alias(script_actor(request), alias, "")
    return HttpResponse(status=204)
