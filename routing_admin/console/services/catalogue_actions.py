"""Taking over what the catalogue says: for services that are there, and for models about to become services."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from capabilities.acts import Actor, AuditedAction
from capabilities.core.providers.catalogue import (
    CELLS,
    TEXT,
    Catalogue,
    CatalogueEntry,
    Fact,
    FactVerdict,
    Retirement,
)
from capabilities.core.vocabulary import Cell, Source
from capabilities.models import Provider, Service
from routing_admin.configuration import snapshot
from routing_admin.configuration.revisions import ledger
from routing_admin.console.base.results import BulkChange
from routing_admin.console.routes.actions import save_alias
from routing_admin.console.services.actions import save_service, set_sourced_capabilities

FIRMER = (Source.DECLARED.value, Source.PROBED.value)
"""Where a value comes from that the catalogue never overrules by itself."""
UNKNOWN_MODEL: Mapping[Cell, tuple[bool, Source]] = dict.fromkeys(TEXT, (True, Source.UNKNOWN))
"""What counts of a model that the catalogue does not know."""


def entry_for(provider: Provider, model: str) -> CatalogueEntry | None:
    """What the catalogue knows of a model at a provider."""
    return snapshot.current().catalogue.entry_at(provider.name, provider.endpoint, model)


def retirement_of(provider: Provider, model: str) -> Retirement | None:
    """From which day the provider no longer serves a model; None when no source gives a day."""
    return snapshot.current().catalogue.retirement_at(provider.name, provider.endpoint, model)


def cells_of(entry: CatalogueEntry) -> dict[Cell, tuple[bool, Source]]:
    """Every usual cell, whether it counts as there, and why not where the catalogue has no firm word on it."""
    return {cell: _cell_of(entry.facts.get(cell)) for cell in CELLS}


def _cell_of(fact: Fact | None) -> tuple[bool, Source]:
    if fact is None:
        return False, Source.UNKNOWN
    return fact.value, Source.CONTESTED if fact.verdict is FactVerdict.CONTESTED else Source.CATALOGUE


def fill_from_catalogue(
    actor: Actor, rows: Iterable[Service], *, insist: bool = False, catalogue: Catalogue | None = None
) -> BulkChange:
    """Fills what is unknown from the catalogue, as one revision; how many services it knew something new about.

    What was declared or probed stays, unless `insist` says that the catalogue is right.
    """
    cells_by_service = list_open_cells(catalogue or snapshot.current().catalogue, rows, insist=insist)
    if not cells_by_service:
        return BulkChange(0)
    return BulkChange(len(cells_by_service), set_sourced_capabilities(actor, cells_by_service).revision)


def list_open_cells(
    catalogue: Catalogue, rows: Iterable[Service], *, insist: bool = False
) -> dict[Service, dict[Source, dict[Cell, bool]]]:
    """The cells that a catalogue would fill, of each service that has any."""
    cells_by_service = {}
    for row in rows:
        entry = catalogue.entry_at(row.provider.name, row.provider.endpoint, row.model)
        cells = open_cells(row, entry, insist=insist) if entry else {}
        if cells:
            cells_by_service[row] = cells
    return cells_by_service


def open_cells(row: Service, entry: CatalogueEntry, *, insist: bool) -> dict[Source, dict[Cell, bool]]:
    """Of what the catalogue says, the cells that it may fill, by source: those that nobody knows for sure; all that it
    has a firm word on when insisting.
    """
    there = {(cell.side, cell.name): cell for cell in row.capabilities.all()}
    knows_the_rest = row.knows_the_rest
    fillable: dict[Source, dict[Cell, bool]] = {}
    for cell, (on, source) in cells_of(entry).items():
        have = there.get(cell)
        firm = have.source in FIRMER if have else knows_the_rest
        wanted = not firm or (insist and source is Source.CATALOGUE)
        if wanted and not (have and have.supported == on and have.source == source):
            fillable.setdefault(source, {})[cell] = on
    return fillable


@dataclass(frozen=True, slots=True)
class NewModel:
    """A model about to become a service: `chosen` are the cells switched on, `alias` a name callers use, or empty."""

    model: str
    service_id: str
    cells: frozenset[Cell] = field(default_factory=frozenset)
    alias: str = ""


def add_models(actor: Actor, provider: Provider, models: Sequence[NewModel]) -> AuditedAction:
    """Makes a service (and an alias) of each model, all as one revision."""
    names = ", ".join(model.service_id for model in models)
    act = AuditedAction("service.add", "provider", provider.name, {"services": names[:300]})
    with ledger.change(actor, act):
        for model in models:
            add_model(actor, provider, model)
    return act


def add_model(actor: Actor, provider: Provider, new: NewModel) -> Service:
    """One service; a cell that says what the catalogue says comes from there, any other is declared."""
    entry = entry_for(provider, new.model)
    row = Service(
        service_id=new.service_id,
        name=new.service_id,
        provider=provider,
        model=new.model,
        declares_capabilities=entry is not None,
    )
    save_service(actor, row)
    stated = cells_of(entry) if entry else UNKNOWN_MODEL
    cells: dict[Source, dict[Cell, bool]] = {}
    for cell in {**stated, **dict.fromkeys(new.cells)}:
        on, source = stated.get(cell, (False, Source.UNKNOWN))
        chosen = cell in new.cells
        if chosen != on:
            cells.setdefault(Source.DECLARED, {})[cell] = chosen
        elif entry is not None:
            cells.setdefault(source, {})[cell] = on
    if cells:
        set_sourced_capabilities(actor, {row: cells})
    if new.alias:
        save_alias(actor, new.alias, row.service_id)
    return row
