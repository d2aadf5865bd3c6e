"""Choosing models of a provider: each line becomes a service, with capabilities prefilled from the catalogue."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.http import QueryDict
from django.utils.translation import gettext as _

from capabilities.core.providers.catalogue import CatalogueEntry, Fact
from capabilities.core.vocabulary import Cell
from routing_admin.console.matrix.queries import INPUT, READS, SIDES, WRITES
from routing_admin.console.services.actions import UNKNOWN_MODEL, NewModel, cells_of, entry_for
from routing_admin.console.services.queries import list_service_ids, map_models

if TYPE_CHECKING:
    from capabilities.models import Provider

OFFERED: tuple[Cell, ...] = (*(("input", word) for word in READS), *(("output", word) for word in WRITES))
MOST = 1000
"""Lines offered at once; a host that lists more is narrowed by writing the names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLine:
    """One model offered: what it would be called, what it can do as far as known, and what is wrong with the entry."""

    index: int
    model: str
    service_id: str
    cells: frozenset[Cell]
    alias: str = ""
    use: bool = False
    entry: CatalogueEntry | None = None
    there: str = ""
    error: str = ""

    @property
    def reads(self) -> list[str]:
        """What it reads, as far as known, in the order of the check boxes."""
        return [name for side, name in OFFERED if side == INPUT and (side, name) in self.cells]

    @property
    def contested(self) -> Mapping[Cell, Fact]:
        """What sources contradict each other about."""
        return self.entry.contested if self.entry else {}

    @property
    def boxes(self) -> list[tuple[Cell, str, bool, Fact | None]]:
        """The check boxes: cell, its form value, whether it is ticked, and what is contested about it."""
        return [(cell, ":".join(cell), cell in self.cells, self.contested.get(cell)) for cell in OFFERED]


@dataclass(frozen=True, slots=True)
class Offer:
    """The models offered, those among them that a search leaves, and how many are chosen, be they left or not."""

    lines: tuple[ModelLine, ...]
    q: str = ""

    @property
    def matches(self) -> list[ModelLine]:
        """The lines whose model holds the words."""
        return [line for line in self.lines if self.q.casefold() in line.model.casefold()]

    @property
    def others(self) -> list[ModelLine]:
        """The chosen lines that the search leaves out."""
        return [line for line in self.lines if line.use and self.q.casefold() not in line.model.casefold()]

    @property
    def names(self) -> str:
        """Every model, one a line: what the form carries along."""
        return "\n".join(line.model for line in self.lines)

    @property
    def count(self) -> int:
        """How many are chosen."""
        return sum(line.use for line in self.lines)

    def choosing(self, use: bool) -> Offer:
        """The same with every line that the search leaves chosen or not; what is a service already stays as it is."""
        every = {line.model for line in self.matches if not line.there}
        return replace(
            self, lines=tuple(replace(line, use=use) if line.model in every else line for line in self.lines)
        )


def offer_models(provider: Provider, models: Iterable[str], chosen: Container[str] = ()) -> Offer:
    """The lines for models of a provider, in the given order, each once."""
    names = list(dict.fromkeys(name.strip() for name in models if name.strip()))[:MOST]
    ids = list_service_ids()
    there = map_models(provider)
    return Offer(
        tuple(build_offer(provider, index, name, ids, there, name in chosen) for index, name in enumerate(names))
    )


def read_offer(provider: Provider, data: QueryDict) -> Offer:
    """The models of a posted table, with its search and what is chosen."""
    offer = offer_models(provider, data.get("names", "").splitlines(), frozenset(data.getlist("use")))
    return replace(offer, q=data.get("q", "").strip())


def adjust_lines(provider: Provider, offer: Offer) -> list[ModelLine]:
    """The chosen lines by themselves, to be named and corrected, each with what is wrong with it."""
    ids, lines = list_service_ids(), []
    for index, line in enumerate(line for line in offer.lines if line.use):
        lines.append(replace(line, index=index, error=_find_error(line, ids)))
        ids.add(line.service_id)
    return lines


def _find_error(line: ModelLine, ids: Container[str]) -> str:
    """Why a chosen line cannot become a service; empty when it can."""
    if not line.service_id:
        return _("Enter an id.")
    return _("A model service with this id already exists.") if line.service_id in ids else ""


def build_offer(
    provider: Provider, index: int, model: str, ids: set[str], there: Mapping[str, str], use: bool
) -> ModelLine:
    """One line; an id that is taken gets the provider's name in front."""
    entry = entry_for(provider, model)
    own = f"{provider.name}-{model}" if model in ids else model
    supported = frozenset(cell for cell, (on, _source) in (cells_of(entry) if entry else UNKNOWN_MODEL).items() if on)
    return ModelLine(
        index=index, model=model, service_id=own, cells=supported, use=use, entry=entry, there=there.get(model, "")
    )


def read_lines(provider: Provider, data: QueryDict) -> list[ModelLine]:
    """The lines as they were posted, each with what is wrong with it."""
    ids = list_service_ids()
    lines: list[ModelLine] = []
    for index, model in enumerate(data.getlist("model")):
        line = read_line(provider, data, index, model, ids)
        if line.use:
            ids.add(line.service_id)
        lines.append(line)
    return lines


def read_line(provider: Provider, data: QueryDict, index: int, model: str, ids: set[str]) -> ModelLine:
    """One posted line."""
    cells = [tuple(value.split(":", 1)) for value in data.getlist(f"caps-{index}") if ":" in value]
    supported = frozenset((side, name) for side, name in cells if side in SIDES)
    use = f"use-{index}" in data
    own, alias = (data.get(f"{name}-{index}", "").strip() for name in ("id", "alias"))
    line = ModelLine(
        index=index,
        model=model,
        service_id=own,
        cells=supported,
        alias=alias,
        use=use,
        entry=entry_for(provider, model),
    )
    return replace(line, error=_find_error(line, ids)) if use else line


def list_chosen(lines: Iterable[ModelLine]) -> list[NewModel]:
    """What the chosen lines ask for."""
    return [NewModel(line.model, line.service_id, line.cells, line.alias) for line in lines if line.use]
