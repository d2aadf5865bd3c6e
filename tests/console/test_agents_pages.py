"""The pages about agents and keys: what an agent can read, its handovers, and issuing, rotating and revoking keys."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from capabilities.access import Principal, authenticate
from capabilities.actors import SYSTEM
from capabilities.core.permissions import DEFAULT_SCOPES
from capabilities.models import Agent, AgentKey, Service
from routing_admin.configuration import snapshot
from routing_admin.configuration.agents.actions import put_agent
from routing_admin.models import AuditEvent, Revision, UsageRollup, UsageSum
from routing_admin.request_log.time_ranges import hour_start
from tests.console.page import Page
from tests.console.visits import count_queries

pytestmark = [pytest.mark.django_db(databases=["default", "logs"]), pytest.mark.usefixtures("demo")]
NAMES = ("multimodal-agent", "text-agent", "vision-agent")
WHOLE_KEY = re.compile(r"ra_[0-9a-z]{8}_[A-Za-z0-9_-]{43}_[0-9a-f]{8}")


def issue_key(client: Client, agent: str = "text-agent", **fields: object) -> str:
    """Issue a key on the agent's page and return it. The key is shown only in this response."""
    answer = client.post(f"/keys/issue/{agent}/", {"scopes": list(DEFAULT_SCOPES), "label": "staging", **fields})
    return read_issued_key(answer)


def read_issued_key(answer: HttpResponse) -> str:
    key = Page(answer).region("Copy it now. It is shown only once.").control("issued")
    assert key
    assert WHOLE_KEY.fullmatch(key.text)
    return key.text


def test_agent_list_shows_services_and_routes_and_counts_agents_without_a_key(admin: Client) -> None:
    issue_key(admin)
    Agent.objects.filter(agent_id="vision-agent").update(service=None, task_type="design")
    page = Page(admin.get("/agents/"))
    assert "text-model" in page.link("text-model").attributes["href"]
    assert page.link("task:design").attributes["href"] == "/routes/design/"
    sentence = "2 of 3 agents cannot call models: they have no working key."
    assert page.link(sentence).attributes["href"] == "?state=no_key"
    filtered = Page(admin.get("/agents/?state=no_key"))
    assert [filtered.link(name) is None for name in NAMES] == [False, True, False]
    assert Page(admin.get("/agents/?q=multimodal")).row("multimodal-agent").shows("audio")


def test_agent_list_shows_the_state_of_the_best_key(admin: Client) -> None:
    now, agent = timezone.now(), Agent.objects.get(agent_id="text-agent")
    steps = [
        ({"revoked_at": now}, "Key revoked", "no_key"),
        ({"expires_at": now}, "Key expired", "no_key"),
        ({"expires_at": now + timedelta(days=2), "last_used_at": now}, "Key expiring", "ready"),
        ({}, "Key unused", "ready"),
        ({"last_used_at": now}, "Ready", "ready"),
    ]
    for number, (terms, state, group) in enumerate(steps):
        AgentKey.objects.create(agent=agent, public_id=f"key{number}", digest="0", **terms)
        page = Page(admin.get(f"/agents/?q=text-agent&state={group}"))
        badges = [control for control in page.controls if "badge" in (control.attributes.get("class") or "").split()]
        assert [badge.name for badge in badges] == [state]


def test_key_state_column_is_visible_on_narrow_screens(admin: Client) -> None:
    """On narrow screens, a CSS class hides the column with the last use, but not the state column."""
    now, agent = timezone.now(), Agent.objects.get(agent_id="text-agent")
    AgentKey.objects.create(agent=agent, public_id="old", digest="0", revoked_at=now)
    AgentKey.objects.create(agent=agent, public_id="ending", digest="0", expires_at=now + timedelta(days=2))
    page = Page(admin.get("/agents/text-agent/"))
    cells = [control for control in page.controls if control.tag == "td" and "class" not in control.attributes]
    assert [cell.name.split(" until ")[0] for cell in cells] == ["Expires soon", "Revoked"]


def test_buttons_add_and_remove_allowed_model_names_without_saving(admin: Client) -> None:
    """Buttons add or remove a model name without saving. The text area contains the names, one per line."""
    address, chosen = "/options/target/chosen/?field=models&id=id_models", "task:design\ntext-model"
    added = admin.post(address, {"models": [chosen, " echo-text "]})
    page = Page(added)
    assert page.control("id_models-value").value == "task:design text-model echo-text"
    assert page.button("text-model remove").attributes["value"] == "text-model"
    assert '"target": "#id_models-value"' in added["HX-Trigger-After-Settle"]
    left = Page(admin.post(address, {"models": [chosen, ""], "drop": "task:design"}))
    assert left.control("id_models-value").value == "text-model"
    assert "autofocus" in left.control("id_models").attributes
    assert Agent.objects.get(agent_id="text-agent").limits == {}
    assert admin.post("/options/nothing/chosen/", {}).status_code == 404


def test_chosen_and_typed_model_names_are_saved(admin: Client) -> None:
    agent = Agent.objects.get(agent_id="text-agent")
    data = {"service": "text-model", "currency": "USD"}
    for models in (["task:design\r\necho-text", "text-model"], ["task:design\necho-text\ntext-model\n\necho-text"]):
        agent.refresh_from_db()
        saved = admin.post("/agents/text-agent/", {**data, "version": agent.version, "models": models})
        agent.refresh_from_db()
        assert (saved.status_code, agent.limits) == (302, {"models": ["task:design", "echo-text", "text-model"]})


def test_agent_list_can_be_sorted_by_each_column(admin: Client) -> None:
    issue_key(admin, "vision-agent")
    page = Page(admin.get("/agents/?q=agent&sort=-keys"))
    names = [control.name for control in page.controls if control.tag == "a" and control.name in NAMES]
    assert names == ["vision-agent", "multimodal-agent", "text-agent"]
    sorts = {control.name: control.attributes.get("aria-sort") for control in page.controls if control.tag == "th"}
    assert (sorts["Keys"], sorts["Agent"]) == ("descending", None)
    assert page.link("Keys").attributes["href"] == "?q=agent&sort=keys"
    assert page.link("24 hours").attributes["href"] == "?q=agent&sort=-requests"


def test_agent_list_counts_the_requests_of_the_last_day_and_links_to_the_log(admin: Client) -> None:
    now = hour_start(timezone.now())
    for hours, count in ((0, 2), (3, 5), (30, 9)):
        start = now - timedelta(hours=hours)
        UsageSum.objects.create(span="h", start=start, agent="text-agent", provider="echo", requests=count)
        if hours == 3:
            values = {"span": "h", "start": start, "requests": count}
            UsageRollup.objects.create(**values, dimension="agent", value="text-agent")
            UsageRollup.objects.create(**values, dimension="provider", value="echo")
            UsageRollup.objects.create(**values, dimension="", value="")
    page = Page(admin.get("/agents/?sort=-requests"))
    assert page.link("7 requests").attributes["href"] == "/requests/?q=agent%3Atext-agent%20since%3A1d"
    assert next(link.name for link in page.controls if link.tag == "a" and link.name in NAMES) == "text-agent"


@pytest.mark.requirement("MCR-4.4")
def test_agent_page_names_content_kinds_read_by_other_agents_or_by_none(admin: Client) -> None:
    page = Page(admin.get("/agents/vision-agent/"))
    reads = page.region("Reads")
    assert re.search(r"Hands over [^.]*audio to 1 agent\b", page.text)
    assert reads.shows("itself")
    assert reads.shows("No agent reads: videos.")


def test_delete_dialog_warns_that_keys_and_links_stop_working(admin: Client) -> None:
    dialog = Page(admin.get("/agents/vision-agent/")).region("Delete vision-agent?")
    assert dialog.shows("Its keys and the links to its page stop working immediately and cannot be restored.")


def test_service_and_route_of_an_agent_are_text_fields_with_suggestions(admin: Client) -> None:
    """Service and route are not drop-down lists, since an installation may have many of both."""
    page = Page(admin.get("/agents/vision-agent/"))
    field = page.field("Model service")
    assert field
    assert (field.tag, field.attributes["value"], field.attributes["hx-get"]) == (
        "input",
        "vision-model",
        "/options/service/",
    )
    answer = admin.post("/new/agent/", {"agent_id": "lost", "service": "no-model", "task_type": "no-route"})
    assert answer.status_code == 422
    assert Page(answer).error("Model service") == "No model service has this id."
    assert Page(answer).error("Task route").endswith("No task route has this name.")
    assert not Agent.objects.filter(agent_id="lost").exists()


def test_agent_form_still_shows_a_deleted_route(admin: Client) -> None:
    Agent.objects.filter(agent_id="text-agent").update(service=None, task_type="gone")
    field = Page(admin.get("/agents/text-agent/")).field("Task route")
    assert field
    assert field.attributes["value"] == "gone"


def test_new_key_is_shown_once_and_works_immediately(admin: Client) -> None:
    key = issue_key(admin)
    principal = authenticate({"authorization": f"Bearer {key}"})
    assert isinstance(principal, Principal)
    assert principal.agent == "text-agent"
    assert key not in admin.get("/agents/text-agent/").content.decode()
    assert key not in str(list(AuditEvent.objects.values())) + str(list(Revision.objects.values()))


def test_issued_key_has_the_chosen_scopes_and_expiry(admin: Client) -> None:
    assert Page(admin.get("/agents/text-agent/")).field("route call models")
    issue_key(admin, scopes=["route"], days="30")
    row = AgentKey.objects.get()
    assert row.scopes == ["route"]
    assert row.expires_at is not None
    assert timedelta(days=29) < row.expires_at - timezone.now() < timedelta(days=31)


def test_issuing_a_key_without_a_scope_is_rejected(admin: Client) -> None:
    answer = admin.post("/keys/issue/text-agent/", {"label": "x"})
    assert answer.status_code == 422
    assert not AgentKey.objects.exists()


def test_rotating_issues_a_successor_while_the_old_key_still_works(admin: Client) -> None:
    old = issue_key(admin)
    public = AgentKey.objects.get().public_id
    answer = admin.post(f"/keys/{public}/roll/text-agent/", {"overlap": "1h"})
    successor = read_issued_key(answer)
    assert successor != old
    for key in (old, successor):
        assert isinstance(authenticate({"x-api-key": key}), Principal)
    admin.post(f"/keys/{public}/roll/text-agent/", {"overlap": "0"})
    assert not isinstance(authenticate({"x-api-key": old}), Principal)


def test_revoke_dialog_names_the_key_and_a_revoked_key_stops_working_immediately(admin: Client) -> None:
    key = issue_key(admin)
    row = AgentKey.objects.get()
    dialog = Page(admin.get("/agents/text-agent/")).region("Revoke staging?")
    assert dialog.form(f"/keys/{row.public_id}/revoke/text-agent/")
    admin.post(f"/keys/{row.public_id}/revoke/text-agent/")
    assert not isinstance(authenticate({"x-api-key": key}), Principal)
    assert Page(admin.get("/agents/text-agent/")).region("Keys").row("staging").shows("Revoked")


def test_key_cannot_be_revoked_under_the_url_of_another_agent(admin: Client) -> None:
    key = issue_key(admin)
    public = AgentKey.objects.get().public_id
    assert admin.post(f"/keys/{public}/revoke/vision-agent/").status_code == 404
    assert isinstance(authenticate({"x-api-key": key}), Principal)


def test_agent_page_shows_content_kinds_read_by_every_candidate_of_the_route(admin: Client) -> None:
    admin.post("/new/agent/", {"agent_id": "designer", "task_type": "design"})
    page = Page(admin.get("/agents/designer/"))
    assert page.shows("Uses the task route")
    assert page.shows("Every candidate reads:")
    assert page.shows("Only some can read these; the rest get a description:")
    assert page.region("Use it").shows("task:design")


def test_agent_uses_a_service_or_a_route_but_not_both(admin: Client) -> None:
    service = Agent.objects.get(agent_id="text-agent").service
    assert service is not None
    form = {"agent_id": "greedy", "task_type": "design", "service": service.service_id}
    answer = admin.post("/new/agent/", form)
    assert answer.status_code == 422
    assert "An agent uses a service or a task route, not both." in Page(answer).alert
    assert not Agent.objects.filter(agent_id="greedy").exists()


def test_saving_an_outdated_form_returns_409_with_both_versions(admin: Client) -> None:
    row = Agent.objects.get(agent_id="text-agent")
    form = {"name": "first", "description": "d", "service": "text-model", "version": row.version}
    assert admin.post("/agents/text-agent/", form).status_code == 302
    answer = admin.post("/agents/text-agent/", form | {"name": "second"})
    assert answer.status_code == 409
    assert Page(answer).row("Name").shows("first")
    assert Agent.objects.get(agent_id="text-agent").name == "first"


def test_snippets_use_the_public_url_and_the_agent_model(admin: Client, settings: object) -> None:
    settings.PUBLIC_URL = "https://ra.example"  # type: ignore[attr-defined]
    page = Page(admin.get("/agents/text-agent/"))
    assert page.region("curl").shows("curl https://ra.example/v1/chat/completions")
    assert page.region("OpenAI SDK").shows('base_url="https://ra.example/v1"')
    assert page.region("Tools").shows("https://ra.example/mcp")
    assert page.region("Tools").shows("get_artifact")


def test_snippets_use_the_default_route_if_the_agent_model_cannot_answer(admin: Client) -> None:
    use = Page(admin.get("/agents/text-agent/")).region("Use it")
    assert use.shows("text-model cannot answer now. example has no key")
    assert use.shows("these calls ask for auto, the default route.")
    assert use.link("Open the provider")
    assert '"model": "auto"' in use.region("curl").text
    Agent.objects.filter(agent_id="text-agent").update(limits={"models": ["text-model"]})
    use = Page(admin.get("/agents/text-agent/")).region("Use it")
    assert not use.shows("the default route")
    assert '"model": "text-model"' in use.region("curl").text


def test_snippets_use_the_agent_model_if_this_can_answer(admin: Client) -> None:
    put_agent(SYSTEM, "text-agent", "worker-1", service_id="echo-text")
    use = Page(admin.get("/agents/worker-1/")).region("Use it")
    assert not use.shows("cannot answer")
    assert '"model": "echo-text"' in use.region("curl").text


def test_page_of_an_agent_created_at_run_time_names_the_creator(admin: Client) -> None:
    put_agent(SYSTEM, "text-agent", "worker-1", service_id="vision-model")
    assert Page(admin.get("/agents/?state=runtime")).row("worker-1").shows("Made at run time by text-agent")
    page = Page(admin.get("/agents/worker-1/"))
    assert page.shows("created at run time by text-agent")
    assert page.shows("x-agent-id")
    parent = Page(admin.get("/agents/text-agent/"))
    why, show = parent.control("why-not"), parent.link("Show them")
    assert parent.heading("Delete agent")
    assert why
    assert why.name.startswith("1 agent was created by it.")
    assert show
    assert Page(admin.get(show.attributes["href"] or "")).link("worker-1")


def test_deleting_an_agent_revokes_all_keys_of_the_agent(admin: Client) -> None:
    key = issue_key(admin, "vision-agent")
    assert Page(admin.get("/agents/vision-agent/")).region("Delete vision-agent?").form("/delete/agent/vision-agent/")
    admin.post("/delete/agent/vision-agent/")
    assert not isinstance(authenticate({"x-api-key": key}), Principal)


def test_agent_list_query_count_is_the_same_for_three_and_thirty_agents(admin: Client) -> None:
    query_count = count_queries(admin, "/agents/")
    for number in range(27):
        Agent.objects.create(agent_id=f"a{number}")
    assert count_queries(admin, "/agents/") == query_count


def test_viewer_can_see_agents_but_not_issue_keys(admin: Client, viewer: Client) -> None:
    issue_key(admin)
    public = AgentKey.objects.get().public_id
    page = Page(viewer.get("/agents/text-agent/"))
    assert page.region("Keys").rows == ["staging"]
    assert not page.shows("Issue a key")
    assert not page.shows("Revoke")
    addresses = ("/keys/issue/", f"/keys/{public}/roll/", f"/keys/{public}/revoke/", "/delete/agent/", "/agents/")
    for address in addresses:
        assert viewer.post(f"{address}text-agent/").status_code == 403


def test_agent_page_names_five_of_many_readers_and_links_to_the_full_list(admin, demo):
    service = Service.objects.get(service_id="vision-model")
    for number in range(10):
        Agent.objects.create(agent_id=f"eye-{number}", name="Eye", service=service)
    snapshot.refresh()
    page = Page(admin.get("/agents/text-agent/"))
    assert "Hands over images to 12 agents, audio to 1 agent" in page.text
    assert page.button("12 agents")
    named = [control.name for control in page.controls if control.tag == "a" and control.name.startswith("eye-")]
    assert named == [f"eye-{number}" for number in range(5)]
    show_all = next(control for control in page.controls if control.tag == "a" and control.name == "Show all")
    listed = Page(admin.get(show_all.attributes["href"] or ""))
    assert show_all.attributes["href"] == "/agents/?reads=vision"
    assert listed.link("eye-9")
    assert listed.link("text-agent") is None


def test_agent_list_is_paginated_and_searched_across_all_pages(admin: Client) -> None:
    for number in range(120):
        Agent.objects.create(agent_id=f"zz-{number:03}")
    snapshot.refresh()
    pages = [Page(admin.get(f"/agents/?page={number}")) for number in range(1, 6)]
    listed = sorted(name for page in pages for name in page.rows)
    assert listed == sorted([*NAMES, *(f"zz-{number:03}" for number in range(120))])
    assert pages[0].region("Pages").shows("1 to 25 of 123")
    assert Page(admin.get("/agents/?q=zz-119")).rows == ["zz-119"]


def test_agent_limits_are_collapsed_until_a_limit_is_set_or_rejected(admin: Client) -> None:

    def is_open(answer: HttpResponse) -> bool:
        return [control.is_open for control in Page(answer).disclosures if control.control("id_tokensPerDay")] == [True]

    url = "/agents/text-agent/"
    assert not is_open(admin.get(url))
    assert is_open(admin.post(url, {"tokensPerDay": "many"}))
    version = Agent.objects.get(agent_id="text-agent").version
    assert admin.post(url, {"tokensPerDay": "100", "version": version}).status_code == 302
    assert is_open(admin.get(url))
