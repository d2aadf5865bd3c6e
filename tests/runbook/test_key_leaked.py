"""docs/runbook/key-leaked.md, for an agent key, an API token and a provider key."""

from __future__ import annotations

import re

from tests.chaos.callers import send
from tests.lab.server import key_in
from tests.processes import wait_until
from tests.runbook.installation import Installation

KEY = re.compile(r"\bra_[0-9a-z]{8}_[\w-]+")
TOKEN = re.compile(r"\brat_[0-9a-z]{8}_[\w-]{43}_[0-9a-f]{8}")


def rejected_key_count(served: Installation, door: str) -> float:
    return served.number("routing_admin_keys_refused_total", door=door)


def test_leaked_agent_key_is_revoked_and_its_replacement_works(served: Installation) -> None:
    leaked, before = served.manage("issue_agent_key", "text-agent"), rejected_key_count(served, "v1")
    assert served.call(key=leaked).status == 200
    output = served.play("key-leaked", "agent", ra_xxxxxxxx=leaked[:11])
    assert f"The key {leaked[:11]} of text-agent is revoked." in output
    (successor,) = KEY.findall(output)
    wait_until(lambda: served.call(key=leaked).status == 401, 1)
    assert served.call(key=successor).status == 200
    assert rejected_key_count(served, "v1") > before
    assert 'door="v1"' in served.play("key-leaked", "over")
    assert '"key.revoke"' in served.audited()
    person = served.person()
    assert wait_until(lambda: b"one/lab" in person.open(f"/requests/?q=key:{leaked[:11]}").body)


def test_leaked_api_token_is_revoked_and_its_uses_are_listed(served: Installation) -> None:
    person = served.person()
    person.open("/tokens/")
    page = person.post("/tokens/new/", name="deploy", scopes="providers:read", days=30)
    (token,) = set(TOKEN.findall(page.body.decode()))

    def status() -> int:
        return send(
            served.server, "GET", "/api/v1/admin/providers", headers={"authorization": f"Bearer {token}"}
        ).status

    assert status() == 200
    before = rejected_key_count(served, "admin")
    assert "The token deploy of admin" in served.play("key-leaked", "token", rat_xxxxxxxx=token[:12])
    wait_until(lambda: status() == 401, 1)
    assert rejected_key_count(served, "admin") > before
    output = served.play("key-leaked", "audit", NAME="deploy", **{"2026-11-01": "2020-01-01"})
    assert '"token.use"' in output


def test_provider_is_called_with_the_new_key_after_a_leak(served: Installation) -> None:
    old, new = "sk-old-0123456789abcdef", "sk-new-fedcba9876543210"
    safe = served.folder / "safe"
    safe.mkdir(exist_ok=True)
    (safe / "new-key").write_text(old)
    served.play("key-leaked", "provider", PROVIDER="two")
    wait_until(lambda: served.call("two/lab").status == 200 and key_in(served.lab.requests[-1].headers) == old)
    served.lab.play({"two": 401})
    assert served.call("two/lab").status == 502
    assert wait_until(lambda: served.number("routing_admin_attempts_total", provider="two", outcome="http_401"))
    (safe / "new-key").write_text(new)
    served.lab.play({})
    assert "two is now called with the key …3210." in served.play("key-leaked", "provider", PROVIDER="two")
    assert wait_until(lambda: served.call("two/lab").status == 200 and key_in(served.lab.requests[-1].headers) == new)
    assert new not in served.audited() + served.server.log
