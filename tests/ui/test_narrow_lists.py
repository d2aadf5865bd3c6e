"""Lists and version comparisons on a phone, where a wide page's columns become lines."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from capabilities.actors import Actor
from capabilities.core.translatable import encode_text
from routing_admin.console.routes.actions import save_alias
from routing_admin.models import Alert

pytestmark = [
    pytest.mark.ui,
    pytest.mark.django_db(databases=["default", "logs"], transaction=True),
    pytest.mark.usefixtures("first_start"),
]
ADA = Actor("person", "ada")


@pytest.fixture
def phone(new_page: Callable[..., Any], sign_in: Callable[[Any], Any]) -> Any:
    return sign_in(new_page(390))


def test_version_comparison_is_a_single_column_on_a_phone(phone: Any) -> None:
    for target in ("echo/echo-text", "echo/echo-vision"):
        change = save_alias(ADA, "fast", target)
    assert change.revision
    phone.goto(f"/history/compare/?a={change.revision - 1}&b={change.revision}")
    changed = phone.locator(".diff tr", has=phone.locator(".del")).first
    removed, added = (changed.locator(f"td.{tone}:not(.n)") for tone in ("del", "add"))
    expect(removed).to_contain_text("echo-text")
    expect(added).to_contain_text("echo-vision")
    above, below = removed.bounding_box(), added.bounding_box()
    assert above["x"] == below["x"]
    assert above["y"] < below["y"]
    assert above["width"] > 250
    unchanged = phone.locator(".diff tr:not(:has(.del, .add, [colspan]))").first
    assert unchanged.locator("td:visible").count() == 2


def test_alert_list_on_a_phone_shows_start_time_and_delivery_state(phone: Any) -> None:
    begun = timezone.now() - timedelta(minutes=5)
    Alert.objects.create(
        kind="key_refused",
        subject="echo",
        sentence=encode_text("The provider echo refuses its key (401)."),
        first_seen_at=begun,
        last_seen_at=begun,
        expires_at=begun + timedelta(days=1),
    )
    phone.goto("/alerts/")
    line = phone.get_by_role("row", name="refuses its key")
    expect(line).to_contain_text("Since: 5 minutes ago")
    expect(line).to_contain_text("not sent: no webhook")
    assert line.get_by_role("link", name="refuses").bounding_box()["width"] > 200
    expect(line.get_by_role("button", name="Acknowledge")).to_be_visible()


def test_long_dialog_scrolls_within_the_window(phone: Any) -> None:
    """The dialog lists twenty scopes, which are more than fit on a phone's screen."""
    phone.goto("/tokens/")
    phone.get_by_role("button", name="Issue a token").click()
    dialog = phone.get_by_role("dialog", name="Issue a token")
    expect(dialog.get_by_role("heading")).to_be_in_viewport()
    last = dialog.get_by_role("button", name="Issue a token")
    last.scroll_into_view_if_needed()
    expect(last).to_be_in_viewport()
