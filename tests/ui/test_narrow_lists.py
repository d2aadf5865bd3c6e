"""Differences and lists on a phone: what a wide page shows in columns is read in lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from capabilities.acts import Actor
from routing_admin.console.routes.actions import save_alias

pytestmark = [
    pytest.mark.ui,
    pytest.mark.django_db(databases=["default", "logs"], transaction=True),
    pytest.mark.usefixtures("first_start"),
]
ADA = Actor("person", "ada")


@pytest.fixture
def phone(new_page: Callable[..., Any], sign_in: Callable[[Any], Any]) -> Any:
    return sign_in(new_page(390))


def test_a_difference_is_one_column_of_lines_on_a_phone(phone: Any) -> None:
    """Removed and added lines follow one another over the whole width, and an unchanged line appears once."""
    for target in ("echo/echo-text", "echo/echo-vision"):
        change = save_alias(ADA, "fast", target)
    assert change.revision
    phone.goto(f"/history/compare/?a={change.revision - 1}&b={change.revision}")
    changed = phone.locator(".diff tr", has=phone.locator(".del")).first
    removed, added = (changed.locator(f"td.{tone}:not(.n)") for tone in ("del", "add"))
    expect(removed).to_contain_text("echo-text")
    expect(added).to_contain_text("echo-vision")
    above, below = removed.bounding_box(), added.bounding_box()
    assert above["x"] == below["x"] and above["y"] < below["y"]
    assert above["width"] > 250
    unchanged = phone.locator(".diff tr:not(:has(.del, .add, [colspan]))").first
    assert unchanged.locator("td:visible").count() == 2
