"""Forms in a browser: save bar, fields with suggestions, and use with the keyboard."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from capabilities.models import Agent

pytestmark = [
    pytest.mark.ui,
    pytest.mark.django_db(transaction=True, databases=["default", "logs"]),
    pytest.mark.usefixtures("first_start"),
]


@pytest.mark.parametrize(
    ("address", "field", "text"),
    [
        ("/agents/text-agent/", "#id_name", "Name"),
        ("/services/text-model/", "#id_name", "Name"),
        ("/providers/echo/", "#id_timeout_total", "Timeout (total)"),
        ("/routes/design/", "#id_deadline", "deadline"),
    ],
)
def test_save_bar_names_changes_while_typing(admin_page: Any, address: str, field: str, text: str) -> None:
    admin_page.goto(address)
    bar = admin_page.locator("#savebar")
    before = admin_page.locator(field).input_value()
    expect(bar).to_contain_text("No changes yet")
    admin_page.fill(field, "7")
    admin_page.press(field, "Tab")
    expect(bar).to_contain_text("1 change:")
    expect(bar).to_contain_text(text)
    assert bar.evaluate("element => getComputedStyle(element).position") == "sticky"
    bar.get_by_text("Discard").click()
    expect(bar).to_contain_text("No changes yet")
    assert admin_page.locator(field).input_value() == before


def test_ctrl_enter_saves_the_form_of_the_focused_field(admin_page: Any) -> None:
    admin_page.goto("/agents/text-agent/")
    admin_page.fill("#id_description", "from the keyboard")
    admin_page.press("#id_description", "Control+Enter")
    expect(admin_page.locator("#toasts .toast")).to_contain_text("text-agent saved")
    assert Agent.objects.get(agent_id="text-agent").description == "from the keyboard"


def test_field_requests_suggestions_while_typing(admin_page: Any) -> None:
    admin_page.goto("/routes/design/")
    admin_page.locator("#pick").press_sequentially("vision")
    expect(admin_page.locator("#pick-options option").first).to_have_attribute("value", "vision-model")
    expect(admin_page.locator("#chain")).to_have_count(1)
    admin_page.locator("#pick").press_sequentially("-model")
    admin_page.locator("#pick").press("Enter")
    expect(admin_page.locator("#chain .cand")).to_have_count(4)


def test_model_names_of_an_agent_are_added_one_by_one_and_removed(admin_page: Any) -> None:
    admin_page.goto("/agents/text-agent/")
    admin_page.locator("details:has(#id_models) > summary").click()
    names = admin_page.locator("#id_models-chosen")
    for name in ("task:design", "echo-text"):
        admin_page.locator("#id_models").fill(name)
        admin_page.locator("#id_models").press("Tab")
        expect(names.get_by_role("button", name=f"{name} remove")).to_be_visible()
    expect(admin_page.locator("#changed")).to_contain_text("Allowed routes and services")
    names.get_by_role("button", name="task:design remove").click()
    expect(admin_page.locator("#id_models")).to_be_focused()
    expect(names.get_by_role("button")).to_have_count(1)
    expect(admin_page.locator("#id_models-value")).to_have_value("echo-text")
    expect(admin_page.locator("#id_models-value")).to_be_hidden()


def test_dialog_with_a_rejected_form_stays_open_and_shows_the_problems(admin_page: Any) -> None:
    admin_page.expected_complaints.append("422")
    admin_page.goto("/agents/text-agent/")
    admin_page.get_by_role("button", name="Issue a page link").click()
    admin_page.locator("#share").get_by_role("button", name="Issue a page link").click()
    expect(admin_page.locator("#problems")).to_be_focused()
    expect(admin_page.get_by_label("Recipient")).to_be_visible()
