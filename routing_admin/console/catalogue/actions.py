"""Refresh the model catalogue: store a new edition, preview it, and switch to it.

An edition is one version of the catalogue, from a file or from a provider's own list of models.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from capabilities.actors import Actor, AuditedAction
from capabilities.core.problems import Problem
from capabilities.core.providers.catalogue import list_host, with_own_tables
from capabilities.core.providers.catalogue.document import CatalogueDocument
from capabilities.core.providers.catalogue.refreshing import (
    EditionChange,
    UnreadableCatalogueError,
    compare_editions,
    read_edition,
    read_own_list,
)
from capabilities.core.vocabulary import Cell, Source
from capabilities.errors import ActionError, InvalidError, NotFoundError
from capabilities.models import Provider, Service
from routing_admin.configuration import snapshot
from routing_admin.configuration.catalogue_versions import (
    find_catalogue,
    find_catalogue_version,
    store_catalogue_version,
)
from routing_admin.configuration.guards import save_fields
from routing_admin.configuration.revisions import ledger
from routing_admin.console.providers.actions import save_provider
from routing_admin.console.services.actions import fill_from_catalogue, find_retirement, list_open_cells, save_service
from routing_admin.models import Candidate, Installation, TaskRoute


@dataclass(frozen=True, slots=True)
class CellChange:
    """A service's capability that would have a different effective value, or about which sources would disagree."""

    service_id: str
    side: str
    name: str
    on: bool
    source: Source


@dataclass(frozen=True, slots=True)
class EditionPreview:
    """A preview of a catalogue edition: its name, its changes, and the changed capabilities of configured services."""

    name: str
    change: EditionChange
    cells: tuple[CellChange, ...]


def store_edition_file(data: bytes) -> int:
    """Store the catalogue edition that a file contains and return its number.

    Raise `InvalidError` if it contains none.
    """
    current = snapshot.current().catalogue.document
    try:
        return store_catalogue_version(read_edition(data, current, timezone.localdate()))
    except UnreadableCatalogueError as refusal:
        raise InvalidError([Problem("file", refusal.args[0], "catalogue")]) from refusal


def store_provider_list(row: Provider, entries: Iterable[Any]) -> int:
    """Make an edition from a provider's own list of models, store it and return its number.

    Raise `InvalidError` if the list contains only names.
    """
    current, host = snapshot.current().catalogue.document, list_host(row.name, row.endpoint)
    try:
        return store_catalogue_version(read_own_list(row.name, host, entries, current, timezone.localdate()))
    except UnreadableCatalogueError as refusal:
        raise InvalidError([Problem("provider", refusal.args[0], "catalogue")]) from refusal


def preview_edition(pk: int) -> EditionPreview:
    """Compare an edition with the catalogue in use. Raise `NotFoundError` for an unknown edition number."""
    name, document = _require(pk)
    change = compare_editions(snapshot.current().catalogue.document, document)
    cells_by_service = list_open_cells(with_own_tables(document), _services())
    cells = (cell_change for row, cells in cells_by_service.items() for cell_change in _cell_changes(row, cells))
    return EditionPreview(name, change, tuple(cells))


def _cell_changes(row: Service, cells_by_source: Mapping[Source, Mapping[Cell, bool]]) -> Iterator[CellChange]:
    stored = {(capability.side, capability.name): capability.supported for capability in row.capabilities.all()}
    for source, cells in cells_by_source.items():
        for cell, on in cells.items():
            # A contested capability is listed even if its effective value stays the same.
            if on != stored.get(cell, False) or source is Source.CONTESTED:
                yield CellChange(row.service_id, *cell, on, source)


def use_edition(actor: Actor, pk: int) -> AuditedAction:
    """Switch to a catalogue edition as one revision.

    Capabilities that were neither declared nor probed get the edition's values. Raise `NotFoundError` for an unknown
    edition number.
    """
    name, _document = _require(pk)
    return _switch_edition(actor, AuditedAction("catalogue.take", "installation", name), name)


def use_shipped_edition(actor: Actor) -> AuditedAction:
    """Switch back to the catalogue shipped with the program and take capabilities from it, as one revision."""
    return _switch_edition(actor, AuditedAction("catalogue.drop", "installation"), "")


def _switch_edition(actor: Actor, act: AuditedAction, name: str) -> AuditedAction:
    with ledger.change(actor, act):
        row = Installation.current()
        row.catalogue = name
        row.save()
        fill_from_catalogue(actor, _services(), catalogue=find_catalogue(name))
    return act


def _services() -> list[Service]:
    return list(Service.objects.select_related("provider").prefetch_related("capabilities"))


def _require(pk: int) -> tuple[str, CatalogueDocument]:
    edition = find_catalogue_version(pk)
    if edition is None:
        raise NotFoundError(_("There is no such edition of the catalogue. Load the file again."))
    return edition


# The following actions replace a retired model in services, in fallback chains, and as a provider's default model.


def replace_model(actor: Actor, provider: Provider, model: str, successor: str) -> AuditedAction:
    """Replace a model everywhere with its successor according to the catalogue, as one revision.

    A service keeps its declared capabilities. Capabilities that were probed or come from the catalogue are replaced
    with the successor's, and the service's own price is removed. Raise `ActionError` if the catalogue names no
    successor or a different one.
    """
    retirement = find_retirement(provider, model)
    # The catalogue may have changed after the page was rendered.
    if retirement is None or not successor or (retirement.model, retirement.successor) != (model, successor):
        raise ActionError(_("The catalogue does not name this successor. Choose a model on the service's page."))
    act = AuditedAction("model.replace", "provider", provider.name, {"model": model, "by": successor})
    with ledger.change(actor, act):
        services = list(Service.objects.filter(provider=provider, model=model))
        for service in services:
            # Probed values and values from the catalogue describe only the old model, so they are not kept.
            service.capabilities.exclude(source=Source.DECLARED.value).delete()
            service.model, service.price = successor, {}
            save_service(actor, service)
        fill_from_catalogue(actor, Service.objects.filter(pk__in=[service.pk for service in services]))
        routes = TaskRoute.objects.filter(candidates__provider=provider, candidates__model=model).distinct()
        for route in list(routes):
            Candidate.objects.filter(route=route, provider=provider, model=model).update(model=successor)
            save_fields(route)
        if provider.default_model == model:
            provider.default_model = successor
            save_provider(actor, provider)
    return act
