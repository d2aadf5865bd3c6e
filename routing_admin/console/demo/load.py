"""Load the demo data, record its first request, and remove the demo data."""

from __future__ import annotations

import hashlib
import secrets
import struct
import time
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from artifacts.library import delete_artifacts, store_bytes
from artifacts.models import Artifact
from artifacts.storage.content import build_file_part
from capabilities.actors import SYSTEM, Actor, AuditedAction
from capabilities.core.consequence import Consequence
from capabilities.core.delivery.model_endpoint import ModelEndpoint, Prepared
from capabilities.core.message import ChatRequest, Message, Role, TextPart
from capabilities.core.translatable import translatable
from capabilities.core.wire import Answer, Failure, Fault
from capabilities.models import Agent, Service
from routing_admin.configuration import rows, snapshot
from routing_admin.configuration.agents.actions import issue_key
from routing_admin.configuration.revisions import ledger
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.console.base.consequences import find_consequences
from routing_admin.console.demo.day import AGENT_LABELS, BUDGET, BUDGETED, DEMO, count_requests, remove_day
from routing_admin.console.exchange.actions import import_configuration
from routing_admin.core.configuration.removals import removed_names
from routing_admin.core.configuration.specs import (
    DEFAULT_ROUTE,
    EMPTY,
    AgentSpec,
    CandidateSpec,
    Configuration,
    ProviderSpec,
)
from routing_admin.core.fallback.chain import Timeouts
from routing_admin.core.fallback.context import local_context
from routing_admin.core.fallback.errors import RouterError
from routing_admin.core.files.importing import import_files
from routing_admin.core.files.keys import configuration_from_env
from routing_admin.core.planning.model_names import task_name
from routing_admin.core.planning.plan import resolve_route
from routing_admin.dispatch.plan import PlannedRequest, plan_request, record_plan
from routing_admin.dispatch.recorded import record_answer_sync
from routing_admin.dispatch.send import Dispatch, NetworkTransport
from routing_admin.models import (
    Installation,
)
from routing_admin.request_log.journal import journal
from routing_admin.request_log.recorder import RequestRecorder

FILES = (Path(__file__).parent / "llm-routing.json", Path(__file__).parent / "llmservices.json")
AGENTS = (
    ("text-agent", "Writes; its model reads text only.", "text-model"),
    ("vision-agent", "Looks at images.", "vision-model"),
    ("multimodal-agent", "Reads images, audio and files.", "multimodal-model"),
)
ECHO = ProviderSpec("echo", "echo://local", "echo-text", "echo", display_name="Echo")
"""The built-in provider, which answers with the request that it receives."""

SAMPLES = Path(__file__).parent / "files"
OWNER = "vision-agent"
KEYED_AGENT = "text-agent"
"""The agent whose key `make run` prints on its first run."""


def load(*, budget: bool = False) -> None:
    """Fill an empty installation with providers, services, routes and agents, as one revision.

    With `budget`, one agent gets a budget that a day of demo requests nearly uses up.
    """
    with ledger.change(SYSTEM, AuditedAction("demo.load")):
        import_configuration(SYSTEM, [path.read_bytes() for path in FILES])
        for agent_id, description, service in AGENTS:
            Agent.objects.update_or_create(
                agent_id=agent_id,
                defaults={
                    "name": agent_id,
                    "description": description,
                    "service": Service.objects.get(service_id=service),
                    "limits": dict(BUDGET) if budget and agent_id == BUDGETED else {},
                },
            )
        Installation.objects.update(has_demo=True)


def load_files() -> None:
    """Store the sample files of the vision agent: a text, an image, a report and a sound."""
    for path in sorted(SAMPLES.iterdir()):
        store_bytes(SYSTEM, path.read_bytes(), once=True, owner=OWNER, filename=path.name)


def issue_demo_key() -> str:
    return issue_key(SYSTEM, Agent.objects.get(agent_id=KEYED_AGENT), label="demo")[0]


def load_single(env: Mapping[str, str], *, demo_too: bool, budget: bool = False) -> None:
    """Add the provider configured in the environment, and a default route that falls back from it to `echo`."""
    with ledger.change(SYSTEM, AuditedAction("environment.load", message="LLM_API_KEY")):
        if demo_too:
            load(budget=budget)
        configured, current = configuration_from_env(env), rows.read()
        chain = (*configured.routes[0].candidates, CandidateSpec(ECHO.name))
        default = replace(configured.routes[0], candidates=chain)
        # The new entries replace existing providers with the same names.
        other_providers = tuple(
            provider for provider in current.providers if provider.name not in (ECHO.name, configured.providers[0].name)
        )
        other_routes = tuple(route for route in current.routes if route.task_type != default.task_type)
        rows.write(
            replace(current, providers=(*configured.providers, *other_providers, ECHO), routes=(default, *other_routes))
        )


@cache
def demo_configuration() -> Configuration:
    files = [path.read_bytes() for path in FILES]
    agents = tuple(AgentSpec(agent_id, agent_id, text, service) for agent_id, text, service in AGENTS)
    return replace(import_files(EMPTY, files).configuration, agents=agents)


def sample_ids() -> list[str]:
    names = [path.name for path in SAMPLES.iterdir()]
    hashes = [hashlib.sha256(path.read_bytes()).hexdigest() for path in SAMPLES.iterdir()]
    artifacts = Artifact.objects.living().filter(owner=OWNER, filename__in=names, sha256__in=hashes)
    return list(artifacts.values_list("pk", flat=True))


@dataclass(frozen=True, slots=True)
class RemovalPreview:
    """What removing the demo would delete (names by kind of entry), and the consequences for other entries."""

    names: Mapping[str, tuple[str, ...]]
    effects: tuple[Consequence, ...]


# Snapshots are immutable, so the preview, which the dashboard requests every 30 seconds, is cached.
@lru_cache(maxsize=2)
def preview_removal(state: Snapshot) -> RemovalPreview:
    remaining = subtract_demo(state.configuration, demo_configuration())
    names = removed_names(state.configuration, remaining)
    return RemovalPreview(
        names,
        tuple(
            consequence
            for consequence in find_consequences(remaining)
            if consequence.name not in names.get(consequence.kind, ())
        ),
    )


def remove(actor: Actor) -> AuditedAction:
    """Remove the demo data and its requests, as one revision. Undo restores them, including the sample files.

    `subtract_demo` says which entries are kept.
    """
    act = AuditedAction("demo.remove")
    with ledger.change(actor, act):
        rows.write(subtract_demo(rows.read(), demo_configuration()))
        act.details |= {"artifacts": delete_artifacts(actor, sample_ids()), "requests": count_requests()}
        Installation.objects.update(has_demo=False)
    remove_day()
    return act


LABELS: Mapping[str, str | Promise] = {
    "provider": gettext_lazy("Providers"),
    "service": gettext_lazy("Model services"),
    "route": gettext_lazy("Task routes"),
    "alias": gettext_lazy("Aliases"),
    "agent": gettext_lazy("Agents"),
    "language": gettext_lazy("Languages"),
}


@dataclass(frozen=True, slots=True)
class RemovalView:
    """What removing the demo would delete, as names under the label of their kind, and the consequences."""

    lists: Sequence[tuple[str | Promise, tuple[str, ...]]]
    effects: tuple[Consequence, ...]


def describe_removal() -> RemovalView:
    preview = preview_removal(snapshot.current())
    return RemovalView([(LABELS[kind], names) for kind, names in preview.names.items()], preview.effects)


def subtract_demo(current: Configuration, demo: Configuration) -> Configuration:
    """Return the configuration without the demo's entries.

    Routes and services that have been changed are kept, and so is everything that the remaining entries use.
    """
    demo_agents = {agent.id for agent in demo.agents}
    agents = tuple(agent for agent in current.agents if agent.id not in demo_agents)
    known_routes = {route.task_type: route for route in demo.routes}
    own_routes = {route.task_type for route in current.routes if known_routes.get(route.task_type) != route}
    # Without the default route, requests with an unknown task type would fail, so it is kept if another route is kept.
    needed_routes = {agent.task_type for agent in agents} | ({DEFAULT_ROUTE} if own_routes else set())
    routes = tuple(route for route in current.routes if route.task_type in own_routes | needed_routes)
    used_services = {agent.service_id for agent in agents}
    known_services = {service.id: service for service in demo.services}
    services = tuple(
        service
        for service in current.services
        if known_services.get(service.id) != service or service.id in used_services
    )
    needed = {candidate.provider for route in routes for candidate in route.candidates}
    needed |= {service.provider for service in services}
    demo_providers = {provider.name for provider in demo.providers}
    providers = tuple(
        provider for provider in current.providers if provider.name not in demo_providers or provider.name in needed
    )
    language = current.default_language if routes else None
    return replace(
        current, agents=agents, routes=routes, services=services, providers=providers, default_language=language
    )


TASK_TYPE, AGENT, DOWN = "design", "text-agent", "echo-vision"
QUESTION = "Which colours does this picture have?"
SWITCHED_OFF = translatable("%(model)s was switched off for this example, so that the last candidate's form shows.")
SIDE = 16


@dataclass(frozen=True, slots=True)
class FailingModelTransport(NetworkTransport):
    """A transport in which all calls to one model fail. It sends all other calls."""

    model: str

    async def call(self, prepared: Prepared, to: ModelEndpoint, timeouts: Timeouts, proxy: str) -> Answer | Failure:
        if to.target.model == self.model:
            return Failure(Fault.HTTP_503, translatable(SWITCHED_OFF, model=self.model), 503, "unavailable")
        return await NetworkTransport.call(self, prepared, to, timeouts, proxy)


def record_demo_request() -> str | None:
    """Dispatch a request with an image to the route `design` while one model fails. Return the request's id.

    The request's timeline shows that two candidates received the image unchanged, and the third received a description.
    Return None if the route does not exist.
    """
    state = snapshot.current()
    route = state.configuration.route(TASK_TYPE)
    if route is None:
        return None
    file = build_file_part(Artifact.objects.living().filter(kind="image").first() or _picture())
    chat = ChatRequest((Message(Role.USER, (TextPart(QUESTION), file)),))
    planned = plan_request(state, resolve_route(state.configuration, TASK_TYPE)[0], chat, agent=AGENT)
    return _send(planned)


def _send(planned: PlannedRequest) -> str:
    request_id = f"{DEMO}_" + secrets.token_hex(8)
    recorder = RequestRecorder(request_id, DEMO)
    recorder.add_facts(agent=AGENT, labels=AGENT_LABELS[AGENT], asked_model=task_name(TASK_TYPE))
    record_plan(recorder, planned, TASK_TYPE)
    # A separate run context has no delay between tries and leaves this process's cooldowns unchanged.
    dispatch = Dispatch(planned, FailingModelTransport(DOWN), local_context(time.monotonic, lambda: 0.0))
    with suppress(RouterError):  # If no candidate answers, the error is in the request log.
        record_answer_sync(dispatch, recorder)
    journal().flush()
    return request_id


def _picture() -> Artifact:
    # Draw a PNG image of a blue square that becomes lighter to the right.
    rows = b"".join(b"\0" + b"".join(bytes((16 * x, 64 + 8 * y, 200)) for x in range(SIDE)) for y in range(SIDE))
    head = _chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0))
    data = b"\x89PNG\r\n\x1a\n" + head + _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b"")
    actor = Actor("system", "demo")
    return store_bytes(actor, data, owner=AGENT, filename="blue.png", declared="image/png")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
