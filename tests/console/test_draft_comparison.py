"""Comparing a route's draft with the requests from the last 24 hours, using only the log and calling no provider."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from routing_admin.console.routes import retrospect
from routing_admin.models import AttemptLog, RequestLog
from routing_admin.platform.databases.router import LOGS
from tests.console.page import Page
from tests.console.test_routes import design, draft
from tests.console.visits import count_queries

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
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


def log_request(
    key: str, *attempts: tuple[str, str], at: datetime | None = None, picture: bool = False, **columns: Any
) -> None:
    """Log a request to the route `design`, with one attempt on `echo` for each pair of model and outcome."""
    started_at = at or timezone.now()
    values = {"task_type": "design", "surface": "v1", "outcome": "ok", "started_at": started_at, **columns}
    row = RequestLog.objects.create(id=key, **values)
    for position, (model, outcome) in enumerate(attempts):
        status = 200 if outcome == "ok" else 503
        attempt_columns = {"provider": "echo", "model": model, "outcome": outcome, "status": status, "at": started_at}
        AttemptLog.objects.create(
            request=row, position=position, deliveries=[PICTURE] if picture else [], **attempt_columns
        )


def post_comparison(admin: Client, data: dict[str, Any], task_type: str = "design") -> Any:
    return admin.post(reverse("route", args=[task_type]), {**data, "act": "past"})


def row_texts(answer: Any) -> list[str]:
    """Return the texts of the badges in the comparison."""
    comparison = Page(answer).region("Against the last 24 hours")
    badges = (control for control in comparison.controls if "badge" in (control.attributes.get("class") or "").split())
    return [badge.text for badge in badges]


def test_draft_comparison_counts_the_effect_on_past_requests(admin: Client, demo: None) -> None:
    log_request("r1", ("echo-503", "http_503"), ("echo-vision", "http_503"), ("echo-text", "ok"), picture=True)
    log_request("r2", ("echo-503", "http_503"), ("echo-vision", "ok"), picture=True)
    answer = post_comparison(admin, design(2, 1, 3))
    assert row_texts(answer) == ["2 go to echo/echo-vision first", "1 fewer falls back"]
    page = Page(answer)
    assert page.shows("2 requests used this route in the last 24 hours.")
    assert reverse("request", args=["r2"]) in page.link_urls
    assert not page.is_document
    answer = post_comparison(admin, design(3, 1, 2))
    assert row_texts(answer) == [
        "1 now has its image only described",
        "2 go to echo/echo-text first",
        "Not known: 1 would reach echo/echo-text, which was not called then",
        "1 fewer falls back",
    ]
    comparison = Page(answer).region("Against the last 24 hours")
    (example,) = comparison.disclosure("1 now has its image only described").table_rows
    assert example.shows("plan.png")
    assert example.shows("echo/echo-vision: As it is")
    assert comparison.disclosure("Not known: 1 would reach").shows(
        "echo/echo-text answered 100% of its calls in these 24 hours (1)."
    )


def test_draft_comparison_ignores_older_requests_and_requests_to_other_routes(admin: Client, demo: None) -> None:
    log_request("old", ("echo-503", "http_503"), ("echo-vision", "ok"), at=timezone.now() - timedelta(hours=25))
    log_request("other", ("echo-text", "ok"), task_type="planning")
    answer = post_comparison(admin, design(2, 1, 3))
    assert Page(answer).shows("No request used this route in the last 24 hours.")
    log_request("refused", outcome="budget")
    log_request("new", ("echo-503", "http_503"), ("echo-vision", "ok"))
    page = Page(post_comparison(admin, design(2, 1, 3)))
    assert page.shows("2 requests used this route")
    assert page.shows("Based on the newest 1 that reached a model.")


def test_comparison_of_an_unchanged_draft_shows_the_number_of_requests(admin: Client, demo: None) -> None:
    log_request("r1", ("echo-503", "http_503"), ("echo-vision", "ok"))
    assert Page(post_comparison(admin, design())).shows("Change the draft")
    assert Page(post_comparison(admin, design(temperature="0.3"))).shows("nothing would have changed")


def test_draft_comparison_examines_only_the_newest_requests_and_shows_the_total(
    admin: Client, demo: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the newest requests are compared, so that a busy day costs no more than a quiet one."""
    monkeypatch.setattr(retrospect, "MAX_REQUESTS", 2)
    monkeypatch.setattr(retrospect, "MAX_COUNTED", 3)
    for number in range(5):
        log_request(f"r{number}", ("echo-503", "http_503"), ("echo-vision", "ok"))
    answer = post_comparison(admin, design(2, 1, 3))
    page = Page(answer)
    assert page.shows("More than 3 requests used this route")
    assert page.shows("Based on the newest 2 that reached")
    assert row_texts(answer) == ["2 go to echo/echo-vision first", "2 fewer fall back"]


def test_new_route_is_compared_with_requests_for_its_task_type_answered_by_default(admin: Client, demo: None) -> None:
    for number in range(3):
        log_request(f"r{number}", ("echo-text", "ok"), task_type="default", matched=False, asked_model="task:painting")
    log_request("other", ("echo-text", "ok"), task_type="default", matched=False, asked_model="task:singing")
    data = draft(("1", "echo/echo-vision", ""), ("2", "echo/echo-text", ""), task_type="painting")
    answer = admin.post(reverse("route_new"), {**data, "act": "past"})
    assert Page(answer).shows("3 requests asked for this task type in the last 24 hours and went to default.")
    assert row_texts(answer)[-1] == "Not known: 3 would reach echo/echo-vision, which was not called for them then"
    assert Page(answer).shows("echo/echo-vision was not called in these 24 hours.")
    response = admin.post(reverse("route_new"), {**data, "task_type": "", "act": "past"})
    assert Page(response).shows("What this draft would have changed for the requests")


def test_disabled_draft_is_compared_as_using_the_default_route(admin: Client, demo: None) -> None:
    log_request("r1", ("echo-503", "http_503"), ("echo-vision", "ok"), picture=True)
    assert (
        row_texts(post_comparison(admin, design(enabled="")))[0]
        == "1 no longer reaches a model that can read its image"
    )


def test_draft_comparison_query_count_does_not_depend_on_the_number_of_requests(admin: Client, demo: None) -> None:
    counts = []
    for number in range(30):
        log_request(f"r{number}", ("echo-503", "http_503"), ("echo-vision", "ok"))
        if number in (0, 29):
            data = {**design(3, 1, 2), "act": "past"}
            counts.append(count_queries(admin, reverse("route", args=["design"]), using=LOGS, post=data))
    assert counts == [4, 4]


def test_viewer_cannot_compare_a_draft(viewer: Client, demo: None) -> None:
    assert not Page(viewer.get(reverse("route", args=["design"]))).control("past")
    log_request("r1", ("echo-503", "http_503"), ("echo-vision", "ok"))
    assert Page(post_comparison(viewer, design(2, 1, 3))).shows("Change the draft")
