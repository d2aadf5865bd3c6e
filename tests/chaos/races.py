"""Two who change the same thing at once: one of them wins, and the other one is told so."""

from __future__ import annotations

import copy
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.chaos.callers import Finding, Person, ask, at_once, finding
from tests.chaos.installation import Installation, installed
from tests.gateway.serving import Server

Outcome = tuple[list[int], object, object]
"""Both statuses, what the winner wrote, what stands there."""


def race(pairs: int) -> Finding:
    """So many pairs: imports under one revision and forms of one version, in turn."""
    counted, losses = Counter[str](), list[str]()
    with installed() as installation, installation.serve() as server:
        people = (Person(server).sign_in(), Person(server).sign_in())
        for at in range(pairs):
            kind = "form" if at % 2 else "import"
            run = form_pair(installation, people, at) if at % 2 else import_pair(server, at)
            statuses, wanted, found = run
            counted[f"{kind} {statuses}"] += 1
            won = sum(status < 400 for status in statuses)
            if won != 1 or 409 not in statuses or wanted != found:
                losses.append(f"{kind} {at}: {statuses}, {wanted} was acknowledged, {found} is there")
    return finding("racing edits", f"{pairs} pairs", ", ".join(f"{n} × {what}" for what, n in counted.items()), losses)


def import_pair(server: Server, at: int) -> Outcome:
    """Two imports that both saw the same revision."""
    export = ask(server, "GET", "/api/v1/config/llm-routing")
    numbers, statuses = (2 * at + 1, 2 * at + 2), [0, 0]
    contents = [copy.deepcopy(export.json), copy.deepcopy(export.json)]
    for content, number in zip(contents, numbers, strict=True):
        content["routing"]["planning"]["maxTokens"] = number

    def bring(one: int) -> None:
        tag = export.headers["etag"]
        statuses[one] = ask(server, "POST", "/api/v1/config/import", contents[one], if_match=tag).status

    together(bring)
    found = ask(server, "GET", "/api/v1/config/llm-routing").json["routing"]["planning"]["maxTokens"]
    return sorted(statuses), numbers[statuses.index(min(statuses))], found


def form_pair(installation: Installation, people: tuple[Person, Person], at: int) -> Outcome:
    """Two people who both opened the same version of an agent's page."""
    columns = "select version, service_id, name from capabilities_agent where agent_id = 'vision-agent'"
    version, service, _ = installation.rows(columns)[0]
    names, statuses = (f"left {at}", f"right {at}"), [0, 0]

    def save(one: int) -> None:
        fields: dict[str, Any] = {"name": names[one], "description": "", "service": service, "version": version}
        statuses[one] = people[one].post("/agents/vision-agent/", **fields).status

    together(save)
    found = installation.rows(columns)[0][2]
    return sorted(statuses), names[statuses.index(min(statuses))], found


def together(work: Callable[[int], None]) -> None:
    """Both at the same moment. Raises what one of them raised."""
    gate = threading.Barrier(2)

    def run(one: int) -> None:
        gate.wait()
        work(one)

    raised = at_once(lambda: run(0), lambda: run(1))
    if raised:
        raise raised[0]
