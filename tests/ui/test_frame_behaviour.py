"""The frame (the layout that all pages share) in a browser: toasts, shortcuts, themes, uploads, matrix, sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from playwright.sync_api import expect

pytestmark = [
    pytest.mark.ui,
    pytest.mark.urls("frame_urls"),
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("gallery"),
]
COMPOSE = """(box) => {
  const how = {key: "Enter", bubbles: true, cancelable: true, isComposing: true};
  box.focus();
  box.value = "ni";
  box.dispatchEvent(new InputEvent("input", {bubbles: true, isComposing: true}));
  box.dispatchEvent(new KeyboardEvent("keydown", how));
}"""


def test_signing_in_opens_the_requested_page(page: Any, admin_account: Any) -> None:
    page.goto("/requests/")
    page.fill("#id_username", "admin")
    page.fill("#id_password", "correct horse battery staple")
    page.press("#id_password", "Enter")
    expect(page.locator("h1")).to_have_text("Requests")


def test_wrong_password_shows_one_error_and_keeps_the_user_name(page: Any, admin_account: Any) -> None:
    page.goto("/login/")
    page.fill("#id_username", "admin")
    page.fill("#id_password", "wrong")
    page.press("#id_password", "Enter")
    expect(page.get_by_role("alert")).to_have_count(1)
    expect(page.locator("#id_username")).to_have_value("admin")
    expect(page.locator("#id_password")).to_be_focused()


def test_toast_of_an_htmx_change_has_an_undo_button_that_posts_the_revision(admin_page: Any) -> None:
    admin_page.goto("/dashboard/")
    admin_page.click("#flash")
    toast = admin_page.locator("#toasts .toast")
    expect(toast).to_contain_text("3 个工件已删除")
    toast.get_by_role("button", name="Undo").click()
    expect(admin_page.locator("#toasts .toast")).to_contain_text("Back to revision 40")
    assert admin_page.url.endswith("/dashboard/")


def test_navigation_replaces_and_focuses_only_the_content(admin_page: Any) -> None:
    admin_page.goto("/dashboard/")
    admin_page.evaluate("window.sameDocument = true")
    admin_page.click("#nav >> text=Requests")
    expect(admin_page.locator("#main h1")).to_have_text("Requests")
    expect(admin_page.locator("#main")).to_be_focused()
    expect(admin_page.locator("#nav [aria-current]")).to_have_text("Requests")
    assert admin_page.evaluate("window.sameDocument") is True
    assert admin_page.title() == "Requests · routing_admin"
    admin_page.go_back()
    expect(admin_page.locator("#main h1")).to_have_text("Components")


def test_keyboard_shortcuts_open_search_help_and_pages_except_while_typing(admin_page: Any) -> None:
    admin_page.goto("/dashboard/")
    admin_page.keyboard.press("?")
    expect(admin_page.locator("#help")).to_be_visible()
    admin_page.keyboard.press("Escape")
    admin_page.keyboard.press("/")
    expect(admin_page.locator("[data-find]")).to_be_focused()
    admin_page.keyboard.type("g r?")
    expect(admin_page.locator("#help")).to_be_hidden()
    admin_page.keyboard.press("Escape")
    # Wait for the focus. It moves in the animation frame after hiding.
    admin_page.wait_for_function("() => document.activeElement === document.body")
    admin_page.keyboard.press("g")
    admin_page.keyboard.press("r")
    expect(admin_page.locator("#main h1")).to_have_text("Requests")
    admin_page.keyboard.press("/")
    expect(admin_page.locator("#q")).to_be_focused()


def test_search_is_not_sent_during_input_method_composition(admin_page: Any) -> None:
    admin_page.clock.install()
    admin_page.goto("/requests/")
    box = admin_page.locator("#q")
    urls: list[str] = []
    admin_page.on("request", lambda request: urls.append(request.url) if "/echo/" in request.url else None)
    box.evaluate(COMPOSE)
    admin_page.clock.run_for(200)
    assert urls == []
    box.evaluate(
        """(box) => { box.value = "你"; box.dispatchEvent(new CompositionEvent("compositionend", {bubbles: true})); }"""
    )
    expect(admin_page.locator("#found")).to_have_text("你")


def test_theme_change_applies_immediately_and_without_a_flash_on_the_next_page(admin_page: Any) -> None:
    """The server renders the next page with the theme, so it does not flash."""
    admin_page.goto("/dashboard/")
    admin_page.click("summary[aria-label='Account, language and theme']")
    with admin_page.expect_response("**/theme/"):
        admin_page.click("text=Dark")
    expect(admin_page.locator("html")).to_have_attribute("data-theme", "dark")
    admin_page.reload()
    assert admin_page.get_attribute("html", "data-theme") == "dark"


def test_switching_the_language_stays_on_the_page(admin_page: Any) -> None:
    admin_page.goto("/requests/")
    admin_page.click("summary[aria-label='Account, language and theme']")
    admin_page.click("text=简体中文")
    expect(admin_page.locator("html")).to_have_attribute("lang", "zh-Hans")
    expect(admin_page.locator(".skip")).to_have_text("跳到正文")
    assert admin_page.url.endswith("/requests/")


def test_arrow_keys_move_in_the_matrix_and_a_rejected_switch_reverts(admin_page: Any) -> None:
    admin_page.expected_complaints.append("503")
    admin_page.goto("/dashboard/")
    admin_page.focus("#xt")
    for key in ["ArrowDown", "ArrowRight", "End", "ArrowUp"]:
        admin_page.keyboard.press(key)
    expect(admin_page.locator("#xa")).to_be_focused()
    assert admin_page.locator("[data-grid] [tabindex='0']").count() == 1
    with admin_page.expect_response("**/refuse/**"):
        admin_page.keyboard.press("Space")
    expect(admin_page.locator("#toasts .toast")).to_contain_text("(503)")
    expect(admin_page.locator("#xa")).not_to_be_checked()
    admin_page.keyboard.press("Home")
    expect(admin_page.locator("[data-grid] a").first).to_be_focused()


def test_failed_action_shows_a_toast_with_the_request_id(admin_page: Any) -> None:
    admin_page.expected_complaints.append("500")
    admin_page.goto("/dashboard/")
    admin_page.click("#fails")
    expect(admin_page.locator("#toasts .toast")).to_contain_text("Not done: the server returned an error (500) · req_")


def test_try_again_button_repeats_the_request_after_a_lost_connection(admin_page: Any) -> None:
    admin_page.expected_complaints += ["ERR_INTERNET_DISCONNECTED", "htmx:sendError"]
    admin_page.goto("/dashboard/")
    admin_page.context.set_offline(True)
    admin_page.click("#lost")
    toast = admin_page.locator("#toasts .toast")
    expect(toast).to_contain_text("Not saved: the connection was lost")
    admin_page.context.set_offline(False)
    with admin_page.expect_response("**/echo/**") as answer:
        toast.get_by_role("button", name="Try again").click()
    assert answer.value.status == 200


def test_ended_session_redirects_the_whole_page_to_sign_in(admin_page: Any) -> None:
    admin_page.goto("/dashboard/")
    Session.objects.all().delete()
    admin_page.click("#flash")
    admin_page.wait_for_url("**/login/?next=/dashboard/")


def test_each_uploaded_file_has_a_row_with_a_link_or_an_error(admin_page: Any) -> None:
    admin_page.expected_complaints.append("422")
    admin_page.goto("/dashboard/")
    files = [{"name": name, "mimeType": "text/plain", "buffer": b"x" * 70000} for name in ["a.txt", "b.exe"]]
    admin_page.set_input_files("[data-upload] input[type=file]", files)
    rows = admin_page.locator("[data-upload-list] li")
    expect(rows.nth(0)).to_contain_text("Stored")
    expect(rows.nth(0).get_by_role("link", name="a.txt")).to_have_attribute("href", "/requests/?a.txt=70000")
    expect(rows.nth(1)).to_contain_text("No programs here")


def test_file_above_the_size_limit_is_rejected_without_a_request(admin_page: Any) -> None:
    admin_page.goto("/dashboard/")
    urls: list[str] = []
    admin_page.on("request", lambda request: urls.append(request.url) if "/upload/" in request.url else None)
    admin_page.eval_on_selector("[data-upload]", "form => { form.dataset.maxBytes = '10'; }")
    file = {"name": "big.bin", "mimeType": "", "buffer": b"x" * 2000000}
    admin_page.set_input_files("[data-upload] input[type=file]", [file])
    expect(admin_page.locator("[data-upload-list] li")).to_contain_text("1.9 MB is over the limit of 25.0 MB")
    assert urls == []


def test_copy_button_copies_the_text_of_the_code_block(admin_page: Any) -> None:
    admin_page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    admin_page.goto("/dashboard/")
    admin_page.click("[data-copy=payload]")
    expect(admin_page.locator("#toasts .toast")).to_contain_text("Copied")
    assert '"content": "你好"' in admin_page.evaluate("navigator.clipboard.readText()")


def test_cancelling_a_confirmation_dialog_returns_the_focus_to_the_button(admin_page: Any) -> None:
    admin_page.goto("/dashboard/")
    opener = admin_page.get_by_role("button", name="Revoke key").first
    opener.click()
    expect(admin_page.locator("#revoke")).to_be_visible()
    expect(admin_page.locator("#revoke").get_by_role("button", name="Cancel")).to_be_focused()
    admin_page.keyboard.press("Escape")
    expect(opener).to_be_focused()


def test_navigation_theme_dialogs_and_toasts_work_without_javascript(
    new_page: Callable[..., Any], sign_in: Callable[[Any], Any]
) -> None:
    """Navigation, theme, dialogs and toasts are built from HTML elements that need no JavaScript."""
    page = sign_in(new_page(java_script_enabled=False))
    page.goto("/flash/")
    expect(page.locator("#toasts .toast")).to_contain_text("3 个工件已删除")
    page.locator("#toasts").get_by_role("button", name="Undo").click()
    expect(page.locator("#toasts .toast")).to_contain_text("Back to revision 40")
    page.click("summary[aria-label='Account, language and theme']")
    page.click("text=Dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.click("#nav >> text=Dashboard")
    page.get_by_role("button", name="Revoke key").first.click()
    expect(page.locator("#revoke")).to_be_visible()
    assert page.locator("[data-copy]").first.is_hidden()


def test_more_button_opens_the_navigation_on_narrow_screens(
    new_page: Callable[..., Any], sign_in: Callable[[Any], Any], shot: Callable[[Any, str], Any]
) -> None:
    page = sign_in(new_page(390))
    page.goto("/dashboard/")
    page.get_by_role("button", name="More").click()
    expect(page.locator("#side")).to_be_visible()
    page.click("#side summary")
    shot(page, "drawer")
    page.click("#nav >> text=Task routes")
    expect(page.locator("#main h1")).to_have_text("Requests")
    expect(page.locator("#side")).to_be_hidden()
