"""Query counts of the pages about providers, services, agents, the matrix and artifacts.

Two queries read the session and the user. All others are in the `queries.py` of the console's folders.
"""

from __future__ import annotations

import pytest
from django.test import Client

from artifacts.models import Artifact
from capabilities.models import Agent, AgentKey, Provider, Service, ServiceCapability
from routing_admin.models import Candidate, TaskRoute
from tests.console.visits import count_queries

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

QUERIES = {
    "/providers/": 7,
    "/providers/echo/": 9,
    "/new/provider/": 4,
    "/new/provider/?preset=deepseek": 4,
    "/providers/echo/models/": 5,
    "/services/": 7,
    "/services/echo-vision/": 9,
    "/new/service/": 4,
    "/matrix/": 9,
    "/matrix/column/?side=input&name=vision": 4,
    "/agents/": 5,
    "/agents/text-agent/": 7,
    "/new/agent/": 3,
    "/artifacts/": 6,
    "/artifacts/a0/": 5,
    "/artifacts/a0/compare/?a=echo-vision&b=echo-text": 5,
}


@pytest.fixture
def admin(demo: None, admin: Client) -> Client:
    Agent.objects.create(agent_id="watcher", service=Service.objects.get(service_id="echo-vision"))
    add_artifacts(1)
    return admin


def add_artifacts(count: int) -> None:
    """Create artifacts without stored bytes. The first one is `a0`."""
    for number in range(count):
        values = {"sha256": "0" * 64, "size": 1, "kind": "text", "mime_type": "text/plain", "is_binary": False}
        Artifact.objects.update_or_create(id=f"a{number}", defaults=values)


def add_everything() -> None:
    """Create thirty more rows of each kind, related to the rows whose pages are tested."""
    echo, vision = Provider.objects.get(name="echo"), Service.objects.get(service_id="echo-vision")
    caller = Agent.objects.get(agent_id="text-agent")
    for number in range(30):
        Provider.objects.create(name=f"p{number}", endpoint="https://a.example/v1", default_model="m")
        service = Service.objects.create(service_id=f"s{number}", name="s", provider=echo, model=f"m{number}")
        ServiceCapability.objects.create(service=service, side="input", name="audio")
        Agent.objects.create(agent_id=f"agent{number}", service=vision, origin="runtime", owner=caller)
        AgentKey.objects.create(agent=caller, public_id=f"k{number}", digest="0")
        route = TaskRoute.objects.create(task_type=f"t{number}", position=100 + number)
        Candidate.objects.create(route=route, position=1, provider=echo)
    add_artifacts(30)


def test_query_counts_of_pages_do_not_grow_with_the_data(admin: Client) -> None:
    assert {address: count_queries(admin, address) for address in QUERIES} == QUERIES
    add_everything()
    assert {address: count_queries(admin, address) for address in QUERIES} == QUERIES
