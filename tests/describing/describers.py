"""A model that sees, one that does not, and the route along which the first describes for the second; over the lab."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from capabilities.acts import SYSTEM
from capabilities.models import Provider, Service
from capabilities.runtime import renew
from routing_admin.configuration import snapshot
from routing_admin.console.routes.actions import save_route_as
from routing_admin.core.configuration.specs import DESCRIBE_ROUTE, CandidateSpec, RouteSpec
from routing_admin.dispatch.send import process_run_context
from routing_admin.upstream import process_upstream, run_sync
from tests.lab import Lab

POLICY = "extract+convert+describer"
WORDS = "A cat sits on a mat."
SEES = ["text", "vision"]
LOOK = {"type": "text", "text": "What is it?"}


@contextmanager
def describing_lab(
    script: Mapping[str, Any] | None = None,
    *,
    seer: str = "openai",
    blind: str = "openai",
    policy: str = POLICY,
    retries: int | None = None,
) -> Iterator[Lab]:
    """The lab's `seer` on the route `describe`, `blind` on the route `blind`, and both of them on `both`.

    Each speaks the protocol of its name; what the process learns of them is forgotten again. `retries` are the
    describer's: where one more try shows nothing new, none needs to be waited for.
    """
    with Lab({"seer": f"say:{WORDS}", **(script or {})}) as lab:
        for name, protocol in (("seer", seer), ("blind", blind)):
            add_model(lab, name, protocol, SEES if name == "seer" else ["text"])
        add_route(DESCRIBE_ROUTE, "seer", retries=retries)
        add_route("blind", "blind", content={"policy": policy})
        add_route("both", "blind", "seer", content={"policy": policy})
        renew(process_run_context)
        try:
            yield lab
        finally:
            renew(process_run_context)
            run_sync(process_upstream().close())


def add_model(lab: Lab, name: str, protocol: str, reads: list[str]) -> None:
    """A provider of the lab with one model service."""
    at = lab.url(protocol, name)
    provider = Provider.objects.create(
        name=name, endpoint=at, default_model="lab", protocol=protocol, key_source="none"
    )
    service = Service.objects.create(service_id=name, name=name, provider=provider, model="lab")
    for word in reads:
        service.capabilities.create(side="input", name=word)
    snapshot.refresh()


def add_route(task_type: str, *providers: str, **more: Any) -> None:
    """A route along models of the lab."""
    chain = tuple(CandidateSpec(name) for name in providers)
    save_route_as(SYSTEM, None, RouteSpec(task_type, chain, **more))


def bodies_to(lab: Lab, name: str) -> list[Any]:
    """What a model of the lab was sent, in order."""
    return [each.json for each in lab.requests if each.name == name]


def text_of(body: Any) -> str:
    """All of a request as one text, in which words can be looked for."""
    return json.dumps(body, ensure_ascii=False)
