"""A fire drill in a browser: start, countdown on every page, end, and results."""

from __future__ import annotations

import re
from typing import Any

import pytest

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "logs"]),
    pytest.mark.usefixtures("first_start"),
]


def test_drill_countdown_is_shown_on_every_page_with_a_button_to_end_the_drill(admin_page: Any) -> None:
    page = admin_page
    page.goto("/providers/echo/")
    page.get_by_role("link", name="Fire drill").click()
    page.get_by_label("30 s").check()
    page.get_by_role("button", name="Start the drill").click()
    banner = page.locator("#drill")
    # A few seconds after the start, the countdown has advanced without a reload.
    page.locator("#drill [role=timer]", has_text=re.compile("2[0-7] s left")).wait_for()
    page.locator("#nav a", has_text="Task routes").click()
    page.locator("#list-title").wait_for()
    assert "echo fails on purpose." in banner.inner_text()
    banner.get_by_role("button", name="End now").click()
    page.locator("#drills li").wait_for()
    assert "No call was affected." in page.locator("#drills").inner_text()
    assert banner.inner_text().strip() == ""


def test_provider_page_shows_the_results_of_drills(admin_page: Any) -> None:
    page = admin_page
    with page.expect_response("**/drill/"):
        page.goto("/providers/echo/")
    assert page.locator("#drills").count() == 0
    page.goto("/providers/echo/drill/")
    page.get_by_role("button", name="Start the drill").click()
    page.locator("#drill-end").click()
    page.goto("/providers/echo/")
    page.locator("#drills li").wait_for()
