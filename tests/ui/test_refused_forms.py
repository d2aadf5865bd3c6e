"""Rejected forms in a browser: error summary, focus, and the differences without JavaScript."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from capabilities.models import ServiceCapability

pytestmark = [pytest.mark.ui, pytest.mark.django_db(transaction=True, databases=["default", "logs"])]

REFUSED = [
    ("/new/agent/", "#id_agent_id", ""),
    ("/new/service/", "#id_model", ""),
    ("/settings/", "#id_request_days", "-1"),
    ("/users/", "#id_username", ""),
    ("/password/", "#id_old_password", "wrong"),
    ("/providers/openai/", "#id_endpoint", "nowhere"),
]


@pytest.mark.parametrize(("address", "field", "value"), REFUSED)
def test_rejected_form_focuses_the_error_summary(
    admin_page: Any, demo: None, address: str, field: str, value: str
) -> None:
    page = admin_page
    page.expected_complaints.append("422")
    page.goto(address)
    if page.locator(f"dialog {field}").count():
        page.locator(".page-head [popovertarget]").click()
    page.locator(f"#main {field}").fill(value)
    page.locator(f"#main {field}").press("Enter")
    expect(page.locator("#main #problems")).to_be_focused()
    link = page.locator("#problems a").first
    target = link.get_attribute("href")
    link.press("Enter")
    expect(page.locator(str(target))).to_be_focused()


def test_matrix_without_javascript_shows_values_instead_of_switches(
    new_page: Callable[..., Any], sign_in: Callable[[Any], Any], demo: None
) -> None:
    """Switches are not shown, since a click could not save them."""
    page = sign_in(new_page(java_script_enabled=False))
    page.goto("/matrix/")
    cells = page.locator("#grid td:has(> .cell)")
    expect(cells.first).to_be_visible()
    expect(page.locator("#grid td > .cell").first).not_to_be_visible()
    expect(page.locator("#grid noscript p")).to_be_visible()
    assert ServiceCapability.objects.filter(supported=True).exists()


def test_keys_g_and_u_open_the_users_page(admin_page: Any, demo: None) -> None:
    page = admin_page
    page.goto("/")
    page.keyboard.press("g")
    page.keyboard.press("u")
    page.get_by_role("heading", name="Users", exact=True).wait_for()
    expect(page.locator("#nav [aria-current=page]")).to_have_text("Users")
