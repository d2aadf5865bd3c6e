"""A call's labels (team, project, user) are taken from the key or the request, and limited in number and length.

The log stores them, and costs are added up by label.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from capabilities.core.services.agents import NO_LABELS, LabelKind, Labels, clean_label
from capabilities.core.wire import Usage
from capabilities.models import Provider, Service
from capabilities.runtime import renew
from routing_admin.configuration import snapshot
from routing_admin.core.fallback.chain import Attempt
from routing_admin.gateway.calls import call_labels
from routing_admin.models import RequestLog, UsageSum
from routing_admin.request_log.entries import Entry, RequestFacts, build_entry
from routing_admin.request_log.insertion import write
from routing_admin.request_log.journal import journal
from routing_admin.request_log.usage import sum_usage
from routing_admin.request_log.usage_sums import MAX_TEAMS, MAX_USERS, OTHERS, sum_labels
from tests.cast import create_key
from tests.console.page import Page
from tests.gateway.plane import chat_body, post

pytestmark = [pytest.mark.django_db(databases=["default", "logs"]), pytest.mark.usefixtures("demo")]
SESSION = "user_ab12_account_9f_session_77"


@pytest.fixture(autouse=True)
def _fresh_label_names() -> Iterator[None]:
    yield
    renew(sum_labels)


@pytest.mark.parametrize(
    ("key", "body", "expected"),
    [
        (NO_LABELS, {}, NO_LABELS),
        (NO_LABELS, {"user": "eve", "metadata": {"team": "search"}}, Labels("search", "", "eve")),
        (NO_LABELS, {"user": "eve", "safety_identifier": "e-1"}, Labels(user="e-1")),
        (NO_LABELS, {"metadata": {"user_id": "u-7", "project": "atlas"}}, Labels("", "atlas", "u-7")),
        (NO_LABELS, {"metadata": {"user_id": SESSION}}, Labels(user="user_ab12_account_9f")),
        (NO_LABELS, {"metadata": {"user_id": '{"device_id": "d", "session_id": "s"}'}}, Labels(user="d")),
        (NO_LABELS, {"metadata": {"user_id": "{broken"}}, Labels(user="{broken")),
        (Labels("ops"), {"metadata": {"team": "search", "user": "eve"}}, Labels("ops", "", "eve")),
        (Labels("ops", "p"), {"metadata": ["team"], "user": {"a": 1}}, Labels("ops", "p")),
    ],
)
def test_label_of_the_key_takes_precedence_over_the_request(key: Labels, body: Any, expected: Labels) -> None:
    """If a user id ends with a session's id, only the user is kept."""
    assert call_labels(key, body) == expected


@pytest.mark.parametrize(
    ("value", "label"),
    [(" a\n b\t", "a b"), ("x" * 999, "x" * 64), ("a\x00b\u202ec", "a b c"), (7, ""), (None, ""), ("团队", "团队")],
)
def test_label_is_one_line_of_at_most_64_characters(value: Any, label: str) -> None:
    assert clean_label(LabelKind.TEAM, value) == label


def test_labels_are_logged_and_searchable(admin: Client) -> None:
    key = create_key("text-agent", terms={"team": "ops"})
    body = chat_body("hi", model="task:planning", user="<b>eve</b>", metadata={"team": "search", "project": "a b"})
    for agent_key in (key, create_key("text-agent")):
        post(agent_key, body)
    journal().flush()
    for page in ("/requests/?q=team:ops", '/requests/?q=project:"a b" user:<b>eve</b>'):
        assert Page(admin.get(page)).link("text-agent")
    rows = RequestLog.objects.order_by("started_at").values_list("team", "project", "end_user")
    assert list(rows) == [("ops", "a b", "<b>eve</b>"), ("search", "a b", "<b>eve</b>")]
    row = RequestLog.objects.get(team="ops")
    assert Page(admin.get(f"/requests/{row.pk}/")).shows("<b>eve</b>")


@pytest.fixture
def priced() -> None:
    row = Provider.objects.create(name="yuan", endpoint="http://127.0.0.1:9/v1", default_model="m", key_source="none")
    price = {"currency": "CNY", "input": 2, "output": 8}
    Service.objects.create(service_id="yuan", name="yuan", provider=row, model="m", price=price)
    snapshot.refresh()


def entry(name: str, labels: Labels) -> Entry:
    facts = RequestFacts(name, timezone.now(), "v1", agent="ann", task_type="planning", labels=labels)
    facts.usage = Usage(1000, 100)
    return build_entry(facts, (Attempt("yuan", "m", "ok"),))


def test_cost_of_a_label_equals_a_manual_sum(admin: Client, priced: None) -> None:
    """1000 tokens at 2 and 100 at 8 yuan per million cost 0.0028 yuan."""
    calls = [Labels("search", "atlas"), Labels("search", "atlas"), Labels("search", "b"), Labels("ads"), NO_LABELS]
    write([entry(f"r{number}", labels) for number, labels in enumerate(calls)])
    since = timezone.now() - timedelta(days=3)
    bill = {name: counts.costs["CNY"] for name, counts in sum_usage(since, "team").groups}
    assert bill == {"search": 3 * 2_800_000, "ads": 2_800_000, "": 2_800_000}
    within = {name: counts.costs["CNY"] for name, counts in sum_usage(since, "project", team="search").groups}
    assert within == {"atlas": 2 * 2_800_000, "b": 2_800_000}
    page = admin.get("/usage/", {"by": "project", "team": "search"})
    assert Page(page).shows("0.0084 CNY")
    lines = admin.get("/csv/usage/", {"by": "project", "team": "search"}).content.decode("utf-8-sig").splitlines()
    assert [line.split(",")[0] for line in lines] == ["project", "atlas", "b"]
    assert "0.0056" in lines[1]


def test_agent_groups_its_own_usage_by_label(admin: Client) -> None:
    key = create_key("text-agent", terms={"team": "ops"})
    for user in ("eve", "ada", "eve"):
        post(key, chat_body("hi", model="task:planning", user=user))
    post(create_key("vision-agent"), chat_body("hi", model="task:planning", user="other"))
    headers = {"authorization": f"Bearer {key}"}
    answer = Client().get("/api/v1/usage?groupBy=user", headers=headers).json()
    assert {group["name"]: group["requests"] for group in answer["groups"]} == {"eve": 2, "ada": 1}
    answer = Client().get("/api/v1/usage?groupBy=team&user=eve", headers=headers).json()
    assert [(group["name"], group["requests"]) for group in answer["groups"]] == [("ops", 2)]


def test_number_of_labels_per_day_is_limited_in_the_usage_sums(priced: None) -> None:
    """A day's first labels are kept, even after a restart. Later ones are added up as `others`, so no request is
    lost.
    """
    write([entry(f"a{number}", Labels(user=f"u{number}")) for number in range(MAX_USERS + 5)])
    renew(sum_labels)
    write([entry("b", Labels(user="late")), entry("c", Labels(user="u1"))])
    write([entry(f"d{number}", Labels(team=f"t{number}")) for number in range(MAX_TEAMS + 5)])
    days = UsageSum.objects.filter(span=UsageSum.DAY)
    assert days.count() <= MAX_USERS + MAX_TEAMS + 2
    users = dict(days.values_list("end_user", "requests").filter(team=""))
    assert (users[OTHERS], users["u1"], "late" in users) == (6, 2, False)
    assert sum(days.values_list("requests", flat=True)) == MAX_USERS + 5 + 2 + MAX_TEAMS + 5
