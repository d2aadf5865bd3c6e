"""Queries for model services and their agents, for drifts and transcripts, and for the cost of a nightly probe.

A drift is evidence that a model cannot read something that its service says it can, or that what the model can read has
changed. Pages show it as a sentence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

from django.db.models import Count, QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from capabilities.core.delivery.probe_choice import count_calls, estimate_usage, list_probes
from capabilities.core.prices import Cost, calculate_cost
from capabilities.core.providers.probes.drift import REFUTING_KINDS, DriftKind, is_current
from capabilities.core.translatable import insert_facts
from capabilities.core.wire import Usage
from capabilities.labels import CONTENTS, capability_label
from capabilities.models import Agent, Drift, NightlyProbe, ProbeTranscript, Provider, Service
from routing_admin.configuration import snapshot
from routing_admin.console.matrix.queries import INPUT, OUTPUT, list_cells
from routing_admin.core.configuration.specs import Configuration, ServiceSpec
from routing_admin.limits.prices.sheet import price_for


class ServiceName(NamedTuple):
    """The fields of a service that lists show. `provider` and `display_name` name its provider."""

    pk: int
    service_id: str
    model: str
    enabled: bool
    provider: str
    display_name: str
    provider_enabled: bool
    protocol: str

    @property
    def shown_provider(self) -> str:
        return self.display_name or self.provider


@dataclass(frozen=True, slots=True)
class ServiceLine:
    """What a service reads and writes, as lists show it."""

    reads: tuple[str, ...]
    writes: tuple[str, ...]


def select_services() -> QuerySet[Service]:
    return Service.objects.all()


def list_names() -> list[ServiceName]:
    """Return, for all services in order, the fields that lists show. This takes one query."""
    columns = ("pk", "service_id", "model", "enabled")
    of_provider = ("provider__name", "provider__display_name", "provider__enabled", "provider__protocol")
    return [ServiceName(*values) for values in Service.objects.values_list(*columns, *of_provider)]


def count_agents() -> Mapping[int, int]:
    """Return the number of agents that use each service, by the service's primary key. This takes one query."""
    used = Agent.objects.filter(service__isnull=False).order_by()
    return dict(used.values_list("service").annotate(count=Count("pk")))


def describe_services(pks: Collection[int]) -> Mapping[int, ServiceLine]:
    """Return what these services read and write, by primary key. This takes two queries."""
    rows = Service.objects.select_related("provider").prefetch_related("capabilities").filter(pk__in=pks)
    return {row.pk: describe_service(row) for row in rows}


def describe_service(row: Service) -> ServiceLine:
    squares = list_cells(row)
    reads, writes = (
        tuple(square.name for square in squares if square.on and square.side == side) for side in (INPUT, OUTPUT)
    )
    return ServiceLine(reads, writes)


def find_service(service_id: str) -> Service | None:
    """Return the service with its provider, cells and agents. This takes three queries."""
    rows = Service.objects.select_related("provider").prefetch_related("capabilities", "agents")
    return rows.filter(service_id=service_id).first()


def find_row(pk: int) -> Service | None:
    return Service.objects.select_related("provider").filter(pk=pk).first()


def find_rows(pks: Iterable[str]) -> list[Service]:
    """Return the services with these primary keys. Keys that are not numbers are ignored."""
    rows = Service.objects.filter(pk__in=[pk for pk in pks if pk.isdecimal()])
    return list(rows.select_related("provider").prefetch_related("capabilities"))


def list_service_ids() -> set[str]:
    return set(Service.objects.values_list("service_id", flat=True))


def map_models(provider: Provider) -> dict[str, str]:
    """Map each of a provider's models to the id of the service that uses it."""
    return dict(Service.objects.filter(provider=provider).values_list("model", "service_id"))


def has_services(provider: Provider) -> bool:
    return provider.services.exists()


def list_services_at(provider: Provider) -> list[Service]:
    return list(provider.services.all())


def list_agents_using(row: Service) -> list[Agent]:
    return list(row.agents.all())


# A drift is evidence that a model cannot read something that its service says it can, or that what the model can read
# has changed.


@dataclass(frozen=True, slots=True)
class DriftLine:
    """A capability drift that is still relevant, and the service that it concerns."""

    row: Drift
    service_id: str

    @property
    def is_doubt(self) -> bool:
        return self.row.kind in REFUTING_KINDS


def list_open_drifts() -> list[Drift]:
    return list(Drift.objects.filter(dismissed_at=None))


def map_drifts() -> Mapping[tuple[str, str], Mapping[str, DriftKind]]:
    """Map (provider, model) to the model's open capability drifts, by capability. This takes one query.

    Open drifts are those that are not dismissed.
    """
    drifts: dict[tuple[str, str], dict[str, DriftKind]] = {}
    for row in list_open_drifts():
        drifts.setdefault((row.provider, row.model), {})[row.capability] = DriftKind(row.kind)
    return drifts


def list_drifts(configuration: Configuration) -> list[DriftLine]:
    """Return the relevant capability drifts of all enabled services. This takes one query."""
    rows = list_open_drifts()
    enabled = [service for service in configuration.services if service.enabled] if rows else []
    return [line for service in enabled for line in match_drifts(rows, service)]


def list_service_drifts(row: Service) -> list[DriftLine]:
    service = snapshot.current().configuration.service(row.service_id)
    rows = Drift.objects.filter(dismissed_at=None, provider=row.provider.name, model=row.model)
    return list(match_drifts(rows, service)) if service else []


def match_drifts(rows: Iterable[Drift], service: ServiceSpec) -> Iterator[DriftLine]:
    for row in rows:
        # A drift is omitted if it no longer contradicts the service's capabilities, for example after Undo.
        is_read = row.capability in service.effective_capabilities.input
        if (row.provider, row.model) == (service.provider, service.model) and is_current(DriftKind(row.kind), is_read):
            yield DriftLine(row, service.id)


def list_transcripts(row: Service) -> list[ProbeTranscript]:
    return list(ProbeTranscript.objects.filter(provider=row.provider.name, model=row.model))


@dataclass(frozen=True, slots=True)
class NightlyEstimate:
    """The estimated calls, tokens and cost of a service's nightly probe.

    `unknown` lists capabilities for which the tokens cannot be estimated. `measured` is true if the numbers were
    measured in earlier probes. `cost` is the cost of the known tokens. `last` is the last night in which the service
    was probed, or None.
    """

    calls: int
    tokens: int
    unknown: tuple[str, ...]
    measured: bool
    cost: Cost | None
    last: date | None


def estimate_night(row: Service, transcripts: Iterable[ProbeTranscript]) -> NightlyEstimate:
    """Estimate a nightly probe from the tokens of earlier probes or, if there are none, from vendors' formulas.

    This takes one query.
    """
    provider = row.provider
    probes = list_probes(provider.protocol, provider.endpoint, provider.quirks, row.limits)
    # If a capability has two transcripts, the newer one is last here and is therefore used.
    measured_usages = {
        transcript.capability: sum_usage(transcript.exchanges) for transcript in reversed(list(transcripts))
    }
    usages = {
        probe.capability: measured_usages.get(probe.capability) or estimate_usage(row.model, probe) for probe in probes
    }
    known_usages = [usage for usage in usages.values() if usage is not None]
    nightly_probe = NightlyProbe.objects.filter(service_id=row.service_id).first()
    return NightlyEstimate(
        count_calls(probes),
        sum((usage.prompt_tokens or 0) + (usage.completion_tokens or 0) for usage in known_usages),
        tuple(name for name, usage in usages.items() if usage is None),
        bool(probes) and all(measured_usages.get(probe.capability) for probe in probes),
        sum_costs(row, known_usages),
        nightly_probe.last_night if nightly_probe else None,
    )


def sum_costs(row: Service, usages: Iterable[Usage]) -> Cost | None:
    """Return what these tokens cost at the price of the service's model, or None if the cost is unknown."""
    price = price_for(row.price, row.provider.endpoint, row.model)
    costs = [calculate_cost(usage, price) for usage in usages] if price else []
    if price is None or not costs or None in costs:  # If any cost is missing, the sum would be too low.
        return None
    return Cost(sum(cost.nanos for cost in costs if cost), price.currency)


def sum_usage(exchanges: Iterable[Mapping[str, Any]]) -> Usage | None:
    """Return the sum of all answers' tokens, or None if the provider did not report them for every answer."""
    counts = [
        (exchange["promptTokens"], exchange["completionTokens"]) for exchange in exchanges if not exchange["fault"]
    ]
    if any(None in pair for pair in counts):
        return None
    return Usage(sum(prompt for prompt, _ in counts), sum(answer for _, answer in counts))


SENTENCES: Mapping[str, str | Promise] = {
    DriftKind.REFUSED: gettext_lazy(
        "%(name)s should read %(kinds)s, but answered a request containing them with status %(status)s."
    ),
    DriftKind.DENIED: gettext_lazy("%(name)s is declared to read %(kinds)s, but a probe found that it cannot."),
    DriftKind.STOPPED: gettext_lazy("The nightly probe found that %(name)s no longer reads %(kinds)s."),
    DriftKind.STARTED: gettext_lazy("The nightly probe found that %(name)s now reads %(kinds)s."),
}


@dataclass(frozen=True, slots=True)
class DriftView:
    """A capability drift with the sentence that pages show."""

    line: DriftLine
    sentence: str
    kinds: str | Promise

    @property
    def tone(self) -> str:
        # A capability that the model has gained is information rather than a warning.
        return "info" if self.line.row.kind == DriftKind.STARTED else "warn"


def render_drifts(lines: Iterable[DriftLine]) -> list[DriftView]:
    return [_render(line) for line in lines]


def _render(line: DriftLine) -> DriftView:
    row = line.row
    kinds = CONTENTS.get(row.capability, capability_label(row.capability))
    facts = {"name": line.service_id, "kinds": kinds, "status": row.status}
    return DriftView(line, insert_facts(str(SENTENCES[row.kind]), facts), kinds)
