"""Fills the ports through which lower apps call upward; called once, when Django is ready."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.utils import timezone

from capabilities.acts import Actor
from capabilities.core.consequence import Consequence
from capabilities.core.message import ChatRequest
from capabilities.core.own_prices import price_of
from capabilities.core.prices import Price
from capabilities.core.services.agent_limits import MONEY, AgentLimits, Meter
from capabilities.core.vocabulary import TEXT_ONLY
from capabilities.ports import LimitUse, Link, RefusedParameter, ports
from routing_admin import actions
from routing_admin.configuration import snapshot
from routing_admin.configuration.revisions import ledger
from routing_admin.core.configuration.specs import CandidateSpec, Configuration
from routing_admin.core.planning.language import inject_directive
from routing_admin.core.planning.plan import RoutingQuery, default_route_to, plan_route
from routing_admin.dispatch.describing_for_agents import RouteDescriber
from routing_admin.dispatch.description_preview import SnapshotDescriptions
from routing_admin.dispatch.dial import Dialler
from routing_admin.dispatch.kept_refusals import kept_refusals
from routing_admin.dispatch.receivers import SnapshotServices
from routing_admin.dispatch.send import process_run_context
from routing_admin.limits.uses import end_of_window, find_uses
from routing_admin.prices.sheet import list_price
from routing_admin.queries.consequences import foresee_deletion, foresee_disabling
from routing_admin.queries.endings import foresee_ending
from routing_admin.queries.numbers import list_families, list_process_numbers
from routing_admin.queries.provider_keys import LoggedKeyBook
from routing_admin.queries.routes import find_route, list_aliases_of
from routing_admin.queries.uncounted import count_uncounted
from routing_admin.request_log.counting import without_former_names
from routing_admin.server import metrics
from routing_admin.server.scrapes import list_load


class SnapshotRoutes:
    """Task routes as the lower apps may know them; see `capabilities.ports.RouteDirectory`."""

    def exists(self, task_type: str) -> bool:
        """Whether that task type has a route, by the rows: what is decided on it must still hold."""
        return find_route(task_type) is not None

    def aliases_of(self, target: str) -> Sequence[str]:
        """The aliases that lead to a name, by the rows."""
        return list_aliases_of(target)

    def task_types(self) -> tuple[str, ...]:
        """Every task type that has a route, in order."""
        return tuple(route.task_type for route in snapshot.current().configuration.routes)

    def chain(self, task_type: str) -> tuple[Link, ...]:
        """The candidates of a route, in order; one without a service row counts as text only."""
        configuration = snapshot.current().configuration
        route = configuration.route(task_type)
        return tuple(self._link(configuration, each) for each in (route.candidates if route else ()))

    def _link(self, configuration: Configuration, candidate: CandidateSpec) -> Link:
        provider = configuration.provider(candidate.provider)
        model = candidate.model or (provider.default_model if provider else "")
        service = configuration.service_at(candidate.provider, model)
        if service is None:
            return Link(f"{candidate.provider}/{model}", TEXT_ONLY, is_service=False)
        return Link(service.id, service.effective_capabilities)

    def lead(self, actor: Actor, alias: str, target: str) -> None:
        """Makes a model name lead to a target."""
        actions.save_alias(actor, alias, target)

    def default_language(self) -> str:
        """The language of descriptions when a request names none."""
        return snapshot.current().configuration.default_language or "en"

    def lead_by_default(self, chat: ChatRequest, language: str | None) -> ChatRequest:
        """The request as the default route sends it on; see `capabilities.ports.RouteDirectory`."""
        configuration = snapshot.current().configuration
        route = default_route_to(configuration)
        plan = plan_route(configuration, route, RoutingQuery(language=language))
        return inject_directive(
            replace(chat, temperature=route.temperature, max_tokens=route.max_tokens), plan.directive
        )


class SnapshotForesight:
    """What acts would mean for routes and agents; see `capabilities.ports.Foresight`."""

    def of_deleting(self, kind: str, names: Collection[str]) -> Sequence[Consequence]:
        """What deleting these would mean."""
        return foresee_deletion(kind, names)

    def of_disabling(self, kind: str, names: Collection[str]) -> Sequence[Consequence]:
        """What disabling these would mean."""
        return foresee_disabling(kind, names)

    def of_ending(self, provider: str, model: str) -> Sequence[Consequence]:
        """What the end of a model means."""
        return foresee_ending(provider, model)


class RememberedRefusals:
    """What models refuse, as this process knows it; see `capabilities.ports.Refusals`."""

    def of(self, provider: str, model: str) -> Sequence[RefusedParameter]:
        """The parameters that are sent otherwise now, or not at all; their end by the wall's clock."""
        run_context, now = process_run_context(), timezone.now()
        return [
            RefusedParameter(
                each.param,
                each.sent_as,
                None if each.until is None else now + timedelta(seconds=each.until - run_context.clock()),
            )
            for each in run_context.memory.refusals(provider, model)
        ]

    def forget(self, provider: str, model: str, name: str) -> None:
        """Sends this parameter as usual again."""
        kept_refusals.look()  # it knows the rows, and hears what is forgotten
        process_run_context().memory.forget(provider, model, name)
        kept_refusals.look()


class ShippedPriceLists:
    """The lists that come with the project; see `capabilities.ports.PriceLists`."""

    def price_at(self, endpoint: str, model: str) -> Price | None:
        """The price of a model at the host of an endpoint today."""
        return list_price(endpoint, model, timezone.now())

    def price_for(self, own: Mapping[str, Any], endpoint: str, model: str) -> Price | None:
        """The administrator's own price, else the listed one."""
        return price_of(own) or self.price_at(endpoint, model)


_Counts = Mapping[tuple[str, Meter], int]


class LedgerUses:
    """What agents and their keys used of their limits; see `capabilities.ports.LimitUses`."""

    def of(self, limits: Mapping[str, AgentLimits | None]) -> Mapping[str, Sequence[LimitUse]]:
        """What each holder used of each of its limits."""
        counted = {holder: each for holder, each in limits.items() if each is not None and each.most}
        used = find_uses(counted) if counted else {}
        uncounted = count_uncounted(counted, snapshot.current().exchange)
        return {
            holder: [self._use(holder, meter, each, used, uncounted) for meter in Meter if each and meter in each.most]
            for holder, each in limits.items()
        }

    def _use(self, holder: str, meter: Meter, limits: AgentLimits, used: _Counts, uncounted: _Counts) -> LimitUse:
        return LimitUse(
            meter,
            limits.most[meter],
            used.get((holder, meter), 0),
            end_of_window(meter),
            limits.currency if meter in MONEY else "",
            uncounted.get((holder, meter), 0),
        )


def connect() -> None:
    """Connects what lower apps and rooms ask upward for, each port with what fills it."""
    ports.ledger = ledger
    ports.routes = SnapshotRoutes()
    ports.installed = SnapshotServices()
    ports.dial = Dialler()
    ports.refusals = RememberedRefusals()
    ports.foresight = SnapshotForesight()
    ports.price_lists = ShippedPriceLists()
    ports.limit_uses = LedgerUses()
    ports.key_book = LoggedKeyBook()
    ports.file_describer = RouteDescriber()
    ports.descriptions = SnapshotDescriptions()
    metrics.sources[:] = [list_families]
    metrics.process_sources[1:] = [list_load, list_process_numbers]
    metrics.filters[:] = [without_former_names]
