"""Administrators' API for the configuration: its two files, and providers, services and routes by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router
from pydantic import BaseModel

from routing_admin.api.calls import parse_as, read_as, read_json, takes
from routing_admin.api.errors import problem_details
from routing_admin.api.schemas import ImportOut
from routing_admin.configuration import snapshot
from routing_admin.configuration.revisions import ledger
from routing_admin.console.base.api import (
    TAG,
    answer_at_revision,
    answer_entry,
    expected_revision,
    read_expectation,
    require,
    script_actor,
)
from routing_admin.console.base.schemas import (
    AdminProviderOut,
    AdminProvidersOut,
    AdminRouteOut,
    AdminRoutesOut,
    AdminServiceOut,
    AdminServicesOut,
    ChangedOut,
    KeyTextIn,
    ProviderIn,
    RouteIn,
    ServiceIn,
)
from routing_admin.console.exchange.actions import EntryChange, check_entry, put_entry
from routing_admin.console.exchange.agent_api import (
    FILE_BODY,
    FILE_OUT,
    answer_file,
    answer_import,
    list_providers_out,
    parse_format,
)
from routing_admin.console.providers.actions import KeyAct, KeyChange, delete_provider, save_provider
from routing_admin.console.providers.queries import find_provider, read_evidence
from routing_admin.console.routes.actions import delete_route
from routing_admin.console.routes.queries import find_route
from routing_admin.console.services.actions import delete_service
from routing_admin.console.services.queries import find_service
from routing_admin.core.configuration.diff import sentence
from routing_admin.core.files.entries import EntryKind, write_entry
from routing_admin.core.files.exporting import Mode

router = Router(tags=[TAG])


@router.post("/config/import", response=ImportOut, openapi_extra=FILE_BODY)
def admin_import_config(
    request: HttpRequest,
    dryRun: bool = False,  # noqa: N803
    prune: bool = False,
) -> HttpResponse:
    """Import a file as one revision or, with `dryRun`, return what would change; 409 for an outdated If-Match."""
    return answer_import(request, script_actor(request), expected_revision(request), dry_run=dryRun, prune=prune)


@router.get("/config/{name}", openapi_extra=FILE_OUT)
def admin_export_config(
    request: HttpRequest, name: str, mode: Annotated[Mode, Query(alias="for")] = Mode.FULL
) -> HttpResponse:
    """Return a configuration file, with keys only as `${…}`; its ETag is the revision."""
    return answer_file(request, parse_format(name), mode, snapshot.current())


# Providers, model services and task routes are always written as a whole.


def find_entries(kind: EntryKind, names: list[str]) -> list[dict[str, Any]]:
    configuration = snapshot.current().configuration
    return [entry for name in names if (entry := write_entry(configuration, kind, name)) is not None]


def find_entry(kind: EntryKind, name: str) -> dict[str, Any]:
    entry: dict[str, Any] = require(write_entry(snapshot.current().configuration, kind, name), kind.value, name)
    return entry


def put(request: HttpRequest, kind: EntryKind, name: str, schema: type[BaseModel]) -> HttpResponse:
    """Write an entry. The status is 201 for a new entry, else 200."""
    value = read_json(request)
    # Use the parsed value only for validation: the schema declares just the required fields, but an entry may have any
    # field that configuration files allow.
    parse_as(value, schema)
    return answer_change(put_entry(script_actor(request), kind, name, value, expected=read_expectation(request)))


def answer_change(write: EntryChange) -> HttpResponse:
    changes, warnings = [sentence(change) for change in write.changes], problem_details(write.warnings)
    body = ChangedOut(created=write.is_new, changes=changes, warnings=warnings)
    return answer_entry(body, write.entry, 201 if write.is_new else 200)


def delete(
    request: HttpRequest, kind: EntryKind, name: str, find: Callable[[str], Any], delete_row: Callable[..., Any]
) -> HttpResponse:
    """Delete a row if it exists, and return 204.

    Raise `ConflictError` for an outdated If-Match header, and whatever `delete_row` raises.
    """
    with ledger.exclusive():
        check_entry(kind, name, read_expectation(request))
        row = find(name)
        if row is not None:
            delete_row(script_actor(request), row)
    return HttpResponse(status=204)


@router.get("/providers", response=AdminProvidersOut)
def admin_list_providers(request: HttpRequest) -> HttpResponse:
    """List the providers in their configured order; keys are never returned."""
    names = [provider.name for provider in snapshot.current().configuration.providers]
    return answer_at_revision(AdminProvidersOut(providers=find_entries(EntryKind.PROVIDER, names)))


@router.get("/providers/{provider}", response=AdminProviderOut)
def admin_get_provider(request: HttpRequest, provider: str) -> HttpResponse:
    """Return one provider, whether it can be called, and its state."""
    entry = find_entry(EntryKind.PROVIDER, provider)
    out = next(
        provider_out for provider_out in list_providers_out(snapshot.current()) if provider_out.providerName == provider
    )
    state = read_evidence(provider).find_state(provider, is_enabled=out.enabled).name
    return answer_entry(AdminProviderOut(provider=entry, usable=out.usable, state=state, reason=out.reason), entry)


@router.put("/providers/{provider}", response={200: ChangedOut, 201: ChangedOut}, openapi_extra=takes(ProviderIn))
def admin_put_provider(request: HttpRequest, provider: str) -> HttpResponse:
    """Add or replace a provider; a stored key is kept unless a new key is given or the endpoint's origin changes."""
    return put(request, EntryKind.PROVIDER, provider, ProviderIn)


@router.put("/providers/{provider}/key", response=ChangedOut, openapi_extra=takes(KeyTextIn))
def admin_set_provider_key(request: HttpRequest, provider: str) -> HttpResponse:
    """Set a provider's key, which can never be read again."""
    key = KeyChange(KeyAct.SET, read_as(request, KeyTextIn).apiKey)
    with ledger.exclusive():
        row = require(find_provider(provider), "provider", provider)
        check_entry(EntryKind.PROVIDER, provider, read_expectation(request))
        change = save_provider(script_actor(request), row, key=key)
    changes = ["The key is set."] if change.revision else []
    return answer_at_revision(ChangedOut(created=False, changes=changes, warnings=[]))


@router.delete("/providers/{provider}", response={204: None})
def admin_delete_provider(request: HttpRequest, provider: str) -> HttpResponse:
    """Delete a provider that nothing uses; deleting a missing provider is not an error."""
    return delete(request, EntryKind.PROVIDER, provider, find_provider, delete_provider)


@router.get("/services", response=AdminServicesOut)
def admin_list_services(request: HttpRequest) -> HttpResponse:
    """List the model services in their configured order, with their declared capabilities."""
    names = [service.id for service in snapshot.current().configuration.services]
    return answer_at_revision(AdminServicesOut(services=find_entries(EntryKind.SERVICE, names)))


@router.get("/services/{path:service_id}", response=AdminServiceOut)
def admin_get_service(request: HttpRequest, service_id: str) -> HttpResponse:
    """Return one model service."""
    entry = find_entry(EntryKind.SERVICE, service_id)
    return answer_entry(AdminServiceOut(service=entry), entry)


@router.put("/services/{path:service_id}", response={200: ChangedOut, 201: ChangedOut}, openapi_extra=takes(ServiceIn))
def admin_put_service(request: HttpRequest, service_id: str) -> HttpResponse:
    """Add or replace a model service; for the same model, probed and catalogue capabilities are kept."""
    return put(request, EntryKind.SERVICE, service_id, ServiceIn)


@router.delete("/services/{path:service_id}", response={204: None})
def admin_delete_service(request: HttpRequest, service_id: str) -> HttpResponse:
    """Delete a model service that no agent uses; deleting a missing service is not an error."""
    return delete(request, EntryKind.SERVICE, service_id, find_service, delete_service)


@router.get("/routes", response=AdminRoutesOut)
def admin_list_routes(request: HttpRequest) -> HttpResponse:
    """List the task routes in their configured order, each with its complete chain."""
    names = [route.task_type for route in snapshot.current().configuration.routes]
    return answer_at_revision(AdminRoutesOut(routes=find_entries(EntryKind.ROUTE, names)))


@router.get("/routes/{path:task_type}", response=AdminRouteOut)
def admin_get_route(request: HttpRequest, task_type: str) -> HttpResponse:
    """Return one task route."""
    entry = find_entry(EntryKind.ROUTE, task_type)
    return answer_entry(AdminRouteOut(route=entry), entry)


@router.put("/routes/{path:task_type}", response={200: ChangedOut, 201: ChangedOut}, openapi_extra=takes(RouteIn))
def admin_put_route(request: HttpRequest, task_type: str) -> HttpResponse:
    """Add or replace a task route with its complete chain; 409 if the stored route does not match If-Match."""
    return put(request, EntryKind.ROUTE, task_type, RouteIn)


@router.delete("/routes/{path:task_type}", response={204: None})
def admin_delete_route(request: HttpRequest, task_type: str) -> HttpResponse:
    """Delete a task route that nothing uses; deleting a missing route is not an error."""
    return delete(request, EntryKind.ROUTE, task_type, find_route, delete_route)
