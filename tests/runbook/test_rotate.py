"""docs/runbook/rotate.md: replacing keys and secrets of every kind without interrupting calls."""

from __future__ import annotations

import json
import re

from tests.lab.server import key_in
from tests.processes import wait_until
from tests.runbook.installation import Installation

KEY = re.compile(r'"(ra_[0-9a-z]{8})"')
NEW = "sk-rotated-0123456789"
TOKEN = re.compile(r"\brat_[0-9a-z]{8}_[\w-]{43}_[0-9a-f]{8}")


def outdated_key_count(installation: Installation) -> float:
    return installation.number("routing_admin_keys_behind")


def test_agent_and_provider_keys_can_be_rotated(served: Installation) -> None:
    old = served.manage("issue_agent_key", "vision-agent")
    page = served.person().post("/tokens/new/", name="rotate", scopes="keys:write", days=1)
    (token,) = set(TOKEN.findall(page.body.decode()))
    output = served.play("rotate", "agent", AGENT="vision-agent", ra_xxxxxxxx=old[:11], **{"$TOKEN": token})
    new = json.loads(output)["key"]
    assert [served.call(key=key).status for key in (old, new)] == [200, 200]
    (served.folder / "safe").mkdir(exist_ok=True)
    (served.folder / "safe" / "new-key").write_text(NEW)
    served.play("rotate", "provider", PROVIDER="one")
    assert wait_until(
        lambda: served.call().status == 200 and key_in(served.lab.requests[-1].headers) == "sk-rotated-0123456789"
    )


def test_installation_secrets_can_be_rotated_during_calls(installation: Installation) -> None:
    installation.start()
    second_key = installation.manage("issue_agent_key", "vision-agent")
    (unused,) = set(KEY.findall(installation.audited())) - {installation.key[:11], second_key[:11]}
    assert installation.call().status == 200
    assert outdated_key_count(installation) == 0
    before = (installation.directory / "secret_key").read_text()
    assert "re-encrypted" in installation.play("rotate", "secrets")
    assert (
        (installation.folder / "safe" / "secret_key").read_text()
        == (installation.directory / "secret_key").read_text()
        != before
    )
    assert wait_until(lambda: outdated_key_count(installation) > 0)
    installation.manage("revoke_key", unused)
    wait_until(
        lambda: (
            {installation.call(key=key).status for key in (installation.key, second_key)} == {200}
            and outdated_key_count(installation) == 0
        )
    )
    assert "Old secrets removed" in installation.play("rotate", "drop")
    assert 'routing_admin_keys_behind{kind="agent"} 0.0' in installation.play("rotate", "over")
    assert [installation.call(key=key).status for key in (installation.key, second_key)] == [200, 200]
