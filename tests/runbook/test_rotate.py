"""docs/runbook/rotate.md: keys and secrets of every kind are replaced without interrupting calls."""

from __future__ import annotations

import json
import re

from tests.lab.server import key_in
from tests.runbook.installation import Installation, until

KEY = re.compile(r'"(ra_[0-9a-z]{8})"')
NEW = "sk-rotated-0123456789"
TOKEN = re.compile(r"\brat_[0-9a-z]{8}_[\w-]{43}_[0-9a-f]{8}")


def behind(own: Installation) -> float:
    return own.number("routing_admin_keys_behind")


def test_an_agents_and_a_providers_key_are_changed(served: Installation) -> None:
    """The agent's old key remains valid beside the new one; the provider is called with the new key only."""
    old = served.manage("issue_agent_key", "vision-agent")
    page = served.person().post("/tokens/new/", name="rotate", scopes="keys:write", days=1)
    (token,) = set(TOKEN.findall(page.body.decode()))
    said = served.play("rotate", "agent", AGENT="vision-agent", ra_xxxxxxxx=old[:11], **{"$TOKEN": token})
    new = json.loads(said)["key"]
    assert [served.call(key=each).status for each in (old, new)] == [200, 200]
    (served.place / "safe").mkdir(exist_ok=True)
    (served.place / "safe" / "new-key").write_text(NEW)
    served.play("rotate", "provider", PROVIDER="one")
    assert until(
        lambda: served.call().status == 200 and key_in(served.lab.requests[-1].headers) == "sk-rotated-0123456789"
    )


def test_the_secrets_of_the_installation_are_changed_under_calls(own: Installation) -> None:
    """Keys are re-encrypted as they are used, then the old secrets are removed; no call is refused meanwhile."""
    own.start()
    other = own.manage("issue_agent_key", "vision-agent")
    (unused,) = set(KEY.findall(own.audited())) - {own.key[:11], other[:11]}
    assert own.call().status == 200
    assert behind(own) == 0
    before = (own.directory / "secret_key").read_text()
    assert "re-encrypted" in own.play("rotate", "secrets")
    assert (own.place / "safe" / "secret_key").read_text() == (own.directory / "secret_key").read_text() != before
    assert until(lambda: behind(own) > 0)
    own.manage("revoke_key", unused)
    until(lambda: {own.call(key=each).status for each in (own.key, other)} == {200} and behind(own) == 0)
    assert "Old secrets removed" in own.play("rotate", "drop")
    assert 'routing_admin_keys_behind{kind="agent"} 0.0' in own.play("rotate", "over")
    assert [own.call(key=each).status for each in (own.key, other)] == [200, 200]
