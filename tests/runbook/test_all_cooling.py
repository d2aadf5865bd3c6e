"""docs/runbook/all-cooling.md: if every account is exhausted, all candidates are in cooldown until an administrator
ends it.
"""

from __future__ import annotations

import json

import pytest

from tests.processes import wait_until
from tests.runbook.installation import Installation


def cooldown_seconds(served: Installation, provider: str) -> float:
    return served.number("routing_admin_cooling_seconds", provider=provider)


def test_server_can_be_inspected_without_prometheus(served: Installation) -> None:
    output = served.play("README", "look")
    assert "routing_admin_disk_free_bytes" in output
    assert '"status": "ok"' in output
    assert "ok   history" in output


@pytest.mark.parametrize(("provider", "by_page"), [("three", False), ("by-anthropic", True)])
def test_refilled_account_is_used_immediately(served: Installation, provider: str, by_page: bool) -> None:
    """A 402 starts a cooldown of ten minutes. The page's command or the dashboard's button ends it."""
    model = f"{provider}/lab"
    served.lab.play({provider: [402, "ok"]})
    assert served.call(model).status == 502
    answer = served.call(model)
    assert (answer.status, answer.json["error"]["code"]) == (502, "all_providers_failed")
    # The second call was not sent to the provider.
    assert len(served.lab.requests) == 1
    assert cooldown_seconds(served, provider) > 500
    assert f'provider="{provider}"' in served.play("all-cooling", "over")
    assert wait_until(lambda: served.number("routing_admin_requests_total", outcome="all_providers_failed"))
    if by_page:
        person = served.person()
        page = person.open("/").body.decode()
        assert "is cooling down for" in page
        assert f"/providers/{provider}/" in page
        assert person.post("/again/providers/", name=provider).status == 302
    else:
        output = served.play("all-cooling", "again", PROVIDER=provider)
        assert f"Tried again with the next call: {provider}." in output
    wait_until(lambda: served.call(model).status == 200, 1)
    assert cooldown_seconds(served, provider) == 0
    assert "provider.try_again" in served.audited()


def test_successful_test_of_a_provider_ends_its_cooldown(served: Installation) -> None:
    served.lab.play({"by-gemini": [402, "ok"]})
    assert served.call("by-gemini/lab").status == 502
    assert cooldown_seconds(served, "by-gemini") > 500
    person = served.person()
    assert person.post("/providers/by-gemini/test/").status == 200
    assert cooldown_seconds(served, "by-gemini") == 0
    assert served.call("by-gemini/lab").status == 200


def test_rate_limited_callers_get_retry_after(served: Installation) -> None:
    served.lab.play({"by-openai-responses": ["http_429:retry_after=60"]})
    for _ in range(2):
        answer = served.call("by-openai-responses/lab")
        assert answer.status == 429
    assert 0 < int(answer.headers["retry-after"]) <= 66
    assert json.loads(answer.body)["error"]["code"] == "all_providers_failed"
