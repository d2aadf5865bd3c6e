"""What the model services' pages show: each with what it reads and writes, and who uses it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet

from capabilities.models import Agent, Provider, Service
from routing_admin.console.matrix.queries import INPUT, OUTPUT, list_squares

PER_PAGE = 50


@dataclass(frozen=True, slots=True)
class ServiceLine:
    """One service of the list: what it reads and writes, as it counts, and how many agents use it."""

    row: Service
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    agents: int


def select_services() -> QuerySet[Service]:
    """All services in their order, not read yet: what a form offers."""
    return Service.objects.all()


def list_choices() -> list[tuple[int, str]]:
    """The key and the id of every service in their order, which is all that a form writes of them; one query."""
    return list(Service.objects.values_list("pk", "service_id"))


def list_services(q: str, number: str | None) -> Page[Service]:
    """That page of the services whose id holds the words, the first or last where there is no such; four queries."""
    rows = Service.objects.select_related("provider").prefetch_related("capabilities", "agents")
    return Paginator(rows.filter(service_id__icontains=q) if q else rows, PER_PAGE).get_page(number)


def describe_service(row: Service) -> ServiceLine:
    """One service with what it reads and writes; no query where cells and agents were read with the row."""
    squares = list_squares(row)
    reads, writes = (tuple(each.name for each in squares if each.on and each.side == side) for side in (INPUT, OUTPUT))
    return ServiceLine(row, reads, writes, len(row.agents.all()))


def find_service(service_id: str) -> Service | None:
    """The service with that id, its provider, cells and agents; None for none. Three queries."""
    rows = Service.objects.select_related("provider").prefetch_related("capabilities", "agents")
    return rows.filter(service_id=service_id).first()


def find_row(pk: int) -> Service | None:
    """The service of a row of the matrix, with its provider; None for none."""
    return Service.objects.select_related("provider").filter(pk=pk).first()


def find_rows(pks: Iterable[str]) -> list[Service]:
    """The services of rows of the matrix, with provider and cells; what is no number is passed over."""
    rows = Service.objects.filter(pk__in=[pk for pk in pks if pk.isdecimal()])
    return list(rows.select_related("provider").prefetch_related("capabilities"))


def list_service_ids() -> set[str]:
    """The ids that are taken."""
    return set(Service.objects.values_list("service_id", flat=True))


def map_models(provider: Provider) -> dict[str, str]:
    """The models of a provider that are services already: by model, the service's id."""
    return dict(Service.objects.filter(provider=provider).values_list("model", "service_id"))


def has_services(provider: Provider) -> bool:
    """Whether any service belongs to the provider."""
    return provider.services.exists()


def list_services_at(provider: Provider) -> list[Service]:
    """The services that belong to the provider."""
    return list(provider.services.all())


def list_agents_using(row: Service) -> list[Agent]:
    """The agents that use the service."""
    return list(row.agents.all())
