"""Management commands that create agents and that issue and revoke keys."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from capabilities.access import Principal, Refusal, authenticate
from capabilities.models import Agent
from routing_admin.models import AuditEvent, Revision
from routing_admin.platform.auth.admin_tokens import authenticate_token
from tests.cast import create_token
from tests.gateway.serving import manage, server_environment
from tests.lab import Lab

OWN_FILE = {
    "providers": [
        {"providerName": "a", "apiKey": "NOT_NEEDED", "endpoint": "https://a.example/v1", "defaultModel": "m"}
    ],
    "routing": {"default": {"provider": "a"}},
}


pytestmark = pytest.mark.django_db(databases=["default", "logs"])


def run(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue().strip()


def test_commands_printed_by_bootstrap_can_be_run(tmp_path: Path) -> None:
    file = tmp_path / "llm-routing.json"
    file.write_text(json.dumps(OWN_FILE))
    with Lab() as lab:
        environment = server_environment(tmp_path / "data", lab) | {"LLM_ROUTING_CONFIG": str(file)}
    first = manage(environment, "bootstrap")
    assert "routing-admin create-agent NAME --key" in first
    assert "issue_agent_key" not in first
    assert manage(environment, "create_agent", "reader", "--route", "default", "--key").startswith("ra_")
    assert "routing-admin issue-key reader" in manage(environment, "bootstrap")


def test_create_agent_prints_the_key_once(demo: None) -> None:
    key = run("create_agent", "reader", "--route", "planning", "--key")
    caller = authenticate({"authorization": f"Bearer {key}"})
    assert isinstance(caller, Principal)
    row = Agent.objects.get(agent_id="reader")
    assert (caller.agent, row.task_type, row.origin) == ("reader", "planning", Agent.Origin.ADMINISTRATOR)
    assert "reader" in str(Revision.objects.first().changes)


def test_create_agent_without_key_prints_the_issue_key_command(demo: None) -> None:
    output = run("create_agent", "reader", "--service", "vision-model")
    assert output.endswith("For a key: routing-admin issue-key reader")
    assert Agent.objects.get(agent_id="reader").service.service_id == "vision-model"
    assert run("issue_agent_key", "reader").startswith("ra_")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("text-agent",), "The agent text-agent already exists. For another key: routing-admin issue-key text-agent"),
        (("reader", "--service", "nope"), "serviceId: There is no service nope."),
        (("reader", "--route", "nope"), "taskType: There is no task route nope."),
        (("x" * 200,), "At most 120 characters"),
        (("reader", "--route", "planning", "--service", "text-model"), "not allowed with argument"),
    ],
)
def test_create_agent_with_invalid_options_prints_one_error_line(
    demo: None, options: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises(CommandError, match=sentence):
        run("create_agent", *options, "--key")
    assert not Agent.objects.exclude(agent_id__endswith="-agent").exists()


def may_call(key: str) -> bool:
    return isinstance(authenticate({"authorization": f"Bearer {key}"}), Principal)


def test_leaked_key_is_revoked_and_its_replacement_has_the_same_scopes(
    demo: None, capsys: pytest.CaptureFixture[str]
) -> None:
    leaked = run("issue_agent_key", "text-agent", "--scope", "route", "--scope", "config:read")
    new = run("revoke_key", f"Authorization: Bearer {leaked}", "--replace")
    assert "of text-agent is revoked" in capsys.readouterr().err
    assert (may_call(leaked), may_call(new)) == (False, True)
    caller = authenticate({"authorization": f"Bearer {new}"})
    assert isinstance(caller, Principal)
    assert (caller.agent, caller.scopes) == ("text-agent", {"route", "config:read"})
    assert set(AuditEvent.objects.values_list("action", flat=True)) >= {"key.roll", "key.revoke"}


def test_key_can_be_revoked_repeatedly_by_its_public_part(demo: None, capsys: pytest.CaptureFixture[str]) -> None:
    key = run("issue_agent_key", "text-agent")
    for sentence in ("is revoked.", "was already revoked."):
        assert run("revoke_key", key[:11]) == ""
        assert sentence in capsys.readouterr().err
    assert not may_call(key)


def test_leaked_api_token_can_be_revoked_by_its_text(admin_account: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The replacement is created on the tokens page, not by the command."""
    token = create_token(admin_account)
    with pytest.raises(CommandError, match="Leave out --replace"):
        run("revoke_key", token, "--replace")
    run("revoke_key", token)
    assert "The token deploy of admin (rat_" in capsys.readouterr().err
    assert isinstance(authenticate_token({"authorization": f"Bearer {token}"}), Refusal)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("sk-something", "That is not a key. Keys begin with ra_"),
        ("ra_00000000", "There is no key ra_00000000"),
        ("rat_00000000", "There is no token rat_00000000"),
    ],
)
def test_revoking_an_invalid_key_prints_one_error_line(demo: None, text: str, sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        run("revoke_key", text)
