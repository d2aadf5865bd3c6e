"""Limits on a single key narrow its agent's limits.

They are set when the key is issued, and can be changed and undone later.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from capabilities.actors import SYSTEM
from capabilities.errors import InvalidError
from capabilities.models import AgentKey
from routing_admin.configuration import integrity
from routing_admin.configuration.agents.actions import change_key, roll_key
from routing_admin.console.history.actions import restore, undo
from routing_admin.models import AuditEvent, Revision
from tests.cast import create_key, limit_agent
from tests.console.visits import response_text
from tests.gateway.plane import chat_body, post

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "logs"]),
    pytest.mark.usefixtures("demo", "returned_quotas"),
]
PLANNING = {"limits": {"models": ["task:planning"]}}


def key_row(key: str) -> AgentKey:
    return AgentKey.objects.select_related("agent").get(public_id=key.split("_")[1])


def forbids_other_models(key: str) -> bool:
    """Return whether the key may not use models outside the route `planning`."""
    return bool(post(key, chat_body("hi", model="text-model")).status_code == 403)


def own_limits(key: str) -> Any:
    return Client().get("/api/v1/agents/me", headers={"authorization": f"Bearer {key}"}).json()


def test_key_may_use_only_models_allowed_by_both_key_and_agent() -> None:
    """A key's limits do not affect the agent's other keys.

    A limit that the agent gets later applies to the key as well.
    """
    free, narrow = create_key("text-agent"), create_key("text-agent", terms=PLANNING)
    assert [forbids_other_models(key) for key in (free, narrow)] == [False, True]
    assert post(narrow, chat_body("hi", model="task:planning")).status_code == 200
    listed = Client().get("/v1/models", headers={"authorization": f"Bearer {narrow}"}).json()["data"]
    assert [model["id"] for model in listed] == ["task:planning"]
    limit_agent(models=["text-model"])
    refused = post(narrow, chat_body("hi", model="task:planning"))
    assert (refused.status_code, "It can use: nothing." in refused.json()["error"]["message"]) == (403, True)


@pytest.mark.parametrize(
    ("name", "message"),
    [("task:design", "The agent cannot use task:design"), ("no-such", "no route or service no-such")],
)
def test_key_cannot_be_allowed_a_model_forbidden_to_its_agent(name: str, message: str) -> None:
    limit_agent(models=["task:planning"])
    key = key_row(create_key("text-agent"))
    terms = {"limits": {"models": [name]}}
    for action in (
        lambda: create_key("text-agent", terms=terms),
        lambda: change_key(SYSTEM, key, label="", terms=terms),
    ):
        with pytest.raises(InvalidError, match=message):
            action()


def test_key_budget_does_not_limit_other_keys_of_the_agent() -> None:
    free, narrow = create_key("text-agent"), create_key("text-agent", terms={"limits": {"tokensPerDay": 30}})
    answers = [post(narrow, chat_body("hi", model="task:planning", max_tokens=20)) for _ in range(3)]
    refused = answers[-1]
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "budget_exceeded")
    assert refused.json()["error"]["message"].startswith(f"The key {key_row(narrow)} has a daily token limit of 30")
    assert post(free, chat_body("hi", model="task:planning", max_tokens=20)).status_code == 200
    limits = own_limits(narrow)
    assert (limits["limits"], limits["keyLimits"]["amounts"][0]["limit"]) == (None, 30)
    assert own_limits(free)["keyLimits"] is None


def test_key_change_applies_at_once_and_can_be_undone() -> None:
    key = create_key("text-agent")
    change = change_key(SYSTEM, key_row(key), label="night", terms=PLANNING)
    assert forbids_other_models(key)
    changes = Revision.objects.get(number=change.revision).changes
    assert [entry["name"] for entry in changes] == ["text-agent"]
    assert key_row(key).public_id in changes[0]["field"]
    assert AuditEvent.objects.filter(action="key.change", object_name="text-agent").count() == 1
    assert integrity.configuration() == []
    assert change.revision is not None
    undo(SYSTEM, change.revision)
    assert not forbids_other_models(key)
    assert integrity.configuration() == []


def test_restoring_a_revision_keeps_the_limits_with_which_a_key_was_issued() -> None:
    """Issuing a key creates no revision, so restoring a revision does not undo it. A rolled key inherits the limits."""
    before = Revision.objects.order_by("-number").first()
    key = create_key("text-agent", terms=PLANNING)
    assert Revision.objects.order_by("-number").first() == before
    change_key(SYSTEM, key_row(key), label="", terms={})
    assert not forbids_other_models(key)
    assert before is not None
    restore(SYSTEM, before.number)
    assert forbids_other_models(key)
    rolled, _ = roll_key(SYSTEM, key_row(key), overlap=timedelta(0))
    assert forbids_other_models(rolled)


def test_agent_page_issues_and_changes_keys_with_limits(admin: Client) -> None:
    form = {
        "scopes": ["route"],
        "label": "night",
        "team": " search\n",
        "tokensPerDay": "100",
        "models": "task:planning",
    }
    assert admin.post("/keys/issue/text-agent/", form).status_code == 200
    key = AgentKey.objects.get(label="night")
    limits = {"models": ["task:planning"], "tokensPerDay": 100}
    assert key.terms == key.issued_terms == {"team": "search", "limits": limits}
    assert "0 / 100" in response_text(admin.get("/agents/text-agent/"))
    path, prefix = f"/keys/{key.public_id}/change/text-agent/", key.public_id
    assert admin.post(path, {f"{prefix}-tokensPerDay": "-1"}).status_code == 422
    assert admin.post(path, {f"{prefix}-models": "no-such"}).status_code == 422
    assert admin.post(path, {f"{prefix}-project": "atlas", f"{prefix}-moneyPerMonth": "5"}).status_code == 302
    key.refresh_from_db()
    assert key.terms == {
        "project": "atlas",
        "limits": {"moneyPerMonth": "5", "currency": "USD"},
    }
