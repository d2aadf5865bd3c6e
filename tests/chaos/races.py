"""Concurrent changes to the same object: one succeeds, and the other gets a conflict."""

from __future__ import annotations

import copy
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from tests.chaos.callers import Finding, Person, Reply, ask, at_once, finding
from tests.chaos.installation import Installation, installed
from tests.gateway.serving import Server, manage

Outcome = tuple[list[int], object, object]
"""The outcome of a race: both statuses, the value that the successful request wrote, and the stored value."""


def race(pairs: int) -> Finding:
    """Send pairs of concurrent requests for the same version: two imports, two forms, or a change and a deletion."""
    counted, losses = Counter[str](), list[str]()
    with installed() as installation, installation.serve() as server:
        people = (Person(server).sign_in(), Person(server).sign_in())
        token = token_for(installation)
        kinds: dict[str, Callable[[int], Outcome]] = {
            "import": lambda number: import_pair(server, number),
            "form": lambda number: form_pair(installation, people, number),
            "deletion": lambda number: deletion_pair(server, token, number),
        }
        for number in range(pairs):
            kind = [*kinds][number % len(kinds)]
            statuses, expected, stored = kinds[kind](number)
            counted[f"{kind} {statuses}"] += 1
            won = sum(status < 400 for status in statuses)
            if won != 1 or 409 not in statuses or expected != stored:
                losses.append(f"{kind} {number}: {statuses}, {expected} was acknowledged, {stored} is there")
        losses += installation.faults()
    return finding(
        "racing edits", f"{pairs} pairs", ", ".join(f"{n} × {result}" for result, n in counted.items()), losses
    )


def import_pair(server: Server, number: int) -> Outcome:
    export = ask(server, "GET", "/api/v1/config/llm-routing")
    numbers, statuses = (2 * number + 1, 2 * number + 2), [0, 0]
    contents = [copy.deepcopy(export.json), copy.deepcopy(export.json)]
    for content, max_tokens in zip(contents, numbers, strict=True):
        content["routing"]["planning"]["maxTokens"] = max_tokens

    def import_configuration(index: int) -> None:
        tag = export.headers["etag"]
        statuses[index] = ask(server, "POST", "/api/v1/config/import", contents[index], if_match=tag).status

    run_together(import_configuration)
    stored = ask(server, "GET", "/api/v1/config/llm-routing").json["routing"]["planning"]["maxTokens"]
    return sorted(statuses), numbers[statuses.index(min(statuses))], stored


def form_pair(installation: Installation, people: tuple[Person, Person], number: int) -> Outcome:
    columns = "select version, service_id, name from capabilities_agent where agent_id = 'vision-agent'"
    version, service, _ = installation.rows(columns)[0]
    names, statuses = (f"left {number}", f"right {number}"), [0, 0]

    def save(index: int) -> None:
        fields: dict[str, Any] = {"name": names[index], "description": "", "service": service, "version": version}
        statuses[index] = people[index].post("/agents/vision-agent/", **fields).status

    run_together(save)
    stored = installation.rows(columns)[0][2]
    return sorted(statuses), names[statuses.index(min(statuses))], stored


TOKEN = """
from django.contrib.auth.models import User
from capabilities.core.permissions import ADMIN_SCOPES
from capabilities.actors import SYSTEM
from routing_admin.console.people.actions import issue_token
print(issue_token(SYSTEM, User.objects.get(username="admin"), "races", ADMIN_SCOPES)[0])
"""


def token_for(installation: Installation) -> str:
    return manage(installation.environment, "shell", "-c", TOKEN).split()[-1]


ENTRIES: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    ("agents/racer", "description", {"taskType": "default"}),
    ("routes/racer", "temperature", {"provider": "echo"}),
    ("services/racer", "description", {"provider": "echo", "model": "racer"}),
    ("aliases/racer", "target", {"target": "task:default"}),
)
"""Configuration entries for races between a change and a deletion: path, changed field, and the other fields."""


def deletion_pair(server: Server, token: str, number: int) -> Outcome:
    path, field, body = ENTRIES[number % len(ENTRIES)]
    values = {"temperature": number % 20 / 10, "target": "task:planning"}
    new_value, statuses = values.get(field, f"changed {number}"), [0, 0]

    def call(method: str, value: Any = None, **headers: str) -> Reply:
        bearer = f"Bearer {token}"
        return ask(server, method, f"/api/v1/admin/{path}", value, authorization=bearer, **headers)

    call("PUT", body)
    tag = call("GET").headers["etag"]
    change = {"PUT": {**body, field: new_value}, "DELETE": None}

    def write(index: int) -> None:
        method = [*change][index]
        statuses[index] = call(method, change[method], if_match=tag).status

    run_together(write)
    reply = call("GET")
    stored = "gone" if reply.status == 404 else next(iter(reply.json.values()))[field]
    return sorted(statuses), new_value if statuses[0] < 400 else "gone", stored


def run_together(work: Callable[[int], None]) -> None:
    """Run `work` twice at the same time. Re-raise an exception from either run."""
    barrier = threading.Barrier(2)

    def run(index: int) -> None:
        barrier.wait()
        work(index)

    raised = at_once(lambda: run(0), lambda: run(1))
    if raised:
        raise raised[0]
