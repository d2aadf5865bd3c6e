"""Fills the ports through which lower apps call upward; called once, when Django is ready."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from django.utils import timezone

from capabilities.core.message import ChatRequest
from capabilities.core.vocabulary import TEXT_ONLY
from capabilities.ports import Link, RefusedParameter, ports
from routing_admin.configuration import snapshot
from routing_admin.configuration.revisions import ledger
from routing_admin.console.dashboard.metrics import list_families, list_process_numbers
from routing_admin.console.routes.queries import find_route
from routing_admin.core.configuration.specs import CandidateSpec, Configuration
from routing_admin.core.planning.language import inject_directive
from routing_admin.core.planning.plan import RoutingQuery, default_route_to, plan_route
from routing_admin.dispatch.description_preview import SnapshotDescriptions
from routing_admin.dispatch.kept_refusals import kept_refusals
from routing_admin.dispatch.receivers import SnapshotServices, default_language
from routing_admin.dispatch.send import process_run_context
from routing_admin.platform.server import metrics, readiness
from routing_admin.platform.server.scrapes import list_load
from routing_admin.request_log.counting import without_former_names


class SnapshotRoutes:
    """Task routes as the lower apps may know them; see `capabilities.ports.RouteDirectory`."""

    def exists(self, task_type: str) -> bool:
        """Whether that task type has a route, by the rows: what is decided on it must still hold."""
        return find_route(task_type) is not None

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

    def default_language(self) -> str:
        """The language of descriptions when a request names none."""
        return default_language()

    def lead_by_default(self, chat: ChatRequest, language: str | None) -> ChatRequest:
        """The request as the default route sends it on; see `capabilities.ports.RouteDirectory`."""
        configuration = snapshot.current().configuration
        route = default_route_to(configuration)
        plan = plan_route(configuration, route, RoutingQuery(language=language))
        return inject_directive(
            replace(chat, temperature=route.temperature, max_tokens=route.max_tokens), plan.directive
        )


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
        kept_refusals().look()  # it knows the rows, and hears what is forgotten
        process_run_context().memory.forget(provider, model, name)
        kept_refusals().look()


def connect() -> None:
    """Connects what lower apps and rooms ask upward for, each port with what fills it."""
    ports.ledger = ledger
    ports.routes = SnapshotRoutes()
    ports.installed = SnapshotServices()
    ports.refusals = RememberedRefusals()
    ports.descriptions = SnapshotDescriptions()
    readiness.CHECKS[2:] = [readiness.DependencyCheck("configuration", snapshot.check_read)]
    readiness.HAS_CONFIGURATION[:] = [snapshot.is_usable]
    metrics.sources[:] = [list_families]
    metrics.process_sources[1:] = [list_load, list_process_numbers]
    metrics.filters[:] = [without_former_names]
