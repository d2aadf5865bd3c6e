"""What is typed and not saved: leaving asks, coming back offers it, and no secret is kept."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from capabilities.acts import Actor
from routing_admin.console.routes.actions import save_route
from routing_admin.models import TaskRoute

pytestmark = [
    pytest.mark.ui,
    pytest.mark.django_db(databases=["default", "logs"], transaction=True),
    pytest.mark.usefixtures("first_start"),
]
ADA = Actor("person", "ada")
KEPT = "Object.values(localStorage).join()"


def write(page: Any, field: str, text: str) -> None:
    """Types as a person does: a browser asks nobody who has touched nothing."""
    page.click(field)
    page.fill(field, text)


@pytest.fixture
def asked(admin_page: Any) -> list[str]:
    """The kinds of the questions that the browser asked; each is answered with yes."""
    kinds: list[str] = []

    def accept(dialog: Any) -> None:
        kinds.append(dialog.type)
        dialog.accept()

    admin_page.on("dialog", accept)
    admin_page.expected_complaints.append("never had a user gesture")  # Chromium says so of a page nobody touched
    return kinds


def test_a_route_draft_that_was_left_comes_back(admin_page: Any, asked: list[str]) -> None:
    """The added candidate and the number stand in the draft again; saved once, nothing is offered any more."""
    admin_page.goto("/routes/design/")
    admin_page.select_option("#pick", "service:text-model")
    admin_page.click("#add")
    expect(admin_page.locator("#chain [data-item]")).to_have_count(4)
    admin_page.locator("#id_c-3-temperature").fill("0.3")
    admin_page.locator("#nav").get_by_role("link", name="Requests").click()
    expect(admin_page.locator("h1")).to_have_text("Requests")
    assert asked == ["confirm"]
    admin_page.goto("/routes/design/")
    expect(admin_page.locator(".draft-bar")).to_contain_text("You have an unsaved draft from")
    expect(admin_page.get_by_text("A newer version has been saved since.")).to_be_hidden()
    admin_page.get_by_role("button", name="Bring it back").click()
    expect(admin_page.locator("#chain [data-item]")).to_have_count(4)
    expect(admin_page.locator("#id_c-3-temperature")).to_have_value("0.3")
    admin_page.click("#save")
    expect(admin_page.locator("#toasts .toast")).to_contain_text("Saved design.")
    expect(admin_page.locator(".draft-bar")).to_have_count(0)
    assert admin_page.evaluate(KEPT) == ""
    assert asked == ["confirm"]


def test_closing_a_page_with_something_unsaved_asks(admin_page: Any, asked: list[str]) -> None:
    """A reload does, too; a page on which nothing was typed lets go without a word, and so does Discard.

    What is picked, pasted to be explained or simulated is no part of a draft.
    """
    admin_page.goto("/routes/design/")
    admin_page.select_option("#pick", "service:text-model")
    write(admin_page, "#error", "Error: 429 for sk-mine")
    write(admin_page, "#sim-message", "Hello")
    admin_page.goto("/services/echo-text/")
    admin_page.goto("/services/echo-vision/")
    assert asked == []
    write(admin_page, "#id_name", "Echo that sees")
    admin_page.reload()
    assert asked == ["beforeunload"]
    admin_page.get_by_role("button", name="Bring it back").click()
    expect(admin_page.locator("#id_name")).to_have_value("Echo that sees")
    admin_page.locator("[data-discard]").click()
    expect(admin_page.locator("h1")).to_have_text("Capability matrix")
    admin_page.goto("/services/echo-vision/")
    expect(admin_page.locator(".draft-bar")).to_have_count(0)
    assert asked == ["beforeunload"]


def test_a_draft_of_an_older_version_says_so(admin_page: Any, asked: list[str]) -> None:
    """Brought back it is still of its version, so saving shows both."""
    admin_page.expected_complaints.append("409")
    admin_page.goto("/routes/design/")
    write(admin_page, "#id_temperature", "0.2")
    row = TaskRoute.objects.get(task_type="design")
    row.retries = 1
    save_route(ADA, row)
    admin_page.goto("/routes/design/")
    expect(admin_page.get_by_text("A newer version has been saved since.")).to_be_visible()
    admin_page.get_by_role("button", name="Bring it back").click()
    expect(admin_page.locator("#savebar")).to_contain_text("temperature set to 0.2")
    admin_page.click("#save")
    expect(admin_page.get_by_role("heading", name="Both versions")).to_be_visible()
    assert asked == ["beforeunload"]


def asks_the_past(response: Any) -> bool:
    """Whether the page asked what the draft would have changed."""
    return "act=past" in (response.request.post_data or "")


def test_a_draft_survives_a_session_that_ended_while_saving(admin_page: Any, sign_in: Any, settings: Any) -> None:
    """After signing in again it is offered."""
    with admin_page.expect_response(asks_the_past):  # the last thing that the page asks by itself
        admin_page.goto("/routes/design/")
    write(admin_page, "#id_temperature", "0.2")
    admin_page.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
    admin_page.locator("#save").dispatch_event("click")  # the field keeps the focus, so that nothing else is asked
    expect(admin_page).to_have_title("Sign in · routing_admin")
    sign_in(admin_page).goto("/routes/design/")
    expect(admin_page.locator(".draft-bar")).to_be_visible()


def test_settings_keep_a_draft_until_their_part_is_saved(admin_page: Any, asked: list[str]) -> None:
    """What is refused stays unsaved; saving one part leaves the draft of another alone."""
    admin_page.expected_complaints.append("422")
    admin_page.goto("/settings/")
    write(admin_page, "#id_request_days", "0")
    admin_page.locator("#retention").get_by_role("button", name="Save").click()
    expect(admin_page.locator("#retention .error")).to_be_visible()
    write(admin_page, "#id_code", "pt")
    admin_page.reload()
    assert asked == ["beforeunload"]
    expect(admin_page.locator(".draft-bar")).to_have_count(2)
    admin_page.locator("#retention .draft-bar").get_by_role("button", name="Discard").click()
    write(admin_page, "#id_request_days", "9")
    admin_page.locator("#retention").get_by_role("button", name="Save").click()
    expect(admin_page.locator("#toasts .toast")).to_contain_text("Retention saved")
    assert "pt" in admin_page.evaluate(KEPT)
    assert "request_days" not in admin_page.evaluate(KEPT)


def test_no_secret_is_kept_in_the_browser(admin_page: Any, asked: list[str]) -> None:
    """Neither a key nor a proxy's address, which may hold a password, nor the page's own token."""
    admin_page.goto("/providers/echo/")
    write(admin_page, "#id_display_name", "Echo again")
    admin_page.locator("form[data-draft]").get_by_label("Store a new key, encrypted").check()
    write(admin_page, "#id_key", "sk-do-not-keep-me")
    write(admin_page, "#id_proxy", "http://ada:do-not-keep-me@proxy.example")
    admin_page.goto("/providers/echo/")
    expect(admin_page.locator(".draft-bar")).to_be_visible()
    kept = admin_page.evaluate(KEPT)
    assert "Echo again" in kept
    assert "do-not-keep-me" not in kept
    assert "csrf" not in kept
    assert asked == ["beforeunload"]
