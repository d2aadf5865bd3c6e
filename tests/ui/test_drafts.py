"""Unsaved input: the browser asks before the page is left, the page offers the draft later, and secrets are not
stored.
"""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from capabilities.actors import Actor
from routing_admin.console.routes.actions import save_route
from routing_admin.models import TaskRoute

pytestmark = [
    pytest.mark.ui,
    pytest.mark.django_db(databases=["default", "logs"], transaction=True),
    pytest.mark.usefixtures("first_start"),
]
ADA = Actor("person", "ada")
STORED_DRAFTS = "Object.values(localStorage).join()"


def type_into(page: Any, field: str, text: str) -> None:
    """Click into a field and type. Without a user gesture such as a click, browsers do not ask before a page is
    left.
    """
    page.click(field)
    page.fill(field, text)


@pytest.fixture
def dialogs(admin_page: Any) -> list[str]:
    """Return a list that receives the kind of each dialog when it opens. All dialogs are accepted."""
    kinds: list[str] = []

    def accept(dialog: Any) -> None:
        kinds.append(dialog.type)
        dialog.accept()

    admin_page.on("dialog", accept)
    admin_page.expected_complaints.append("never had a user gesture")  # Chromium logs this if nothing was typed.
    return kinds


def test_route_draft_can_be_restored_after_leaving_the_page(admin_page: Any, dialogs: list[str]) -> None:
    admin_page.goto("/routes/design/")
    admin_page.fill("#pick", "text-model")
    admin_page.click("#add")
    expect(admin_page.locator("#chain [data-item]")).to_have_count(4)
    admin_page.locator(".cand:has(#id_c-3-temperature) summary").click()
    admin_page.locator("#id_c-3-temperature").fill("0.3")
    admin_page.locator("#nav").get_by_role("link", name="Requests").click()
    expect(admin_page.locator("h1")).to_have_text("Requests")
    assert dialogs == ["confirm"]
    admin_page.goto("/routes/design/")
    expect(admin_page.locator(".draft-bar")).to_contain_text("You have an unsaved draft from")
    expect(admin_page.get_by_text("A newer version has been saved since.")).to_be_hidden()
    admin_page.get_by_role("button", name="Restore").click()
    expect(admin_page.locator("#chain [data-item]")).to_have_count(4)
    expect(admin_page.locator("#id_c-3-temperature")).to_have_value("0.3")
    admin_page.click("#save")
    expect(admin_page.locator("#toasts .toast")).to_contain_text("Saved design.")
    expect(admin_page.locator(".draft-bar")).to_have_count(0)
    assert admin_page.evaluate(STORED_DRAFTS) == ""
    assert dialogs == ["confirm"]


def test_leaving_a_page_with_unsaved_input_requires_confirmation(admin_page: Any, dialogs: list[str]) -> None:
    """A new candidate, a pasted error and the simulation's input are not part of a draft."""
    admin_page.goto("/routes/design/")
    admin_page.fill("#pick", "text-model")
    type_into(admin_page, "#error", "Error: 429 for sk-mine")
    type_into(admin_page, "#sim-message", "Hello")
    admin_page.goto("/services/echo-text/")
    admin_page.goto("/services/echo-vision/")
    assert dialogs == []
    type_into(admin_page, "#id_name", "Echo that sees")
    admin_page.reload()
    assert dialogs == ["beforeunload"]
    admin_page.get_by_role("button", name="Restore").click()
    expect(admin_page.locator("#id_name")).to_have_value("Echo that sees")
    admin_page.locator("[data-discard]").click()
    expect(admin_page.locator("#id_name")).not_to_have_value("Echo that sees")
    admin_page.goto("/services/echo-vision/")
    expect(admin_page.locator(".draft-bar")).to_have_count(0)
    assert dialogs == ["beforeunload"]


def test_restored_draft_of_an_older_version_shows_a_warning(admin_page: Any, dialogs: list[str]) -> None:
    admin_page.expected_complaints.append("409")
    admin_page.goto("/routes/design/")
    type_into(admin_page, "#id_temperature", "0.2")
    row = TaskRoute.objects.get(task_type="design")
    row.retries = 1
    save_route(ADA, row)
    admin_page.goto("/routes/design/")
    expect(admin_page.get_by_text("A newer version has been saved since.")).to_be_visible()
    admin_page.get_by_role("button", name="Restore").click()
    expect(admin_page.locator("#savebar")).to_contain_text("temperature set to 0.2")
    admin_page.click("#save")
    expect(admin_page.get_by_role("heading", name="Both versions")).to_be_visible()
    assert dialogs == ["beforeunload"]


def is_past_comparison(response: Any) -> bool:
    """Return whether the response is the draft's comparison with past requests."""
    return "act=past" in (response.request.post_data or "")


def test_draft_is_preserved_if_the_session_ends_while_saving(admin_page: Any, sign_in: Any, settings: Any) -> None:
    # After this request, the page sends none without a user action.
    with admin_page.expect_response(is_past_comparison):
        admin_page.goto("/routes/design/")
    type_into(admin_page, "#id_temperature", "0.2")
    admin_page.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
    admin_page.locator("#save").dispatch_event("click")  # A real click would move the focus and send another request.
    expect(admin_page).to_have_title("Sign in · routing_admin")
    sign_in(admin_page).goto("/routes/design/")
    expect(admin_page.locator(".draft-bar")).to_be_visible()


def test_rejected_settings_stay_in_the_draft(admin_page: Any, dialogs: list[str]) -> None:
    admin_page.expected_complaints.append("422")
    admin_page.goto("/settings/")
    type_into(admin_page, "#id_request_days", "0")
    admin_page.get_by_role("button", name="Save").click()
    expect(admin_page.locator("#retention .error")).to_be_visible()
    type_into(admin_page, "#id_code", "pt")
    admin_page.goto("/settings/")
    assert dialogs == ["beforeunload"]
    expect(admin_page.locator(".draft-bar")).to_have_count(2)
    admin_page.locator("#settings .draft-bar").get_by_role("button", name="Restore").click()
    expect(admin_page.locator("#savebar")).to_contain_text("Days requests are kept: 0")
    type_into(admin_page, "#id_request_days", "9")
    admin_page.get_by_role("button", name="Save").click()
    expect(admin_page.locator("#toasts .toast")).to_contain_text("Settings saved")
    assert "pt" in admin_page.evaluate(STORED_DRAFTS)
    assert "request_days" not in admin_page.evaluate(STORED_DRAFTS)


def test_secrets_are_not_stored_in_browser_drafts(admin_page: Any, dialogs: list[str]) -> None:
    """The URL of a proxy may contain a password, so it is not stored in the browser either."""
    admin_page.goto("/providers/echo/")
    type_into(admin_page, "#id_display_name", "Echo again")
    admin_page.locator("form[data-draft]").get_by_label("Store a new key, encrypted").check()
    type_into(admin_page, "#id_key", "sk-do-not-keep-me")
    type_into(admin_page, "#id_proxy", "http://ada:do-not-keep-me@proxy.example")
    admin_page.goto("/providers/echo/")
    expect(admin_page.locator(".draft-bar")).to_be_visible()
    stored = admin_page.evaluate(STORED_DRAFTS)
    assert "Echo again" in stored
    assert "do-not-keep-me" not in stored
    assert "csrf" not in stored
    assert dialogs == ["beforeunload"]
