"""What speaks against what models are said to read, or has changed of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from capabilities.core.providers.probes.drift import DOUBTS, DriftKind, is_current
from capabilities.models import Drift, Service
from routing_admin.console.matrix.queries import INPUT, list_squares


@dataclass(frozen=True, slots=True)
class DriftLine:
    """One thing that was seen of a service's model and still matters."""

    row: Drift
    service: Service

    @property
    def is_doubt(self) -> bool:
        """Whether somebody has to decide."""
        return self.row.kind in DOUBTS


def list_open_drifts() -> list[Drift]:
    """Everything that nobody dismissed, the newest first; one query."""
    return list(Drift.objects.filter(dismissed_at=None))


def map_drifts() -> Mapping[tuple[str, str], Mapping[str, DriftKind]]:
    """What nobody dismissed, by provider and model, then by capability; one query."""
    found: dict[tuple[str, str], dict[str, DriftKind]] = {}
    for row in list_open_drifts():
        found.setdefault((row.provider, row.model), {})[row.capability] = DriftKind(row.kind)
    return found


def list_drifts() -> list[DriftLine]:
    """What still matters of all services; one query, and two more where there is something."""
    open_drifts = list_open_drifts()
    if not open_drifts:
        return []
    models = {row.model for row in open_drifts}
    services = Service.objects.filter(model__in=models, enabled=True)
    return match_drifts(open_drifts, services.select_related("provider").prefetch_related("capabilities"))


def list_drifts_of(service: Service) -> list[DriftLine]:
    """What still matters of one service; one query beside its own."""
    rows = Drift.objects.filter(dismissed_at=None, provider=service.provider.name, model=service.model)
    return match_drifts(list(rows), [service])


def match_drifts(rows: Iterable[Drift], services: Iterable[Service]) -> list[DriftLine]:
    """Each with the services that it is about, as far as it still matters there."""
    by_place: dict[tuple[str, str], list[tuple[Service, set[str]]]] = {}
    for service in services:
        reads = {square.name for square in list_squares(service) if square.side == INPUT and square.on}
        by_place.setdefault((service.provider.name, service.model), []).append((service, reads))
    return [
        DriftLine(row, service)
        for row in rows
        for service, reads in by_place.get((row.provider, row.model), ())
        if is_current(DriftKind(row.kind), row.capability in reads)
    ]
