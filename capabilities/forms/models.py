"""Choosing models of a provider: each line becomes a service, with capabilities prefilled from the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.http import QueryDict
from django.utils.translation import gettext as _

from capabilities.actions import NewModel
from capabilities.actions.catalogue import cells_of, entry_for
from capabilities.core.vocabulary import Cell
from capabilities.queries.matrix import READS, SIDES, WRITES
from capabilities.queries.services import list_service_ids, map_models

if TYPE_CHECKING:
    from capabilities.models import Provider

OFFERED: tuple[Cell, ...] = (*(("input", word) for word in READS), *(("output", word) for word in WRITES))
MOST = 200
"""Lines offered at once; a host that lists more is narrowed by writing the names."""


@dataclass(frozen=True, slots=True)
class ModelLine:
    """One model offered: what it would be called, what it can do as far as known, and what is wrong with the entry."""

    index: int
    model: str
    service_id: str
    cells: frozenset[Cell]
    alias: str = ""
    use: bool = False
    in_catalogue: bool = False
    there: str = ""
    error: str = ""

    @property
    def boxes(self) -> list[tuple[Cell, str, bool]]:
        """The check boxes: cell, its form value, and whether it is ticked."""
        return [(cell, ":".join(cell), cell in self.cells) for cell in OFFERED]


def offer_models(provider: Provider, models: Iterable[str], *, use: bool = False) -> list[ModelLine]:
    """The lines for models of a provider, in the given order, each once."""
    names = list(dict.fromkeys(name.strip() for name in models if name.strip()))[:MOST]
    ids = list_service_ids()
    there = map_models(provider)
    return [build_offer(provider, index, name, ids, there, use) for index, name in enumerate(names)]


def build_offer(
    provider: Provider, index: int, model: str, ids: set[str], there: Mapping[str, str], use: bool
) -> ModelLine:
    """One line; an id that is taken gets the provider's name in front."""
    entry = entry_for(provider, model)
    cells = cells_of(entry) if entry else {("input", "text"): True, ("output", "text"): True}
    own = f"{provider.name}-{model}" if model in ids else model
    supported = frozenset(cell for cell, on in cells.items() if on)
    return ModelLine(index, model, own, supported, use=use, in_catalogue=entry is not None, there=there.get(model, ""))


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
    own = data.get(f"id-{index}", "").strip()
    error = ""
    if use and not own:
        error = _("An id is needed.")
    elif use and own in ids:
        error = _("There is a model service with this id already.")
    in_catalogue = entry_for(provider, model) is not None
    return ModelLine(
        index, model, own, supported, data.get(f"alias-{index}", "").strip(), use, in_catalogue, error=error
    )


def list_chosen(lines: Iterable[ModelLine]) -> list[NewModel]:
    """What the chosen lines ask for."""
    return [NewModel(line.model, line.service_id, line.cells, line.alias) for line in lines if line.use]
