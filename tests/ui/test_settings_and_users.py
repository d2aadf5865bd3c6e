"""Settings and users in a browser: saving in place, undo, inviting a user, and accepting in another language."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from capabilities.core.permissions import UserRole
from routing_admin.configuration.installation import RetentionSettings, read_retention_settings
from routing_admin.console.people import actions as people
from routing_admin.console.settings import actions as installation
from routing_admin.models import AdminToken, Installation, Language

pytestmark = [
    pytest.mark.ui,
    pytest.mark.django_db(databases=["default", "logs"], transaction=True),
    pytest.mark.usefixtures("first_start"),
]
NEW = "violet umbrella quarterly sonnet"


def test_language_is_added_in_place_and_removed_by_undo(admin_page: Any) -> None:
    admin_page.expected_complaints.append("422")
    admin_page.goto("/settings/")
    admin_page.evaluate("window.sameDocument = true")
    admin_page.fill("#id_code", "not a code")
    admin_page.fill("#id_directive", "Responda em português.")
    admin_page.get_by_role("button", name="Add language").click()
    expect(admin_page.locator("#languages .error")).to_contain_text("A language code has letters")
    expect(admin_page.locator("#id_directive")).to_have_value("Responda em português.")
    admin_page.fill("#id_code", "pt")
    admin_page.press("#id_code", "Enter")
    expect(admin_page.locator("#languages th code", has_text="pt")).to_be_visible()
    assert admin_page.evaluate("window.sameDocument") is True
    admin_page.locator("#toasts .toast").get_by_role("button", name="Undo").click()
    expect(admin_page.locator("#languages th code", has_text="pt")).to_have_count(0)
    assert not Language.objects.exists()


def test_save_bar_names_the_changed_settings_and_ctrl_enter_saves(admin_page: Any) -> None:
    page = admin_page
    page.goto("/settings/")
    bar = page.locator("#savebar")
    expect(bar).not_to_be_visible()
    page.locator("#id_record_bodies").focus()
    page.keyboard.press("Space")
    expect(bar).to_contain_text("1 change")
    page.keyboard.press("Space")
    expect(bar).not_to_be_visible()
    page.keyboard.press("Space")
    page.fill("#id_request_days", "7")
    expect(bar).to_contain_text("2 changes")
    expect(bar).to_contain_text("Days requests are kept: 7")
    page.locator("#environment-head").scroll_into_view_if_needed()
    expect(bar).to_be_in_viewport()
    page.keyboard.press("Control+Enter")
    expect(page.locator("#toasts .toast")).to_contain_text("Settings saved")
    assert (Installation.current().record_bodies, read_retention_settings().request_days) == (True, 7)
    expect(bar).not_to_be_visible()


def test_settings_can_be_saved_without_javascript(new_page: Callable[..., Any], sign_in: Callable[[Any], Any]) -> None:
    page = sign_in(new_page(java_script_enabled=False))
    page.goto("/settings/")
    expect(page.get_by_role("button", name="Save")).to_be_in_viewport()
    page.fill("#id_request_days", "7")
    page.press("#id_request_days", "Enter")
    expect(page.locator("#toasts .toast")).to_contain_text("Settings saved")
    assert read_retention_settings().request_days == 7


def test_conflicting_setting_shows_both_versions(admin_page: Any) -> None:
    admin_page.expected_complaints.append("409")
    admin_page.goto("/settings/")
    installation.set_retention(people.Actor("person", "olga"), RetentionSettings(90))
    admin_page.fill("#id_request_days", "7")
    admin_page.get_by_role("button", name="Save").click()
    expect(admin_page.locator("#settings [role=alert]")).to_contain_text("90")
    expect(admin_page.locator("#id_request_days")).to_have_value("7")
    admin_page.get_by_role("button", name="Save").click()
    expect(admin_page.locator("#toasts .toast")).to_contain_text("Settings saved")
    assert read_retention_settings().request_days == 7


def test_adding_a_language_preserves_unsaved_settings(admin_page: Any) -> None:
    admin_page.goto("/settings/")
    admin_page.select_option("#id_default_language", "en")
    expect(admin_page.locator("#savebar")).to_contain_text("Default language: en")
    admin_page.fill("#id_code", "pt")
    admin_page.fill("#id_directive", "Responda em português.")
    admin_page.get_by_role("button", name="Add language").click()
    expect(admin_page.locator("#languages th code", has_text="pt")).to_be_visible()
    expect(admin_page.locator("#id_default_language")).to_have_value("en")
    admin_page.select_option("#id_default_language", "pt")
    admin_page.get_by_role("button", name="Save").click()
    expect(admin_page.locator("#toasts .toast").last).to_contain_text("Settings saved")
    assert Installation.current().default_language == "pt"


def test_invited_user_can_accept_the_invitation_in_chinese(admin_page: Any, new_page: Callable[..., Any]) -> None:
    admin_page.goto("/settings/")
    admin_page.locator("#main").get_by_role("link", name="Users").click()
    admin_page.get_by_role("button", name="Issue invitation link").click()
    admin_page.fill("#id_username", "王芳")
    admin_page.locator("#invite").get_by_role("button", name="Issue invitation link").click()
    link = admin_page.locator("#link").inner_text()
    invited_page = new_page(language="zh-CN")
    invited_page.goto("/join/" + link.split("/join/")[1])
    invited_page.fill("#id_new_password1", NEW)
    invited_page.fill("#id_new_password2", NEW)
    invited_page.select_option("#id_language", "zh-hans")
    invited_page.click(".btn.primary")
    invited_page.wait_for_url(lambda url: "/join/" not in url)
    invited_page.goto("/users/")
    expect(invited_page.locator("html")).to_have_attribute("lang", "zh-Hans")
    expect(invited_page.locator("#main table")).to_contain_text("王芳")
    expect(invited_page.locator("#main form:not([role=search])")).to_have_count(0)


def test_inviting_works_without_javascript(new_page: Callable[..., Any], sign_in: Callable[[Any], Any]) -> None:
    page = sign_in(new_page(java_script_enabled=False))
    page.goto("/users/")
    page.get_by_role("button", name="Issue invitation link").click()
    page.fill("#id_username", "ines")
    page.locator("#invite").get_by_role("button", name="Issue invitation link").click()
    expect(page.locator("#link")).to_contain_text("/join/")


@pytest.mark.parametrize(("scheme", "width", "language"), [("light", 1280, "en"), ("dark", 390, "zh-CN")])
def test_settings_and_user_pages_pass_axe_and_fit(
    new_page: Callable[..., Any], sign_in: Callable[[Any], Any], axe: Any, scheme: str, width: int, language: str
) -> None:
    user, token = people.invite(people.Actor("person", "admin"), "ines", UserRole.VIEWER)
    page = sign_in(new_page(width=width, scheme=scheme, language=language))
    for path in ("/settings/", "/users/", f"/users/{user.pk}/", "/password/", f"/join/{token}/"):
        page.goto(path)
        assert (path, axe(page)) == (path, [])
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path


def test_double_click_creates_only_one_token_and_the_form_shows_progress(admin_page: Any) -> None:
    admin_page.goto("/tokens/")
    admin_page.get_by_role("button", name="Issue a token").click()
    admin_page.fill("#id_name", "nightly import")
    form = admin_page.locator("form", has=admin_page.locator("#id_name"))
    form.locator("[name=scopes]").first.check()
    # The response replaces the page, but sessionStorage is kept.
    busy = "document.addEventListener('submit', (event) => { sessionStorage.busy = event.target.ariaBusy; })"
    admin_page.evaluate(busy)
    form.locator("button.primary").dblclick()
    expect(admin_page.locator("#issued")).to_be_visible()
    assert admin_page.evaluate("sessionStorage.busy") == "true"
    assert AdminToken.objects.count() == 1


def test_file_field_uses_the_page_language_and_names_the_chosen_file(admin_page: Any) -> None:
    """The label of a native file field would be in the browser's language."""
    page = admin_page
    page.goto("/config/")
    page.set_input_files("#file", [{"name": name, "mimeType": "application/json", "buffer": b"{}"} for name in "ab"])
    assert page.locator("#file + output").inner_text() == "a, b"
    assert page.locator("label", has=page.locator("#file")).inner_text().startswith("Choose files")
