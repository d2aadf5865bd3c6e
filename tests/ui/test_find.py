"""The Find dialog in a browser: opening, keyboard, screen reader output and navigation."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from routing_admin.models import RequestLog

pytestmark = [
    pytest.mark.ui,
    pytest.mark.django_db(transaction=True, databases=["default", "logs"]),
    pytest.mark.usefixtures("first_start"),
]

FIELD, OPTIONS = "[data-find]", "#option-list [role=option]"


def type_words(page: Any, query: str) -> None:
    """Open Find with its shortcut, type the text, and wait for its results."""
    page.keyboard.press("Control+k")
    page.fill(FIELD, query)
    expect(page.locator("#option-list")).to_have_attribute("data-q", query)


def test_slash_and_ctrl_k_open_find_with_focus_in_the_search_field(admin_page: Any) -> None:
    """Ctrl-K also works within a field, and on pages where the slash key focuses the page's own search field."""
    admin_page.goto("/settings/")
    admin_page.keyboard.press("/")
    expect(admin_page.locator(FIELD)).to_be_focused()
    # Wait, since aborting a pending request would cause a console error.
    expect(admin_page.locator(OPTIONS).first).to_be_attached()
    admin_page.keyboard.press("Escape")
    expect(admin_page.locator("#find")).to_be_hidden()
    admin_page.goto("/requests/")
    admin_page.keyboard.press("/")
    expect(admin_page.locator("#request-q")).to_be_focused()
    admin_page.keyboard.press("/")
    expect(admin_page.locator("#find")).to_be_hidden()
    for shortcut in ("Control+k", "Meta+k"):
        admin_page.locator("#request-q").focus()
        admin_page.keyboard.press(shortcut)
        expect(admin_page.locator(FIELD)).to_be_focused()
        expect(admin_page.locator(OPTIONS).first).to_be_attached()
        admin_page.keyboard.press("Escape")
        expect(admin_page.locator("#find")).to_be_hidden()


def test_empty_find_dialog_shows_hints_and_destinations(admin_page: Any) -> None:
    admin_page.goto("/settings/")
    admin_page.keyboard.press("Control+k")
    expect(admin_page.locator("#options")).to_contain_text("Try a provider")
    expect(admin_page.locator(OPTIONS, has_text="Task routes")).to_be_visible()
    expect(admin_page.locator(OPTIONS, has_text="Add task route")).to_be_attached()


def test_arrow_keys_select_a_find_result_and_enter_opens_the_page(admin_page: Any) -> None:
    admin_page.goto("/settings/")
    type_words(admin_page, "echo-")
    field, options = admin_page.locator(FIELD), admin_page.locator(OPTIONS)
    expect(options.first).to_have_attribute("aria-selected", "true")
    for key, index in [("ArrowDown", 1), ("ArrowUp", 0), ("ArrowUp", -1), ("ArrowDown", 0), ("ArrowDown", 1)]:
        admin_page.keyboard.press(key)
        chosen = options.nth(index)
        expect(chosen).to_have_attribute("aria-selected", "true")
        expect(field).to_have_attribute("aria-activedescendant", chosen.get_attribute("id"))
        expect(admin_page.locator("#option-list [aria-selected=true]")).to_have_count(1)
    address = options.nth(1).get_attribute("href")
    admin_page.keyboard.press("Enter")
    admin_page.wait_for_url(f"**{address}")


def test_enter_waits_for_the_results_of_the_complete_query(admin_page: Any) -> None:
    """Otherwise, if a query is typed fast, Enter could open a result for its first few letters."""
    RequestLog.objects.create(id="req_abcdef0123456789", started_at=timezone.now(), surface="v1", outcome="ok")
    admin_page.goto("/settings/")
    admin_page.keyboard.press("Control+k")
    admin_page.keyboard.type("req_abcdef0123456789")
    admin_page.keyboard.press("Enter")
    admin_page.wait_for_url("**/requests/req_abcdef0123456789/")


def test_find_shows_only_results_of_the_newest_query(admin_page: Any) -> None:
    admin_page.goto("/settings/")
    admin_page.keyboard.press("Control+k")
    for query in ("pro", "provider", "design"):
        admin_page.fill(FIELD, query)
    expect(admin_page.locator("#option-list")).to_have_attribute("data-q", "design")
    expect(admin_page.locator(OPTIONS).first).to_have_attribute("href", "/routes/design/")


def test_find_result_count_is_announced_and_the_dialog_is_accessible(
    admin_page: Any, axe: Callable[[Any], list[str]]
) -> None:
    admin_page.goto("/settings/")
    type_words(admin_page, "exchange")
    expect(admin_page.locator("#announce")).to_have_text(re.compile(r"\d+ found"))
    field = admin_page.get_by_role("combobox", name="Find or go to")
    expect(field).to_have_attribute("aria-controls", "option-list")
    expect(admin_page.get_by_role("listbox", name="Found")).to_be_visible()
    assert axe(admin_page) == []


def test_choosing_an_action_in_find_focuses_but_does_not_press_the_button(admin_page: Any) -> None:
    methods: list[str] = []
    admin_page.on("request", lambda request: methods.append(request.method))
    for start in ("/settings/", "/providers/"):
        admin_page.goto(start)
        type_words(admin_page, "test all providers")
        admin_page.keyboard.press("Enter")
        expect(admin_page.locator("#test-all")).to_be_focused()
        expect(admin_page.locator("#find")).to_be_hidden()
    assert set(methods) == {"GET"}


def test_enter_without_find_results_searches_the_requests(admin_page: Any) -> None:
    admin_page.goto("/settings/")
    type_words(admin_page, "no-such-thing")
    expect(admin_page.locator("#options")).to_contain_text("No match for “no-such-thing”")
    admin_page.keyboard.press("Enter")
    admin_page.wait_for_url("**/requests/?q=no-such-thing")


def test_find_dialog_fits_on_a_phone_and_opens_from_the_top_button(new_page: Callable[..., Any], sign_in: Any) -> None:
    page = sign_in(new_page(width=390, language="zh-Hans"))
    page.goto("/")
    page.locator(".topbar button").click()
    expect(page.locator(FIELD)).to_be_focused()
    page.fill(FIELD, "渠道")
    expect(page.locator(OPTIONS).first).to_have_attribute("href", "/providers/")
    box = page.locator("#find").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    assert page.locator("#find").evaluate("element => element.scrollWidth <= element.clientWidth")


def test_keyboard_help_lists_both_find_shortcuts(admin_page: Any) -> None:
    admin_page.goto("/settings/")
    admin_page.keyboard.press("?")
    expect(admin_page.locator("#help")).to_contain_text("find anything")
    expect(admin_page.locator("#help kbd", has_text="Ctrl").first).to_be_visible()


def test_find_form_opens_a_result_page_without_javascript(new_page: Callable[..., Any], sign_in: Any) -> None:
    page = sign_in(new_page(java_script_enabled=False))
    page.goto("/")
    page.locator(".side .find").click()
    page.fill(FIELD, "design")
    page.press(FIELD, "Enter")
    page.wait_for_url("**/find/?q=design")
    page.locator("#main a[href='/routes/design/']").click()
    expect(page.locator("h1")).to_contain_text("design")
