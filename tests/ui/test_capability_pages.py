"""The pages about providers, services and agents in a browser. test_every_page.py checks their accessibility."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [
    pytest.mark.ui,
    pytest.mark.django_db(transaction=True, databases=["default", "logs"]),
    pytest.mark.usefixtures("demo"),
]


def test_matrix_switch_is_saved_by_keyboard_and_undone_from_the_toast(admin_page: Any) -> None:
    admin_page.goto("/matrix/")
    admin_page.locator("tbody tr:first-child .cell").first.focus()
    admin_page.keyboard.press("ArrowRight")
    admin_page.keyboard.press("Space")
    admin_page.get_by_text("text-model now reads vision").wait_for()
    assert admin_page.evaluate("document.activeElement.getAttribute('aria-label')") == (
        "text-model reads vision, declared"
    )
    admin_page.keyboard.press("ArrowRight")
    assert "audio" in admin_page.evaluate("document.activeElement.getAttribute('aria-label')")
    admin_page.get_by_role("button", name="Undo").click()
    admin_page.get_by_text("Undone:").wait_for()
    assert not admin_page.get_by_label("text-model reads vision, declared").is_checked()


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_saving_a_service_stores_switches_and_fields_together(
    new_page: Callable[..., Any], sign_in: Callable[[Any], Any], scripts: bool
) -> None:
    page = sign_in(new_page(java_script_enabled=scripts))
    page.goto("/services/vision-model/")
    page.get_by_role("switch", name="Audio").focus()
    page.keyboard.press("Space")
    page.get_by_label("Description").fill("Sees and hears.")
    assert page.get_by_role("button", name="Save").count() == 1
    page.get_by_role("button", name="Save").focus()
    page.keyboard.press("Enter")
    page.get_by_text("vision-model saved").wait_for()
    assert page.get_by_role("switch", name="Audio").is_checked()
    assert page.get_by_label("Description").input_value() == "Sees and hears."


def test_rejected_save_of_a_service_keeps_every_value(
    new_page: Callable[..., Any], sign_in: Callable[[Any], Any]
) -> None:
    page = sign_in(new_page())
    page.expected_complaints.append("422")
    page.goto("/services/vision-model/")
    page.get_by_role("switch", name="Audio").check()
    page.get_by_label("Another capability").fill("smell")
    page.get_by_text("Edit limits").click()
    page.get_by_label("Custom limits (JSON)").fill("{")
    page.get_by_role("button", name="Save").click()
    page.locator(".error", has_text="This is not JSON").wait_for()
    assert page.get_by_role("switch", name="Audio").is_checked()
    assert page.get_by_label("Another capability").input_value() == "smell"


def test_matrix_scrolls_with_the_page_below_a_fixed_header(admin_page: Any) -> None:
    for width in (390, 1280):
        admin_page.set_viewport_size({"width": width, "height": 500})
        admin_page.goto("/matrix/")
        grid = admin_page.locator("[data-grid]")
        grid.locator("tbody tr").last.scroll_into_view_if_needed()
        admin_page.mouse.wheel(0, 2000)
        admin_page.wait_for_function("() => scrollY > 200")
        assert admin_page.evaluate("document.documentElement.scrollWidth") <= width
        assert grid.locator("thead th").last.evaluate("head => head.getBoundingClientRect().top >= 0")
        assert grid.evaluate("table => getComputedStyle(table.parentElement).overflowY") == "visible"


def test_matrix_column_is_switched_from_the_heading(admin_page: Any) -> None:
    admin_page.goto("/matrix/?provider=echo")
    admin_page.get_by_role("button", name="Actions for the column: reads audio").click()
    admin_page.get_by_role("button", name="All on").click()
    admin_page.get_by_text("3 switches set").wait_for()
    assert admin_page.get_by_label("echo-text reads audio, declared").is_checked()


def test_provider_can_be_added_together_with_models(admin_page: Any) -> None:
    admin_page.goto("/providers/")
    admin_page.get_by_role("link", name="Add provider").click()
    admin_page.get_by_role("link", name="Another address").click()
    admin_page.get_by_label("Name", exact=True).fill("second-echo")
    admin_page.get_by_label("Base URL").fill("echo://local")
    admin_page.get_by_label("Protocol").select_option("echo")
    admin_page.get_by_label("Default model").fill("echo-text")
    admin_page.get_by_label("New key", exact=True).fill("NOT_NEEDED")
    admin_page.get_by_role("button", name="Add", exact=True).click()
    admin_page.get_by_role("button", name="Test connection").click()
    admin_page.get_by_text("second-echo answered in").wait_for()
    admin_page.get_by_role("button", name="Fetch models").click()
    admin_page.get_by_label("echo-vision", exact=True).check()
    admin_page.get_by_role("button", name="Add 1").click()
    admin_page.get_by_role("rowheader", name="second-echo-echo-vision").wait_for()


def test_issued_key_is_shown_until_the_page_is_reloaded(admin_page: Any) -> None:
    admin_page.goto("/agents/vision-agent/")
    admin_page.get_by_role("button", name="Issue a key").first.click()
    admin_page.get_by_label("Purpose").fill("staging")
    admin_page.locator("#issue").get_by_role("button", name="Issue a key").click()
    key = admin_page.locator("#issued").inner_text()
    assert key.startswith("ra_")
    admin_page.get_by_role("button", name="Copy key").click()
    admin_page.get_by_text("Copied").wait_for()
    admin_page.reload()
    assert key not in admin_page.content()
    assert admin_page.get_by_text(key[:11]).count() >= 1
    admin_page.get_by_role("button", name="Revoke").first.click()
    admin_page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    admin_page.get_by_text("is revoked and no longer works").wait_for()


def test_provider_can_be_saved_without_javascript(new_page: Callable[..., Any], sign_in: Callable[[Any], Any]) -> None:
    page = sign_in(new_page(java_script_enabled=False))
    page.expected_complaints.append("422")
    page.goto("/providers/openai/")
    page.get_by_label("Base URL").fill("api.openai.com")
    page.get_by_role("button", name="Save").click()
    page.locator(".error", has_text="Must begin with https:// or http://").wait_for()
    page.get_by_label("Base URL").fill("https://api.openai.com/v1")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("openai saved").wait_for()


def test_ctrl_z_in_the_matrix_undoes_the_newest_change(admin_page: Any) -> None:
    admin_page.goto("/matrix/")
    name = "text-model reads audio, declared"
    admin_page.get_by_label(name).check()
    admin_page.get_by_text("text-model now reads").wait_for()
    admin_page.get_by_label(name).press("Control+z")
    admin_page.get_by_text("Undone:").wait_for()
    assert not admin_page.get_by_label(name).is_checked()


def test_matrix_row_is_probed_from_the_row_menu(admin_page: Any) -> None:
    admin_page.goto("/matrix/?provider=echo")
    admin_page.get_by_role("button", name="Actions for echo-vision").click()
    admin_page.get_by_role("button", name="Probe", exact=True).click()
    admin_page.get_by_text("echo-vision reads:").wait_for()
    assert not admin_page.locator("#menu").is_visible()
