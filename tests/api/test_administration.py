"""The administrators' API: a token allows the same changes as the pages, with the same rules and history."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from capabilities.access import authenticate
from capabilities.actors import SYSTEM, Actor
from capabilities.core.permissions import ADMIN_CALLS, ADMIN_SCOPES, SCOPES
from capabilities.models import Agent, AgentKey, Provider, Service
from routing_admin.console.people import actions as people
from routing_admin.console.people.actions import issue_token, revoke_token
from routing_admin.console.people.queries import list_outdated_tokens
from routing_admin.console.routes.actions import save_alias
from routing_admin.models import AdminToken, AuditEvent, Revision, TaskRoute
from tests.cast import create_key, create_token, open_browser, person
from tests.console.visits import newest_revision

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
SECRET = "sk-canary-51bf3c0a9d7e"


class Script:
    def __init__(self, token: str) -> None:
        self.client = Client(raise_request_exception=False)
        self.headers = {"authorization": f"Bearer {token}"}

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        data = b"" if body is None else json.dumps(body).encode()
        header_fields = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.generic(
            method, f"/api/v1/admin{path}", data, "application/json", headers={**self.headers, **header_fields}
        )

    def get(self, path: str) -> Any:
        answer = self.call("GET", path)
        assert answer.status_code == 200, answer.content
        return answer.json()


@pytest.fixture
def script(demo: None, admin_account: User) -> Script:
    return Script(create_token(admin_account))


PROVIDER = {"endpoint": "https://api.deepseek.com", "defaultModel": "deepseek-chat"}


def test_token_is_shown_once_and_stored_as_a_digest(script: Script, admin_account: User) -> None:
    token, row = issue_token(Actor("person", "admin"), admin_account, "backup", ["config:read"])
    assert token.startswith(f"rat_{row.public_id}_")
    # The secret has 43 characters, which may include underscores. A checksum follows it.
    secret = token.split("_", 2)[2][:43]
    for rows in (AdminToken.objects.values(), AuditEvent.objects.values()):
        assert secret not in str(list(rows))
    event = AuditEvent.objects.filter(action="token.issue", object_name="backup").get()
    assert event.details["scopes"] == ["config:read"]


def test_action_is_recorded_under_the_owner_of_the_token(script: Script) -> None:
    """Only a token's first use of the day is recorded as a separate audit event."""
    script.call("PUT", "/providers/deepseek", PROVIDER)
    event = AuditEvent.objects.get(action="provider.add")
    assert (event.actor_kind, event.actor) == ("token", "admin's token deploy")
    assert Revision.objects.get(number=event.revision).actor == "admin's token deploy"
    assert AuditEvent.objects.filter(action="token.use").count() == 1


def test_last_use_is_recorded_at_most_once_a_minute(script: Script) -> None:
    script.get("/providers")
    first = AdminToken.objects.get().last_used_at
    script.get("/providers")
    assert AdminToken.objects.get().last_used_at == first
    AdminToken.objects.update(last_used_at=timezone.now() - timedelta(minutes=2))
    script.get("/providers")
    assert AdminToken.objects.get().last_used_at > first


def test_token_survives_a_secret_rotation_if_used_before_the_old_secret_is_removed(
    script: Script, settings: Any
) -> None:
    """When a token is first used after a secret rotation, it is signed again with the new secret."""
    settings.SIGNING_SECRETS = ["a new secret of this installation", *settings.SIGNING_SECRETS]
    assert list_outdated_tokens() == ["admin's token deploy"]
    script.get("/providers")
    assert list_outdated_tokens() == []
    settings.SIGNING_SECRETS = settings.SIGNING_SECRETS[:1]
    script.get("/providers")


@pytest.mark.parametrize("end", ["revoked", "expired", "role", "deactivated"])
def test_token_is_invalid_after_expiry_revocation_or_loss_of_its_owners_role(end: str, script: Script) -> None:
    """A token remains invalid even if its owner gets the role back."""
    script.get("/providers")
    owner, boss = User.objects.get(username="admin"), person("boss", is_staff=True)
    actor = Actor("person", "boss")
    if end == "revoked":
        revoke_token(actor, AdminToken.objects.get())
    elif end == "expired":
        AdminToken.objects.update(expires_at=timezone.now())
    elif end == "role":
        people.set_role(actor, owner.pk, "editor", expected="administrator")
        people.set_role(actor, owner.pk, "administrator", expected="editor")
    else:
        people.set_active(actor, owner.pk, active=False)
        people.set_active(actor, owner.pk, active=True)
    answer = script.call("GET", "/providers")
    assert (answer.status_code, answer.json()["error"]) == (401, "token_invalid")
    assert boss.is_staff


def test_keys_sessions_and_tokens_are_not_interchangeable(script: Script, admin: Client) -> None:
    key = {"authorization": f"Bearer {create_key('text-agent', scopes=SCOPES)}"}
    for call in ADMIN_CALLS:
        method, path = call.replace("{number}", "1").split(" ")
        assert Client().generic(method, path, headers=key).json()["error"] == "token_missing"
        assert admin.generic(method, path).json()["error"] == "token_missing"
    for path in ("/api/v1/services", "/v1/models", "/v1/files"):
        assert Client().get(path, headers=script.headers).status_code == 401
    chat = {"model": "auto", "messages": [{"role": "user", "content": "hi"}]}
    answer = Client().post("/v1/chat/completions", chat, "application/json", headers=script.headers)
    assert answer.status_code == 401
    assert not hasattr(authenticate(script.headers), "agent")


def test_token_in_a_url_is_rejected_before_it_is_checked(script: Script) -> None:
    token = script.headers["authorization"].split()[1]
    assert script.call("GET", f"/providers?token={token}").json()["error"] == "token_in_url"


def test_body_with_a_valid_token_may_exceed_the_limit_for_unknown_callers(script: Script) -> None:
    answer = script.call("POST", "/config/import", {"providers": [], "routing": {}, "note": "x" * 300_000})
    assert answer.status_code in (200, 422)


def test_provider_is_written_by_name_and_an_identical_write_changes_nothing(script: Script) -> None:
    response = script.call("PUT", "/providers/deepseek", PROVIDER)
    assert (response.status_code, response.json()["created"]) == (201, True)
    before = newest_revision(), AuditEvent.objects.count()
    repeated = script.call("PUT", "/providers/deepseek", PROVIDER)
    assert (repeated.status_code, repeated.json()["changes"]) == (200, [])
    assert (newest_revision(), AuditEvent.objects.count()) == before
    entry = script.get("/providers/deepseek")
    assert entry["provider"]["apiKey"] == "${LLM_PROVIDER_DEEPSEEK_API_KEY}"
    assert (entry["usable"], bool(entry["reason"])) == (False, True)
    assert "deepseek" in [provider["providerName"] for provider in script.get("/providers")["providers"]]


def test_provider_key_is_set_and_never_returned(script: Script) -> None:
    script.call("PUT", "/providers/deepseek", PROVIDER)
    answer = script.call("PUT", "/providers/deepseek/key", {"apiKey": SECRET})
    assert answer.status_code == 200
    assert SECRET not in answer.content.decode()
    stored = script.get("/providers/deepseek")
    assert stored["usable"]
    script.call("PUT", "/providers/deepseek", stored["provider"])
    script.call("PUT", "/providers/deepseek", {**PROVIDER, "displayName": "DeepSeek"})
    row = Provider.objects.get(name="deepseek")
    assert (row.key_source, row.display_name) == ("stored", "DeepSeek")
    for path in ("/providers", "/providers/deepseek", "/config/llm-routing", "/history"):
        assert SECRET not in json.dumps(script.get(path))


def test_invalid_field_is_named_relative_to_its_entry_and_nothing_is_written(script: Script) -> None:
    before = newest_revision()
    answer = script.call("PUT", "/providers/deepseek", {**PROVIDER, "endpoint": "deepseek", "timeouts": {"total": -1}})
    problem = answer.json()
    assert (answer.status_code, problem["error"]) == (422, "invalid")
    assert {detail["path"].split(".")[0] for detail in problem["details"]} == {"endpoint", "timeouts"}
    assert "providers[0]" not in problem["message"]
    answer = script.call("PUT", "/routes/planning", {"provider": "echo", "fallback": ["unknown/model"]})
    assert [detail["path"] for detail in answer.json()["details"]] == ["fallback[0]"]
    answer = script.call("PUT", "/services/x", {"provider": "unknown", "model": "m"})
    assert [detail["path"] for detail in answer.json()["details"]] == ["provider"]
    answer = script.call("PUT", "/providers/deepseek", {**PROVIDER, "providerName": "other"})
    assert [detail["path"] for detail in answer.json()["details"]] == ["providerName"]
    assert newest_revision() == before


def test_candidates_are_stored_in_the_order_sent(script: Script) -> None:
    response = script.call("GET", "/routes/planning")
    route = {**response.json()["route"], "temperature": 0.3, "fallback": ["echo/echo-503", "echo/echo-vision"]}
    answer = script.call("PUT", "/routes/planning", route, if_match=response["etag"])
    assert answer.status_code == 200
    chain = TaskRoute.objects.get(task_type="planning").candidates.order_by("position")
    assert [candidate.model for candidate in chain][1:] == ["echo-503", "echo-vision"]
    assert script.get("/routes/planning")["route"]["temperature"] == 0.3


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
@pytest.mark.parametrize("path", ["/routes/planning", "/providers/echo", "/services/text-model", "/agents/text-agent"])
def test_write_with_an_outdated_etag_is_rejected(method: str, path: str, script: Script) -> None:
    response = script.call("GET", path)
    (entry,) = [value for value in response.json().values() if isinstance(value, dict)]
    changed = {**entry, "description": "else", "retries": 5, "displayName": "Else", "taskType": entry.get("taskType")}
    assert script.call("PUT", path, changed).status_code == 200
    before = newest_revision()
    answer = script.call(method, path, entry if method == "PUT" else None, if_match=response["etag"])
    assert (answer.status_code, answer.json()["error"]) == (409, "changed_meanwhile")
    assert newest_revision() == before


@pytest.mark.parametrize("path", ["/routes/planning", "/providers/echo", "/services/text-model", "/agents/text-agent"])
def test_change_of_another_entry_causes_no_etag_conflict(path: str, script: Script) -> None:
    response = script.call("GET", path)
    (entry,) = [value for value in response.json().values() if isinstance(value, dict)]
    save_alias(SYSTEM, "gpt-4o", "task:default")
    script.call("POST", "/agents/text-agent/keys", {})
    saved = script.call("PUT", path, entry, if_match=response["etag"])
    assert (saved.status_code, saved["etag"]) == (200, response["etag"])
    assert script.call("PUT", f"{path}-2", entry, if_match=response["etag"]).status_code == 409
    assert script.call("DELETE", f"{path}-2", if_match="*").status_code == 409


@pytest.mark.parametrize(
    ("path", "target"),
    [("/routes/planning", "task:planning"), ("/routes/planning", "planning"), ("/services/echo-x", "echo-x")],
)
def test_target_of_an_alias_can_be_removed_neither_by_delete_nor_by_import(
    path: str, target: str, script: Script
) -> None:
    script.call("PUT", "/services/echo-x", {"provider": "echo", "model": "echo-x"})
    Agent.objects.filter(task_type="planning").update(task_type="")
    routing, services = (script.get(f"/config/{name}") for name in ("llm-routing", "llmservices"))
    routing["routing"].pop("planning")
    services["services"] = [service for service in services["services"] if service["id"] != "echo-x"]
    file = routing if "routes" in path else services
    save_alias(SYSTEM, "gpt-4o", target)
    refused = script.call("DELETE", path)
    assert (refused.status_code, refused.json()["error"]) == (409, "in_use")
    for query in ("prune=true", "prune=true&dryRun=true"):
        answer = script.call("POST", f"/config/import?{query}", file)
        assert answer.status_code == 422
        assert refused.json()["message"] in [detail["message"] for detail in answer.json()["details"]]
    save_alias(SYSTEM, "gpt-4o", "")
    assert script.call("POST", "/config/import?prune=true", file).status_code == 200


@pytest.mark.parametrize("uses", ["service", "route"])
def test_import_cannot_remove_an_entry_used_by_a_run_time_agent(uses: str, script: Script) -> None:
    """Configuration files do not list agents that were created at run time."""
    script.call("PUT", "/services/echo-x", {"provider": "echo", "model": "echo-x"})
    Agent.objects.filter(task_type="planning").update(task_type="")
    use = {"service": Service.objects.get(service_id="echo-x")} if uses == "service" else {"task_type": "planning"}
    Agent.objects.create(agent_id="made", origin=Agent.Origin.RUNTIME, **use)
    name = "llmservices" if uses == "service" else "llm-routing"
    file = script.get(f"/config/{name}")
    file.get("routing", {}).pop("planning", None)
    file["services"] = [service for service in file.get("services", ()) if service["id"] != "echo-x"]
    answer = script.call("POST", "/config/import?prune=true", {key: value for key, value in file.items() if value})
    assert answer.status_code == 422
    assert "still use this" in answer.json()["details"][0]["message"]
    assert Agent.objects.get(agent_id="made").service_id == use.get("service", Service()).pk


def test_writing_back_a_read_entry_changes_nothing(script: Script) -> None:
    primary = {"temperature": 0, "extraBody": {"seed": 1}, "x-note": "kept"}
    script.call("PUT", "/routes/own", {"provider": "echo", "primary": primary})
    assert script.get("/routes/own")["route"] == {
        "taskType": "own",
        "provider": "echo",
        "fallback": [],
        "primary": primary,
    }
    before = newest_revision()
    for kind, name in (("providers", "providerName"), ("services", "id"), ("routes", "taskType")):
        for entry in script.get(f"/{kind}")[kind]:
            answer = script.call("PUT", f"/{kind}/{entry[name]}", entry)
            assert (answer.status_code, answer.json()["changes"]) == (200, []), answer.content
    assert newest_revision() == before


def test_change_from_1_to_true_in_a_free_form_object_is_saved(script: Script) -> None:
    """Python compares `1` and `True` as equal.

    A different key order, or `1.0` instead of `1`, does not count as a change.
    """
    route = {
        "provider": "echo",
        "fallback": [{"provider": "echo", "model": "echo-vision", "extraBody": {"a": 1, "b": 0}}],
    }
    script.call("PUT", "/routes/own", route | {"x-note": {"a": 1, "b": 0}})
    before = newest_revision()
    for number, values in enumerate(({"a": True, "b": 0}, {"a": True, "b": False}, {"a": 1, "b": False}), start=1):
        route["fallback"][0]["extraBody"] = values  # type: ignore[index]
        answer = script.call("PUT", "/routes/own", route | {"x-note": values}).json()
        assert answer["changes"]
        assert newest_revision() == before + number
        stored = script.get("/routes/own")["route"]
        assert json.dumps(stored["x-note"]) == json.dumps(stored["fallback"][0]["extraBody"]) == json.dumps(values)
    assert script.call("PUT", "/routes/own", route | {"x-note": {"b": False, "a": 1.0}}).json()["changes"] == []


def test_write_of_a_service_replaces_declared_and_keeps_probed_capabilities(script: Script) -> None:
    body = {"provider": "echo", "model": "echo-vision", "capabilities": {"input": ["text"], "output": ["text"]}}
    assert script.call("PUT", "/services/eyes", body).status_code == 201
    row = Service.objects.get(service_id="eyes")
    row.capabilities.create(side="input", name="vision", supported=True, source="probed", position=9)
    script.call("PUT", "/services/eyes", {**body, "description": "Looks."})
    row.refresh_from_db()
    assert row.description == "Looks."
    assert {(capability.name, capability.source) for capability in row.capabilities.filter(side="input")} == {
        ("text", "declared"),
        ("vision", "probed"),
    }
    assert script.get("/services/eyes")["service"]["provider"] == "echo"
    assert script.call("PUT", "/services/eyes", {**body, "apiKey": SECRET}).status_code == 422


def test_entry_in_use_cannot_be_deleted_and_repeated_deletion_succeeds(script: Script) -> None:
    """Deleting an entry in use returns 409 and lists its uses. Deleting the same entry twice returns 204 both times."""
    used = script.call("DELETE", "/providers/echo")
    assert (used.status_code, used.json()["error"]) == (409, "in_use")
    script.call("PUT", "/services/eyes", {"provider": "echo", "model": "echo-vision"})
    assert [script.call("DELETE", "/services/eyes").status_code for _ in range(2)] == [204, 204]
    assert not Service.objects.filter(service_id="eyes").exists()


def test_agent_is_validated_and_deleted_by_the_rules_of_the_agent_page(script: Script) -> None:
    body = {"name": "Scout", "taskType": "planning", "limits": {"requestsPerMinute": 30, "models": ["task:planning"]}}
    assert script.call("PUT", "/agents/scout", body).status_code == 201
    repeated = script.call("PUT", "/agents/scout", body)
    assert (repeated.status_code, repeated.json()["changes"]) == (200, [])
    agent = script.get("/agents/scout")["agent"]
    assert (agent["taskType"], agent["limits"]["requestsPerMinute"]) == ("planning", 30)
    response = script.call("PUT", "/agents/scout", {"taskType": "planning", "serviceId": "text-model"})
    assert [detail["path"] for detail in response.json()["details"]] == ["taskType"]
    low = script.call("PUT", "/agents/scout", {"limits": {"requestsPerMinute": 0}})
    assert [detail["path"] for detail in low.json()["details"]] == ["limits.requestsPerMinute"]
    assert (
        script.call("PUT", "/agents/scout", {"limits": {"wishes": 3}}).json()["details"][0]["path"] == "limits.wishes"
    )
    assert script.call("DELETE", "/agents/scout").status_code == 204
    assert not Agent.objects.filter(agent_id="scout").exists()


def test_keys_are_issued_rotated_and_revoked_and_each_is_shown_once(script: Script) -> None:
    response = script.call("POST", "/agents/text-agent/keys", {"label": "ci", "scopes": ["route"], "days": 7})
    key = response.json()["key"]
    assert (response.status_code, key.startswith("ra_")) == (201, True)
    identity = response.json()["issued"]["id"]
    assert getattr(authenticate({"authorization": f"Bearer {key}"}), "scopes", None) == {"route"}
    rotated = script.call("POST", f"/agents/text-agent/keys/{identity}/rotate", {"overlapSeconds": 0})
    assert rotated.json()["issued"]["scopes"] == ["route"]
    keys = script.get("/agents/text-agent/keys")
    assert key not in json.dumps(keys)
    after = rotated.json()["issued"]["id"]
    assert script.call("DELETE", f"/agents/text-agent/keys/{after}").status_code == 204
    states = {key_entry["id"]: key_entry["state"] for key_entry in script.get("/agents/text-agent/keys")["keys"]}
    assert (states[identity], states[after]) == ("expired", "revoked")
    assert AgentKey.objects.get(public_id=after).revoked_at is not None


def test_deactivation_ends_sessions_and_the_last_administrator_cannot_be_demoted(
    script: Script, viewer_account: User
) -> None:
    browser = open_browser(viewer_account)
    answer = script.call("PUT", "/people/vera", {"role": "editor"})
    assert answer.json()["person"]["role"] == "editor"
    assert script.call("PUT", "/people/vera", {"active": False}).json()["person"]["state"] == "deactivated"
    assert browser.get("/").status_code == 302
    last = script.call("PUT", "/people/admin", {"role": "viewer"})
    assert (last.status_code, last.json()["error"]) == (409, "in_use")
    names = [person_entry["username"] for person_entry in script.get("/people")["people"]]
    assert names == ["admin", "vera"]
    assert script.call("GET", "/people/unknown").status_code == 404


def test_only_the_newest_change_can_be_undone_and_a_revision_can_be_restored(script: Script) -> None:
    script.call("PUT", "/providers/deepseek", PROVIDER)
    revision = newest_revision()
    assert script.call("POST", f"/history/{revision - 1}/undo").status_code == 409
    assert script.call("POST", f"/history/{revision}/undo").status_code == 200
    assert not Provider.objects.filter(name="deepseek").exists()
    assert script.call("POST", f"/history/{revision}/restore").status_code == 200
    assert Provider.objects.filter(name="deepseek").exists()
    newest_line = script.get("/history")["revisions"][0]
    assert (newest_line["actor"], newest_line["actorKind"]) == ("admin's token deploy", "token")
    assert any("deepseek" in change for change in newest_line["changes"])


def test_dry_run_of_a_restore_lists_changes_and_consequences(script: Script) -> None:
    before = newest_revision()
    script.call("PUT", "/agents/newer", {"taskType": "default"})
    script.call("DELETE", "/agents/text-agent")
    revision = newest_revision()
    answer = script.call("POST", f"/history/{before}/restore?dryRun=true").json()
    assert [consequence["text"] for consequence in answer["consequences"]][-2:] == [
        "Agents made since stay, with their keys: newer.",
        "Agents come back without keys, issue new ones: text-agent.",
    ]
    assert (answer["dryRun"], answer["revision"], newest_revision()) == (True, revision, revision)
    assert [change for change in answer["changes"] if "text-agent" in change]
    assert script.call("POST", f"/history/{before}/restore").status_code == 200
    assert Agent.objects.filter(agent_id__in=["newer", "text-agent"]).count() == 2


def test_import_applies_only_to_the_revision_of_its_dry_run(script: Script) -> None:
    response = script.call("GET", "/config/llm-routing")
    file = {**response.json(), "defaultLanguage": "en"}
    preview = script.call("POST", "/config/import?dryRun=true", file)
    assert [change["field"] for change in preview.json()["changes"]] == ["default_language"]
    assert newest_revision() == int(response["x-revision"])
    assert script.call("POST", "/config/import", file, if_match=response["etag"]).status_code == 200
    assert script.call("POST", "/config/import", file, if_match=response["etag"]).status_code == 409


def test_new_invitation_link_voids_the_previous_one(script: Script, client: Client) -> None:
    response = script.call("POST", "/people", {"username": "ines", "role": "editor"})
    assert (response.status_code, response.json()["person"]["state"]) == (201, "invited")
    path = "/" + response.json()["link"].split("/", 3)[3]
    assert client.get(path).status_code == 200
    assert script.call("POST", "/people", {"username": "INES"}).json()["details"][0]["path"] == "username"
    new_link = script.call("POST", "/people/ines/link").json()["link"]
    assert client.get(path).status_code == 410
    assert response.json()["link"] not in json.dumps(script.get("/people"))
    assert client.get("/" + new_link.split("/", 3)[3]).status_code == 200
    assert [script.call("DELETE", "/people/ines").status_code for _ in range(2)] == [204, 204]
    assert script.call("DELETE", "/people/admin").status_code == 409
    acts = AuditEvent.objects.filter(actor="admin's token deploy", object_name="ines").values_list("action", flat=True)
    assert list(acts.order_by("number")) == ["user.invite", "user.link", "user.withdraw"]


def test_role_change_with_a_stale_etag_is_refused(script: Script, viewer_account: User) -> None:
    """Signing in does not change a user's ETag. Changing the role does."""
    etag = script.call("GET", "/people/vera")["etag"]
    open_browser(viewer_account)
    assert script.call("PUT", "/people/vera", {"role": "editor"}, if_match=etag).status_code == 200
    assert script.call("PUT", "/people/vera", {"role": "viewer"}, if_match=etag).status_code == 409


KEY_TERMS = {"label": "ci", "team": "ops", "limits": {"models": ["task:planning"], "requestsPerMinute": 5}}


def test_key_terms_apply_immediately_and_can_be_undone(script: Script) -> None:
    identity = script.call("POST", "/agents/text-agent/keys", {**KEY_TERMS, "days": 7}).json()["issued"]["id"]
    path = f"/agents/text-agent/keys/{identity}"
    response = script.call("GET", path)
    assert {name: response.json()["key"][name] for name in KEY_TERMS} == KEY_TERMS
    terms = {**KEY_TERMS, "limits": {"moneyPerDay": 2, "currency": "EUR"}, "expiresAt": "2099-01-01T00:00:00+00:00"}
    assert script.call("PUT", path, terms).json()["details"][0]["path"] == "expiresAt"
    expires_at = (timezone.now() + timedelta(days=30)).isoformat(timespec="seconds")
    changed = script.call("PUT", path, {**terms, "expiresAt": expires_at}, if_match=response["etag"]).json()["key"]
    assert (changed["limits"], changed["expiresAt"]) == ({"moneyPerDay": "2", "currency": "EUR"}, expires_at)
    row = AgentKey.objects.get(public_id=identity)
    assert (row.terms["limits"], row.expires_at.isoformat(timespec="seconds")) == (changed["limits"], expires_at)
    before = newest_revision(), AuditEvent.objects.count()
    assert script.call("PUT", path, terms | {"expiresAt": expires_at}).status_code == 200
    assert (newest_revision(), AuditEvent.objects.count()) == before
    assert script.call("PUT", path, KEY_TERMS, if_match=response["etag"]).status_code == 409
    assert script.call("POST", f"/history/{newest_revision()}/undo").status_code == 200
    assert script.get(path)["key"]["limits"] == KEY_TERMS["limits"]


def test_invalid_key_terms_are_rejected(script: Script) -> None:
    script.call("PUT", "/agents/scout", {"taskType": "planning", "limits": {"models": ["task:planning"]}})
    response = script.call("POST", "/agents/scout/keys", {"limits": {"models": ["text-model"]}})
    assert (response.status_code, "cannot use text-model" in response.json()["message"]) == (422, True)
    low = script.call("POST", "/agents/scout/keys", {"limits": {"inFlight": 0}})
    assert [detail["path"] for detail in low.json()["details"]] == ["limits.inFlight"]
    identity = script.call("POST", "/agents/scout/keys", {}).json()["issued"]["id"]
    script.call("DELETE", f"/agents/scout/keys/{identity}")
    assert script.call("PUT", f"/agents/scout/keys/{identity}", {"label": "again"}).status_code == 409


def test_alias_needs_an_existing_target_and_can_be_deleted(script: Script) -> None:
    assert script.call("PUT", "/aliases/gpt-4o", {"target": "task:planning"}).status_code == 201
    before = newest_revision()
    repeated = script.call("PUT", "/aliases/gpt-4o", {"target": "task:planning"})
    assert (repeated.status_code, repeated.json()["changes"], newest_revision()) == (200, [], before)
    nowhere = script.call("PUT", "/aliases/gpt-4o", {"target": "task:nothing"})
    assert [detail["path"] for detail in nowhere.json()["details"]] == ["target"]
    etag = script.call("GET", "/aliases/gpt-4o")["etag"]
    script.call("PUT", "/aliases/gpt-4o", {"target": "auto"})
    assert script.call("DELETE", "/aliases/gpt-4o", if_match=etag).status_code == 409
    assert {"name": "gpt-4o", "target": "auto"} in script.get("/aliases")["aliases"]
    assert [script.call("DELETE", "/aliases/gpt-4o").status_code for _ in range(2)] == [204, 204]
    assert script.call("GET", "/aliases/gpt-4o").status_code == 404
    assert script.call("POST", f"/history/{newest_revision()}/undo").status_code == 200
    assert script.get("/aliases/gpt-4o")["alias"]["target"] == "auto"


def test_built_in_and_default_languages_cannot_be_removed(script: Script) -> None:
    portuguese = {"directive": "Responda em português."}
    assert [script.call("PUT", "/languages/pt", portuguese).status_code for _ in range(2)] == [201, 200]
    assert script.get("/languages/pt")["language"] == {"code": "pt", **portuguese, "builtIn": False}
    assert script.call("PUT", "/settings", {"defaultLanguage": "pt"}).status_code == 200
    assert script.call("DELETE", "/languages/pt").status_code == 409
    script.call("PUT", "/settings", {"defaultLanguage": None})
    assert [script.call("DELETE", "/languages/pt").status_code for _ in range(2)] == [204, 204]
    assert script.call("DELETE", "/languages/en").status_code == 204
    assert "en" in [language["code"] for language in script.get("/languages")["languages"]]
    assert script.call("PUT", "/languages/-", portuguese).json()["details"][0]["path"] == "code"


def test_one_invalid_setting_rejects_all_changes(script: Script) -> None:
    before = script.call("GET", "/settings")
    changes = {"requestDays": 14, "quotaBytes": 2**30, "recordBodies": True, "contentPolicy": "describe"}
    refused = script.call("PUT", "/settings", {**changes, "defaultLanguage": "tlh"})
    assert (refused.status_code, script.call("GET", "/settings")["etag"]) == (422, before["etag"])
    saved = script.call("PUT", "/settings", changes, if_match=before["etag"])
    assert saved.json()["settings"] == {**before.json()["settings"], **changes}
    assert script.call("PUT", "/settings", changes, if_match=before["etag"]).status_code == 409
    count = AuditEvent.objects.count()
    assert script.call("PUT", "/settings", changes, if_match=saved["etag"])["etag"] == saved["etag"]
    assert AuditEvent.objects.count() == count
    acts = set(AuditEvent.objects.values_list("action", flat=True))
    assert {"installation.retention", "installation.record_bodies", "installation.content_policy"} <= acts


def test_every_token_scope_is_required_by_a_call() -> None:
    assert set(ADMIN_CALLS.values()) == set(ADMIN_SCOPES)


def test_agent_page_link_is_shown_once_and_can_be_revoked(script: Script) -> None:
    answer = script.call("POST", "/agents/text-agent/links", {"name": "Mei", "withBodies": True})
    assert (answer.status_code, answer["Cache-Control"]) == (201, "private, no-store")
    created = answer.json()
    path = "/agent-page/" + created["link"].split("/agent-page/")[1]
    assert Client().get(path).status_code == 200
    (link,) = script.get("/agents/text-agent/links")["links"]
    assert (link["name"], link["state"], link["withBodies"]) == ("Mei", "active", True)
    assert link["lastSeenAt"] is not None
    assert path.split("_", 2)[2] not in str(link)  # The secret may itself begin with an underscore.
    for _ in range(2):
        assert script.call("DELETE", f"/agents/text-agent/links/{link['id']}").status_code == 204
    assert Client().get(path).status_code == 404
    assert script.get("/agents/text-agent/links")["links"][0]["state"] == "revoked"
    assert script.call("DELETE", f"/agents/vision-agent/links/{link['id']}").status_code == 404
    assert script.call("POST", "/agents/unknown/links", {"name": "Mei"}).status_code == 404


def test_agent_page_link_lasts_90_days_by_default_or_as_requested_or_forever(script: Script) -> None:
    options: list[dict[str, Any]] = [{}, {"days": 7}, {"days": None}]
    expiry_times = [
        script.call("POST", "/agents/text-agent/links", {"name": "Mei", **option}).json()["details"]["expiresAt"]
        for option in options
    ]
    assert expiry_times[2] is None
    days = [(datetime.fromisoformat(expiry) - timezone.now() + timedelta(hours=1)).days for expiry in expiry_times[:2]]
    assert days == [90, 7]
