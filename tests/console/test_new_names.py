"""The name or id of a new object is rejected, with our own message, if URLs or files cannot contain it."""

from __future__ import annotations

import pytest
from django.test import Client

from capabilities.models import Agent, Provider, Service
from routing_admin.models import TaskRoute
from tests.console.page import Page

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
FORMS = {
    "/new/agent/": ("agent_id", "Id", {"name": "A"}),
    "/new/service/": ("service_id", "Id", {"name": "A", "model": "echo-text"}),
    "/new/provider/?own=1": (
        "name",
        "Name",
        {"endpoint": "https://a.example/v1", "protocol": "openai", "key_act": "none"},
    ),
    "/routes/new/": ("task_type", "Task type", {"act": "save"}),
}
REFUSED = "Use no spaces, none of ? # % \\ and no part of only dots, and / only between other characters."


def count_objects() -> tuple[int, ...]:
    return tuple(model.objects.count() for model in (Agent, Service, Provider, TaskRoute))


@pytest.mark.parametrize("address", FORMS)
@pytest.mark.parametrize("name", ["two words", "a?b", "a#b", "a%2Fb", "a\\b", "a\tb", "全角\u3000空格"])
def test_name_with_characters_unusable_in_urls_is_rejected_at_the_field(
    address: str, name: str, admin: Client, demo: None
) -> None:
    field, label, values = FORMS[address]
    before = count_objects()
    answer = admin.post(address, {**values, field: name})
    assert answer.status_code == 422
    assert REFUSED in Page(answer).error(label)
    assert count_objects() == before


@pytest.mark.parametrize("name", ["/a", "a/", "a//b", "../a", "a/./b"])
def test_slash_in_a_name_is_allowed_only_between_other_characters(name: str, admin: Client, demo: None) -> None:
    assert REFUSED in Page(admin.post("/new/agent/", {"name": "A", "agent_id": name})).error("Id")


@pytest.mark.parametrize("name", ["sales/ocr", "gpt-4o@azure", "qwen2.5:7b", "客服.工单", "..a"])
def test_usual_names_are_accepted(name: str, admin: Client, demo: None) -> None:
    assert admin.post("/new/agent/", {"name": "A", "agent_id": name}).status_code == 302
    assert admin.get(f"/agents/{name}/").status_code == 200


def test_missing_fields_are_reported_with_our_own_message(admin: Client, demo: None) -> None:
    page = Page(admin.post("/new/service/", {"service_id": ""}))
    for label in ("Id", "Name", "Model name"):
        assert page.error(label).endswith("Fill this in."), label
    assert not page.shows("This field is required")
