"""Loading the demo, and taking it away again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from django.utils.translation import gettext as _

from capabilities.models import Agent, Service
from capabilities.ports import SYSTEM, Act, Actor, ports
from routing_admin import actions, rows
from routing_admin.core.configuration import EMPTY, CandidateSpec, ProviderSpec
from routing_admin.core.router import configuration_from_env
from routing_admin.models import Installation

FILES = (Path(__file__).parent / "llm-routing.json", Path(__file__).parent / "llmservices.json")
AGENTS = (
    ("text-agent", "Writes; its model reads text only.", "text-model"),
    ("vision-agent", "Looks at images.", "vision-model"),
    ("multimodal-agent", "Reads images, audio and files.", "multimodal-model"),
)
ECHO = ProviderSpec("echo", "echo://local", "echo-text", "echo", display_name="Echo")
"""The embedded provider that answers with what it received."""

KEYED_AGENT = "text-agent"
"""Whose key `make run` prints the first time."""


def load() -> None:
    """Fills an empty installation: providers, services, routes, agents, as one revision."""
    with ports.ledger.change(SYSTEM, Act("demo.load", message="Demo")):
        actions.import_configuration(SYSTEM, [path.read_bytes() for path in FILES])
        for agent_id, description, service in AGENTS:
            Agent.objects.update_or_create(
                agent_id=agent_id,
                defaults={
                    "name": agent_id,
                    "description": description,
                    "service": Service.objects.get(service_id=service),
                },
            )
        Installation.objects.update(has_demo=True)


def load_single(env: Mapping[str, str], *, demo_too: bool) -> None:
    """The one provider that the environment names, as the default route with echo as its fallback (decision 13)."""
    with ports.ledger.change(SYSTEM, Act("environment.load", message="LLM_API_KEY")):
        if demo_too:
            load()
        single, now = configuration_from_env(env), rows.read()
        chain = (*single.routes[0].candidates, CandidateSpec(ECHO.name))
        default = replace(single.routes[0], candidates=chain)
        kept = tuple(
            provider for provider in now.providers if provider.name not in (ECHO.name, single.providers[0].name)
        )
        others = tuple(route for route in now.routes if route.task_type != default.task_type)
        rows.write(replace(now, providers=(*single.providers, *kept, ECHO), routes=(default, *others)))


def remove(actor: Actor) -> int | None:
    """Takes the demo away as one revision, so that Undo brings it back; its number."""
    act = Act("demo.remove", message=_("Removed demo data"))
    with ports.ledger.change(actor, act):
        rows.write(EMPTY)
        Installation.objects.update(has_demo=False)
    return act.revision
