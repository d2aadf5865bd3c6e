"""The secret key and the encryption keys are rotated while calls are running, and no call fails."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest

from tests.chaos.callers import Person, at_once, chat
from tests.chaos.installation import Installation, installed, write_import
from tests.gateway.serving import Server, manage, routing
from tests.preloaded import run_python


@pytest.fixture
def installation_with_key() -> Iterator[Installation]:
    with installed() as installation:
        content = routing(installation.lab)
        next(provider for provider in content["providers"] if provider["providerName"] == "one")["apiKey"] = (
            "sk-one-0123456789"
        )
        write_import(installation.environment, installation.directory, content)
        yield installation


def rotate(installation: Installation, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_python(installation.environment, "manage.py", "rotate_keys", *arguments)


def test_no_call_fails_during_rotation_of_both_secrets(installation_with_key: Installation) -> None:
    with installation_with_key.serve("--workers", "2") as server:
        person, statuses, finished = Person(server).sign_in(), [], []
        server.lab.play({"one": "delay:seconds=0.2"})

        def call() -> None:
            number = 0
            while not finished:
                number += 1
                statuses.append(chat(server, f"rotated-{number}").status)

        def change() -> None:
            try:
                rotate_and_drop(installation_with_key, server, person)
            finally:
                finished.append(True)

        assert at_once(call, change) == []
        assert set(statuses) == {200}
    files = {name: (installation_with_key.directory / name).read_text() for name in ("secret_key", "keys")}
    # If an older secret remained, the file would contain a comma between the two.
    assert not any("," in text for text in files.values())
    with installation_with_key.serve() as server:
        assert chat(server, "after-it-all").status == 200


def rotate_and_drop(installation: Installation, server: Server, person: Person) -> None:
    """Rotate to new secrets and remove the old ones.

    In between, edit the configuration so that all processes read it.
    """
    before = (installation.directory / "secret_key").read_text()
    rotated = rotate(installation, "--new")
    assert (rotated.returncode, rotated.stderr) == (0, "")
    assert before in (installation.directory / "secret_key").read_text()
    new_key = manage(installation.environment, "issue_agent_key", "vision-agent")
    assert chat(Server(server.port, new_key, server.lab, server.directory, server.process), "fresh").status == 200
    agent = "text-agent"
    number = 0
    while number < 50 and agent in rows_behind(installation):
        number += 1
        assert (
            person.post("/aliases/", name="turned", target=("task:default", "task:planning")[number % 2]).status < 400
        )
        assert chat(server, f"turned-{number}").status == 200
    refused = rotate(installation, "--drop-old")
    assert refused.returncode == 1
    assert "were not used since" in refused.stderr
    assert rotate(installation, "--drop-old", "--force").returncode == 0
    assert person.open("/routes/").status == 200
    assert chat(server, "dropped").status == 200
    assert json.loads(chat(server, "dropped-2").body)["choices"]


def rows_behind(installation: Installation) -> list[str]:
    """Return the agents with a used key that is still signed with an older secret."""
    newest = "select signed_with from capabilities_agentkey order by id desc limit 1"
    return [
        name
        for (name,) in installation.rows(
            "select agent_id from (select capabilities_agent.agent_id, k.signed_with, k.last_used_at from "
            "capabilities_agentkey k join capabilities_agent on capabilities_agent.id = k.agent_id) "
            f"where last_used_at is not null and signed_with <> ({newest})"
        )
    ]
