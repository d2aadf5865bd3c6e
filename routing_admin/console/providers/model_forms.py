"""Forms for choosing a provider's models to add as services, with capabilities prefilled from the catalogue."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.http import QueryDict
from django.utils.translation import gettext as _

from capabilities.core.providers.catalogue import CatalogueEntry, Fact
from capabilities.core.vocabulary import Cell
from routing_admin.console.matrix.queries import INPUT, READS, SIDES, WRITES
from routing_admin.console.services.actions import UNKNOWN_MODEL, NewModel, entry_for, list_catalogue_cells
from routing_admin.console.services.queries import list_service_ids, map_models

if TYPE_CHECKING:
    from capabilities.models import Provider

OFFERED: tuple[Cell, ...] = (*(("input", word) for word in READS), *(("output", word) for word in WRITES))
MAX_MODELS = 1000
"""Maximum number of models in the table. Names of further models can be typed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLine:
    """An offered model: the id that its service will have, its known capabilities, and any error in the user's input.

    If the model already has a service, `existing_service` is that service's id.
    """

    index: int
    model: str
    service_id: str
    cells: frozenset[Cell]
    alias: str = ""
    use: bool = False
    entry: CatalogueEntry | None = None
    existing_service: str = ""
    error: str = ""

    @property
    def reads(self) -> list[str]:
        """The known input capabilities, in the order of the check boxes."""
        return [name for side, name in OFFERED if side == INPUT and (side, name) in self.cells]

    @property
    def contested(self) -> Mapping[Cell, Fact]:
        return self.entry.contested if self.entry else {}

    @property
    def boxes(self) -> list[tuple[Cell, str, bool, Fact | None]]:
        """The check boxes: capability, form value, whether it is ticked, and what each source says if they disagree."""
        return [(cell, ":".join(cell), cell in self.cells, self.contested.get(cell)) for cell in OFFERED]


@dataclass(frozen=True, slots=True)
class Offer:
    """The models that can be added, and a search that limits which of them are shown.

    Models that the search hides can still be chosen.
    """

    lines: tuple[ModelLine, ...]
    q: str = ""

    @property
    def matches(self) -> list[ModelLine]:
        return [line for line in self.lines if self.q.casefold() in line.model.casefold()]

    @property
    def others(self) -> list[ModelLine]:
        return [line for line in self.lines if line.use and self.q.casefold() not in line.model.casefold()]

    @property
    def names(self) -> str:
        """The names of all models, one per line, which the table posts in a single field."""
        return "\n".join(line.model for line in self.lines)

    @property
    def count(self) -> int:
        return sum(line.use for line in self.lines)

    def choosing(self, use: bool) -> Offer:
        """Return the offer after choosing (or, if `use` is false, unchoosing) all models that match the search.

        Models that already have a service are skipped.
        """
        selectable = {line.model for line in self.matches if not line.existing_service}
        return replace(
            self, lines=tuple(replace(line, use=use) if line.model in selectable else line for line in self.lines)
        )


def offer_models(provider: Provider, models: Iterable[str], chosen: Container[str] = ()) -> Offer:
    """Offer these models of a provider in the given order, without duplicates."""
    names = list(dict.fromkeys(name.strip() for name in models if name.strip()))[:MAX_MODELS]
    ids = list_service_ids()
    services_by_model = map_models(provider)
    return Offer(
        tuple(
            build_offer(provider, index, name, ids, services_by_model, name in chosen)
            for index, name in enumerate(names)
        )
    )


def read_offer(provider: Provider, data: QueryDict) -> Offer:
    """Return the offer that the table posted, including its search and the chosen models."""
    names = "\n".join(data.getlist("names")).splitlines()
    offer = offer_models(provider, names, frozenset(data.getlist("use")))
    return replace(offer, q=data.get("q", "").strip())


def adjust_lines(provider: Provider, offer: Offer) -> list[ModelLine]:
    """Return the chosen models, each with its error if it has one, so that the user can correct them."""
    ids, lines = list_service_ids(), []
    for index, line in enumerate(line for line in offer.lines if line.use):
        lines.append(replace(line, index=index, error=_find_error(line, ids)))
        # The models after this one cannot use the same id.
        ids.add(line.service_id)
    return lines


def _find_error(line: ModelLine, ids: Container[str]) -> str:
    if not line.service_id:
        return _("Enter an id.")
    return _("A model service with this id already exists.") if line.service_id in ids else ""


def build_offer(
    provider: Provider, index: int, model: str, ids: set[str], services_by_model: Mapping[str, str], use: bool
) -> ModelLine:
    entry = entry_for(provider, model)
    # Several providers may have the same model. If its id is taken, put the provider's name in front.
    service_id = f"{provider.name}-{model}" if model in ids else model
    supported = frozenset(
        cell for cell, (on, _source) in (list_catalogue_cells(entry) if entry else UNKNOWN_MODEL).items() if on
    )
    return ModelLine(
        index=index,
        model=model,
        service_id=service_id,
        cells=supported,
        use=use,
        entry=entry,
        existing_service=services_by_model.get(model, ""),
    )


def read_lines(provider: Provider, data: QueryDict) -> list[ModelLine]:
    """Return the models that the table posted, each with its error if it has one."""
    ids = list_service_ids()
    lines: list[ModelLine] = []
    for index, model in enumerate(data.getlist("model")):
        line = read_line(provider, data, index, model, ids)
        if line.use:
            ids.add(line.service_id)
        lines.append(line)
    return lines


def read_line(provider: Provider, data: QueryDict, index: int, model: str, ids: set[str]) -> ModelLine:
    cells = [tuple(value.split(":", 1)) for value in data.getlist(f"caps-{index}") if ":" in value]
    supported = frozenset((side, name) for side, name in cells if side in SIDES)
    use = f"use-{index}" in data
    service_id, alias = (data.get(f"{name}-{index}", "").strip() for name in ("id", "alias"))
    line = ModelLine(
        index=index,
        model=model,
        service_id=service_id,
        cells=supported,
        alias=alias,
        use=use,
        entry=entry_for(provider, model),
    )
    return replace(line, error=_find_error(line, ids)) if use else line


def list_chosen(lines: Iterable[ModelLine]) -> list[NewModel]:
    return [NewModel(line.model, line.service_id, line.cells, line.alias) for line in lines if line.use]
