"""The capability matrix as a value: columns, rows, cells, and where each value comes from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from capabilities.core.vocabulary import Cell, Source
from capabilities.models import Service, ServiceCapability

SIDES = tuple(ServiceCapability.Side.values)
INPUT, OUTPUT = SIDES
READS = ("text", "vision", "audio", "video", "file")
WRITES = ("text", "structured_output", "tool_calling")


@dataclass(frozen=True, slots=True)
class Square:
    """One cell as it is shown: on or off, and who says so."""

    side: str
    name: str
    on: bool
    source: str

    @property
    def key(self) -> str:
        """What its check box is called in a form: `input:vision`."""
        return f"{self.side}:{self.name}"


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One service and its cells, in the order of the columns."""

    service: Service
    cells: tuple[Square, ...]

    @property
    def has_unknown(self) -> bool:
        """Whether something about the service is not known."""
        return any(cell.source == Source.UNKNOWN for cell in self.cells)


@dataclass(frozen=True, slots=True)
class Matrix:
    """The columns of both groups, the rows shown, and how many of all services know something not."""

    reads: tuple[str, ...]
    writes: tuple[str, ...]
    rows: tuple[MatrixRow, ...]
    unknown: int
    total: int


@dataclass(frozen=True, slots=True)
class MatrixFilter:
    """Which services are asked for: words, a provider's name, `routed` or `unknown`; `extra` are columns to add."""

    q: str = ""
    provider: str = ""
    show: str = ""
    extra: tuple[Cell, ...] = ()


def list_services(matrix_filter: MatrixFilter) -> list[Service]:
    """The services that words and provider leave, with cells and chains: four queries."""
    rows: QuerySet[Service] = Service.objects.select_related("provider").prefetch_related(
        "capabilities", "provider__candidates"
    )
    if matrix_filter.q:
        rows = rows.filter(
            Q(service_id__icontains=matrix_filter.q)
            | Q(name__icontains=matrix_filter.q)
            | Q(model__icontains=matrix_filter.q)
        )
    if matrix_filter.provider:
        rows = rows.filter(provider__name=matrix_filter.provider)
    return list(rows)


def is_routed(service: Service) -> bool:
    """Whether a chain names the service's provider and model."""
    candidates: Iterable[Any] = service.provider.candidates.all()
    return any((each.model or service.provider.default_model) == service.model for each in candidates)


def read_matrix(matrix_filter: MatrixFilter) -> Matrix:
    """The matrix of the services asked for."""
    services = list_services(matrix_filter)
    reads, writes = list_columns(services, matrix_filter.extra)
    rows = [build_row(service, reads, writes) for service in services]
    unknown = sum(row.has_unknown for row in rows)
    if matrix_filter.show == "routed":
        rows = [row for row in rows if is_routed(row.service)]
    elif matrix_filter.show == "unknown":
        rows = [row for row in rows if row.has_unknown]
    return Matrix(reads, writes, tuple(rows), unknown, len(services))


def list_columns(services: Iterable[Service], extra: Iterable[Cell] = ()) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The capabilities that read and that write: the usual ones, those that some service has, those asked for."""
    reads, writes = dict.fromkeys(READS), dict.fromkeys(WRITES)
    for service in services:
        for cell in service.capabilities.all():
            if cell.supported or cell.source == Source.DECLARED:
                (reads if cell.side == INPUT else writes).setdefault(cell.name)
    for side, name in extra:
        (reads if side == INPUT else writes).setdefault(name)
    return tuple(reads), tuple(writes)


def build_row(service: Service, reads: Iterable[str], writes: Iterable[str]) -> MatrixRow:
    """One service's cells."""
    there = {(cell.side, cell.name): cell for cell in service.capabilities.all()}
    knows_the_rest = service.knows_the_rest
    columns = [(INPUT, name) for name in reads] + [(OUTPUT, name) for name in writes]
    return MatrixRow(service, tuple(build_square(there.get(cell), cell, service, knows_the_rest) for cell in columns))


def build_square(cell: ServiceCapability | None, where: Cell, service: Service, knows_the_rest: bool) -> Square:
    """One cell; what has no row is declared absent or unknown, and text is what every undeclared service has."""
    side, name = where
    if cell is not None and service.declares_capabilities:
        return Square(side, name, cell.supported, cell.source)
    if not service.declares_capabilities:
        return Square(side, name, name == "text", Source.UNKNOWN.value)
    return Square(side, name, False, (Source.DECLARED if knows_the_rest else Source.UNKNOWN).value)


def list_squares(service: Service) -> tuple[Square, ...]:
    """What a service can do: each of the usual capabilities, and its own."""
    return build_row(service, *list_columns([service])).cells


def find_square(service: Service, side: str, name: str) -> Square:
    """One cell of one service, read again."""
    fresh = Service.objects.prefetch_related("capabilities").get(pk=service.pk)
    cell = next((each for each in fresh.capabilities.all() if (each.side, each.name) == (side, name)), None)
    return build_square(cell, (side, name), fresh, fresh.knows_the_rest)
