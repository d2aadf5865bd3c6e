"""What the log says about a change, in a browser: a draft compared with past requests, and a revision's effect."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from capabilities.actors import Actor
from routing_admin.console.routes.actions import save_route
from routing_admin.core.configuration.specs import CandidateSpec
from routing_admin.models import AttemptLog, RequestLog, Revision, TaskRoute

pytestmark = [
    pytest.mark.ui,
    pytest.mark.django_db(databases=["default", "logs"], transaction=True),
    pytest.mark.usefixtures("first_start"),
]
ADA = Actor("person", "ada")
PICTURE = {
    "message": 0,
    "part": 1,
    "kind": "image",
    "filename": "plan.png",
    "artifactId": None,
    "mimeType": "image/png",
    "size": 500,
    "outcome": "native",
    "reason": "fits",
    "sentence": {"code": "…", "facts": {}},
}


def log_requests(count: int) -> None:
    """Log requests with an image to the route `design`. The first model failed, and the second one answered."""
    for number in range(count):
        started_at = timezone.now() - timedelta(minutes=number)
        values = {"task_type": "design", "surface": "v1", "outcome": "ok", "started_at": started_at, "fell_back": True}
        row = RequestLog.objects.create(id=f"played-{number}", provider="echo", model="echo-vision", **values)
        for position, (model, outcome, status) in enumerate(
            (("echo-503", "http_503", 503), ("echo-vision", "ok", 200))
        ):
            columns = {"provider": "echo", "model": model, "outcome": outcome, "status": status, "at": started_at}
            AttemptLog.objects.create(request=row, position=position, deliveries=[PICTURE], **columns)


def test_draft_is_compared_with_requests_of_the_last_24_hours(admin_page: Any) -> None:
    log_requests(12)
    admin_page.goto("/routes/design/")
    past = admin_page.locator("#past")
    expect(past).to_contain_text("12 requests used this route in the last 24 hours.")
    admin_page.locator("#up-2").press("Enter")
    expect(past).to_contain_text("12 go to echo/echo-vision first")
    expect(past).to_contain_text("12 fewer fall back")
    expect(admin_page.locator("#down-2")).to_be_focused()
    admin_page.click("#drop-2")
    expect(admin_page.locator("#chain [data-item]")).to_have_count(2)
    admin_page.locator("#pick").fill("typed meanwhile")
    expect(past).to_contain_text("Not known: 12 would reach echo/echo-text, which was not called for them then")
    past.locator("summary").first.click()
    expect(past.locator("details[open] tbody tr")).to_have_count(10)
    expect(past.locator("details[open]")).to_contain_text("and 2 more")
    assert past.locator("details[open] tbody a").first.get_attribute("href") == "/requests/played-0/"
    assert admin_page.locator("#pick").input_value() == "typed meanwhile"


def test_draft_comparison_of_an_unused_route_shows_a_placeholder(admin_page: Any) -> None:
    admin_page.goto("/routes/design/")
    expect(admin_page.locator("#past")).to_contain_text("No request used this route in the last 24 hours.")
    admin_page.goto("/routes/new/?task_type=painting")
    expect(admin_page.locator("#past")).to_contain_text("No request asked for this task type in the last 24 hours.")


@pytest.mark.parametrize(("width", "scheme", "language"), [(1280, "light", "en"), (390, "dark", "zh-CN")])
def test_draft_comparison_passes_axe_and_fits(
    new_page: Callable[..., Any], sign_in: Callable[[Any], Any], axe: Any, width: int, scheme: str, language: str
) -> None:
    log_requests(3)
    page = sign_in(new_page(width=width, scheme=scheme, language=language))
    page.goto("/routes/design/")
    page.locator("#up-3").press("Enter")
    page.locator("#past details").first.wait_for()
    for summary in page.locator("#past summary").all():
        summary.click()
    assert axe(page) == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") == 0


def test_history_marks_a_harmful_revision_and_offers_undo(admin_page: Any, axe: Any) -> None:
    save_route(ADA, TaskRoute.objects.get(task_type="design"), [CandidateSpec("echo", "echo-503")])
    row = Revision.objects.latest("number")
    moment = timezone.now() - timedelta(hours=1)
    Revision.objects.filter(number=row.number).update(created_at=moment)
    # All 40 requests before the revision were answered, and all 40 requests since then have failed.
    for number in range(80):
        outcome, started_at = ("ok", moment - timedelta(minutes=1)) if number < 40 else ("http_503", moment)
        values = {"task_type": "design", "surface": "v1", "duration_ms": 100, "revision": row.number - (number < 40)}
        RequestLog.objects.create(id=f"around-{number}", outcome=outcome, started_at=started_at, **values)
    admin_page.goto("/history/")
    line = admin_page.locator(f"#revision-{row.number}")
    expect(line).to_contain_text("failed 0 % → 100 %")
    line.locator("a.badge").click()
    card = admin_page.locator("section", has=admin_page.locator("#effect"))
    expect(card).to_contain_text("40 before, 40 after")
    expect(card.locator(".badge.warn")).to_contain_text("worse")
    assert axe(admin_page) == []
    card.get_by_role("button", name="Undo this revision").click()
    expect(admin_page.locator("#toasts .toast")).to_contain_text("Undone")
    assert TaskRoute.objects.get(task_type="design").candidates.count() == 3


@pytest.mark.parametrize(("width", "scheme", "language"), [(390, "dark", "zh-CN")])
def test_revision_effect_passes_axe_and_fits_a_phone(
    new_page: Callable[..., Any], sign_in: Callable[[Any], Any], axe: Any, width: int, scheme: str, language: str
) -> None:
    save_route(ADA, TaskRoute.objects.get(task_type="design"), [CandidateSpec("echo", "echo-503")])
    number = Revision.objects.latest("number").number
    page = sign_in(new_page(width=width, scheme=scheme, language=language))
    page.goto(f"/history/{number}/")
    expect(page.locator("main")).to_contain_text("太少，无法判断。")
    assert axe(page) == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") == 0
