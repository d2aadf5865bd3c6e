"""Queries for the capability matrix: columns, rows, cells, and the source of each value."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from django.core.paginator import Page, Paginator
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from capabilities.core.providers.catalogue import Fact
from capabilities.core.providers.probes.drift import REFUTING_KINDS
from capabilities.core.vocabulary import Cell, Source
from capabilities.models import Drift, Service, ServiceCapability
from routing_admin.configuration import snapshot
from routing_admin.console.base.lists import PAGE_SIZES

MAX_FITTING, MAX_WORD = 5, 10
"""How much fits on a phone: columns per side (input or output), and letters per word in the columns' labels."""
SIDES = tuple(ServiceCapability.Side.values)
INPUT, OUTPUT = SIDES
READS = ("text", "vision", "audio", "video", "file")
WRITES = ("text", "structured_output", "tool_calling")


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """A cell of the matrix: whether a capability is on, and the source of this value.

    If sources disagree about the value, `fact` contains what each of them says.
    """

    side: str
    name: str
    on: bool
    source: str
    fact: Fact | None = None
    in_doubt: bool = False

    @property
    def key(self) -> str:
        """The name of the cell's check box in a form, such as `input:vision`."""
        return f"{self.side}:{self.name}"


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A service and its cells, in the order of the columns."""

    service: Service
    cells: tuple[MatrixCell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A page of the matrix. `unknown` is the number of services with an unknown value, counted on all pages."""

    reads: tuple[str, ...]
    writes: tuple[str, ...]
    rows: tuple[MatrixRow, ...]
    unknown: int
    page: Page[Service]

    @property
    def is_wide(self) -> bool:
        """Return whether the table has more columns than fit on a phone and must therefore scroll sideways."""
        names = (*self.reads, *self.writes)
        longest = max(len(word) for name in names for word in re.split(r"[\W_]", name))
        return longest > MAX_WORD or max(len(self.reads), len(self.writes)) > MAX_FITTING


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixFilter:
    """A filter for services by words, by provider, and by `show` (`routed` or `unknown`). `extra` lists added columns.

    `provider` is the name of a provider or, if no provider has this name, a substring of provider names. `size` is the
    number of rows per page.
    """

    q: str = ""
    provider: str = ""
    show: str = ""
    page: str = ""
    size: int = PAGE_SIZES[0]
    extra: tuple[Cell, ...] = ()


IS_UNKNOWN = Q(declares_capabilities=False) | Exists(
    ServiceCapability.objects.filter(service=OuterRef("pk"), source=Source.UNKNOWN)
)
"""Condition for services with at least one unknown capability."""
IS_ROUTED = Q(provider__candidates__model=F("model")) | Q(
    provider__candidates__model="", provider__default_model=F("model")
)
"""Condition for services whose model is a candidate in a fallback chain."""


def select_services(matrix_filter: MatrixFilter) -> QuerySet[Service]:
    rows: QuerySet[Service] = Service.objects.all()
    if matrix_filter.q:
        rows = rows.filter(
            Q(service_id__icontains=matrix_filter.q)
            | Q(name__icontains=matrix_filter.q)
            | Q(model__icontains=matrix_filter.q)
        )
    if matrix_filter.provider:
        is_name = snapshot.current().configuration.provider(matrix_filter.provider) is not None
        match = "provider__name" if is_name else "provider__name__icontains"
        rows = rows.filter(**{match: matrix_filter.provider})
    return rows


def select_rows(matrix_filter: MatrixFilter) -> QuerySet[Service]:
    """Return the services that match all filters, with their providers and cells prefetched."""
    rows = select_services(matrix_filter)
    if matrix_filter.show == "unknown":
        rows = rows.filter(IS_UNKNOWN)
    elif matrix_filter.show == "routed":
        # A subquery is used, because a join with candidates would repeat a service for each chain in which it occurs.
        rows = rows.filter(pk__in=Service.objects.filter(IS_ROUTED).order_by().values("pk"))
    return rows.select_related("provider").prefetch_related("capabilities")


def read_matrix(matrix_filter: MatrixFilter) -> Matrix:
    """Return a page of the matrix. This takes six queries."""
    reads, writes = find_columns(matrix_filter)
    page = Paginator(select_rows(matrix_filter), matrix_filter.size).get_page(matrix_filter.page)
    doubts = find_doubts()
    rows = tuple(mark_doubts(build_row(service, reads, writes), doubts) for service in page)
    return Matrix(
        reads=reads,
        writes=writes,
        rows=rows,
        unknown=select_services(matrix_filter).filter(IS_UNKNOWN).count(),
        page=page,
    )


def list_page_ids(matrix_filter: MatrixFilter) -> list[int]:
    keys = select_rows(matrix_filter).values_list("pk", flat=True)
    return list(Paginator(keys, matrix_filter.size).get_page(matrix_filter.page))


def find_columns(matrix_filter: MatrixFilter) -> tuple[tuple[str, ...], tuple[str, ...]]:
    # The columns depend on the services on all pages, so that every page has the same columns.
    cells = ServiceCapability.objects.filter(Q(supported=True) | Q(source=Source.DECLARED)).order_by("side", "name")
    if matrix_filter.q or matrix_filter.provider:
        cells = cells.filter(service__in=select_services(matrix_filter).order_by())
    return _add_columns([*cells.values_list("side", "name").distinct(), *matrix_filter.extra])


def list_columns(services: Iterable[Service]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the default columns, and a further column for each other capability that one of these services has."""
    cells = (cell for service in services for cell in service.capabilities.all())
    return _add_columns((cell.side, cell.name) for cell in cells if cell.supported or cell.source == Source.DECLARED)


def _add_columns(cells: Iterable[Cell]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    reads, writes = dict.fromkeys(READS), dict.fromkeys(WRITES)
    for side, name in cells:
        (reads if side == INPUT else writes).setdefault(name)
    return tuple(reads), tuple(writes)


def build_row(service: Service, reads: Iterable[str], writes: Iterable[str]) -> MatrixRow:
    stored = {(cell.side, cell.name): cell for cell in service.capabilities.all()}
    declares_all = service.declares_all_capabilities
    columns = [(INPUT, name) for name in reads] + [(OUTPUT, name) for name in writes]
    return MatrixRow(service, tuple(build_cell(stored.get(cell), cell, service, declares_all) for cell in columns))


def find_doubts() -> frozenset[tuple[str, str, str]]:
    """Return (provider, model, capability) for all evidence, unless dismissed, that a model lacks a capability.

    This takes one query.
    """
    rows = Drift.objects.filter(kind__in=REFUTING_KINDS, dismissed_at=None)
    return frozenset(rows.values_list("provider", "model", "capability"))


def mark_doubts(row: MatrixRow, doubts: Collection[tuple[str, str, str]]) -> MatrixRow:
    model = (row.service.provider.name, row.service.model)
    if not any(doubt[:2] == model for doubt in doubts):
        return row
    squares = (
        replace(square, in_doubt=square.side == INPUT and square.on and (*model, square.name) in doubts)
        for square in row.cells
    )
    return replace(row, cells=tuple(squares))


def build_cell(cell: ServiceCapability | None, key: Cell, service: Service, declares_all: bool) -> MatrixCell:
    """Return a cell of the matrix. A service that declares no capabilities is assumed to read and write only text."""
    side, name = key
    if cell is not None and service.declares_capabilities:
        return MatrixCell(side, name, cell.supported, cell.source, find_contest(cell, service))
    if not service.declares_capabilities:
        return MatrixCell(side, name, name == "text", Source.UNKNOWN.value)
    # If a capability is not stored, the model lacks it, provided that the service declares all its capabilities.
    # Otherwise, it is unknown whether the model has it.
    return MatrixCell(side, name, False, (Source.DECLARED if declares_all else Source.UNKNOWN).value)


def find_contest(cell: ServiceCapability, service: Service) -> Fact | None:
    """Return what each catalogue source says about a contested cell, or None if they agree."""
    if cell.source != Source.CONTESTED:
        return None
    # The sources may agree now, although they did not when the cell was filled in.
    entry = snapshot.current().catalogue.entry_at(service.provider.name, service.provider.endpoint, service.model)
    return entry.contested.get((cell.side, cell.name)) if entry else None


def list_cells(service: Service) -> tuple[MatrixCell, ...]:
    return build_row(service, *list_columns([service])).cells


def find_cell(service: Service, side: str, name: str) -> MatrixCell:
    # The caller may have prefetched the cells before changing them, so read the service again.
    reloaded = Service.objects.select_related("provider").prefetch_related("capabilities").get(pk=service.pk)
    cell = next(
        (
            capability
            for capability in reloaded.capabilities.all()
            if (capability.side, capability.name) == (side, name)
        ),
        None,
    )
    return build_cell(cell, (side, name), reloaded, reloaded.declares_all_capabilities)
