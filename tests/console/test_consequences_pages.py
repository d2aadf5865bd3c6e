"""Before an action is done, pages show what it changes for routes and agents."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from capabilities.actors import Actor
from capabilities.core.consequence import group_by_cause
from capabilities.models import Agent, Provider, Service
from routing_admin.configuration import snapshot
from routing_admin.configuration.agents.actions import put_agent, save_agent
from routing_admin.console.base.consequences import find_disabling_consequences
from routing_admin.console.routes.actions import save_alias
from routing_admin.console.settings.actions import save_language
from routing_admin.models import Candidate, Revision, TaskRoute
from tests.cast import AgentProgram
from tests.console.page import Page

pytestmark = [pytest.mark.django_db(databases=["default", "logs"]), pytest.mark.usefixtures("demo")]
ADA = Actor("person", "ada")
LOSS = "In design, echo/echo-vision gets images as descriptions."


def form_values(client: Client, url: str, form: str) -> dict[str, Any]:
    """Return the values that this form in the template context would submit without changes."""
    bound = client.get(url).context[form]
    values = {name: bound[name].value() for name in bound.fields}
    return {name: value for name, value in values.items() if value not in (None, False)}


def test_disabling_a_service_requires_confirmation(admin: Client) -> None:
    url = reverse("service", args=["echo-vision"])
    data = form_values(admin, url, "form") | {"switch": []}
    data.pop("enabled")
    before = Revision.objects.count()
    answer = admin.post(url, data)
    assert answer.status_code == 422
    assert "design loses echo-vision." in Page(answer).alert
    assert (Revision.objects.count(), Service.objects.get(service_id="echo-vision").enabled) == (before, True)
    admin.post(url, data | {"confirmed": "1"})
    assert (Revision.objects.count(), Service.objects.get(service_id="echo-vision").enabled) == (before + 1, False)


def test_saving_an_enabled_service_requires_no_confirmation(admin: Client) -> None:
    url = reverse("service", args=["echo-vision"])
    assert admin.post(url, form_values(admin, url, "form") | {"name": "Eyes"}).status_code == 302
    Service.objects.filter(service_id="echo-vision").update(enabled=False)
    data = form_values(admin, url, "form")
    assert "enabled" not in data
    assert admin.post(url, data | {"name": "Shut eyes"}).status_code == 302


def test_disabling_providers_requires_confirmation_on_the_page_and_in_the_list(admin: Client) -> None:
    url = reverse("provider", args=["echo"])
    data = form_values(admin, url, "form") | {"key_act": "keep"}
    data.pop("enabled")
    assert "design has no model left that can be called." in Page(admin.post(url, data)).alert
    choice = {"name": ["echo", "openai"], "enabled": "0"}
    page = Page(admin.post(reverse("providers_switch"), choice))
    assert page.shows("design has no model left that can be called.")
    assert Provider.objects.get(name="echo").enabled
    admin.post(reverse("providers_switch"), choice | {"confirmed": "1"})
    assert not Provider.objects.filter(name__in=["echo", "openai"], enabled=True).exists()


def test_delete_dialog_names_the_consequences(admin: Client) -> None:
    assert Page(admin.get(reverse("service", args=["echo-vision"]))).region("Delete echo-vision?").shows(LOSS)
    agent = Page(admin.get(reverse("agent", args=["text-agent"]))).region("Delete text-agent?")
    assert agent.shows("The agent text-agent is deleted, and its keys stop working.")
    route = Page(admin.get(reverse("route", args=["design"]))).region("Delete design?")
    assert route.shows("design is removed; its tasks go to default.")
    Provider.objects.create(name="spare", endpoint="https://spare.example/v1", default_model="m", position=9)
    provider = Page(admin.get(reverse("provider", args=["spare"]))).region("Delete spare?")
    assert provider.shows("No task route and no agent changes.")


def test_removing_a_language_names_the_replacement_language(admin: Client) -> None:
    save_language(ADA, "pt", "Responda em português.")
    assert Page(admin.get(reverse("settings"))).shows("Requests in pt are answered in zh.")


def test_demo_removal_dialog_lists_removed_objects_and_losses_of_other_objects(admin: Client) -> None:
    save_agent(ADA, Agent(agent_id="mine", name="mine", task_type="design"))
    save_alias(ADA, "gpt-4", "vision-model")
    for page in ("settings", "dashboard"):
        dialog = Page(admin.get(reverse(page))).region("Delete the demo data?")
        assert dialog.shows("multimodal-agent, text-agent, vision-agent")
        assert dialog.shows("planning, chapter_generation, one_shot_generation, optimization")
        assert dialog.shows("The alias gpt-4 no longer leads anywhere.")
        assert not dialog.shows("vision-agent goes")


def test_agent_created_at_run_time_is_listed_among_agents_that_lose_a_model(text_agent: AgentProgram) -> None:
    """The agent is listed although configuration files do not contain it."""
    put_agent(ADA, "text-agent", "helper", service_id="echo-text")
    assert "The agent helper no longer reaches any model." in [
        consequence.sentence for consequence in find_disabling_consequences("service", ["echo-text"])
    ]


def test_consequences_are_grouped_by_cause(admin: Client) -> None:
    """Each cause is one line with the number of affected routes or agents.

    The line can be expanded to show all of them.
    """
    echo = Provider.objects.get(name="echo")
    for number in range(8):
        route = TaskRoute.objects.create(task_type=f"alone-{number}", position=100 + number)
        Candidate.objects.create(route=route, position=1, provider=echo)
    snapshot.refresh()
    answer = admin.post(reverse("providers_switch"), {"name": ["echo"], "enabled": "0"})
    groups = group_by_cause(answer.context["effects"])
    page = Page(answer)
    listed = [item for item in page.controls if item.tag == "li" and "note" in (item.attributes.get("class") or "")]
    assert len(listed) == len(groups) < len(answer.context["effects"])
    assert page.button(f"and {len(groups[0]) - 1} more")
    assert page.shows("alone-7 has no model left that can be called.")
