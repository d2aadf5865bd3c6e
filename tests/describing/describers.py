"""Models and routes in the fault lab: a model that reads images, one that does not, and the route for descriptions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from capabilities.actors import SYSTEM
from capabilities.models import Provider, Service
from capabilities.runtime import renew
from routing_admin.configuration import snapshot
from routing_admin.console.routes.actions import save_route_as
from routing_admin.core.configuration.specs import DESCRIBE_ROUTE, CandidateSpec, RouteSpec
from routing_admin.dispatch.send import process_run_context
from routing_admin.upstream import process_upstream, run_sync
from tests.lab import Lab

POLICY = "extract+convert+describer"
DESCRIPTION = "A cat sits on a mat."
VISION_INPUTS = ["text", "vision"]
QUESTION = {"type": "text", "text": "What is it?"}


@contextmanager
def describing_lab(
    script: Mapping[str, Any] | None = None,
    *,
    seer: str = "openai",
    blind: str = "openai",
    policy: str = POLICY,
    retries: int | None = None,
) -> Iterator[Lab]:
    """Run the fault lab with the models `seer` on the route `describe`, `blind` on `blind`, and both on `both`.

    The arguments `seer` and `blind` are the protocols of these models. The process's run context is empty before and
    after. `retries` is how often a failed describing call is retried: use 0 if the test should not wait for retries.
    """
    with Lab({"seer": f"say:{DESCRIPTION}", **(script or {})}) as lab:
        for name, protocol in (("seer", seer), ("blind", blind)):
            add_model(lab, name, protocol, VISION_INPUTS if name == "seer" else ["text"])
        add_route(DESCRIBE_ROUTE, "seer", retries=retries)
        add_route("blind", "blind", content={"policy": policy})
        add_route("both", "blind", "seer", content={"policy": policy})
        renew(process_run_context)
        try:
            yield lab
        finally:
            renew(process_run_context)
            run_sync(process_upstream().close())


def add_model(lab: Lab, name: str, protocol: str, inputs: list[str]) -> None:
    url = lab.url(protocol, name)
    provider = Provider.objects.create(
        name=name, endpoint=url, default_model="lab", protocol=protocol, key_source="none"
    )
    service = Service.objects.create(service_id=name, name=name, provider=provider, model="lab")
    for capability in inputs:
        service.capabilities.create(side="input", name=capability)
    snapshot.refresh()


def add_route(task_type: str, *providers: str, **more: Any) -> None:
    chain = tuple(CandidateSpec(name) for name in providers)
    save_route_as(SYSTEM, None, RouteSpec(task_type, chain, **more))


def received_bodies(lab: Lab, name: str) -> list[Any]:
    return [received.json for received in lab.requests if received.name == name]


def request_text(body: Any) -> str:
    return json.dumps(body, ensure_ascii=False)
