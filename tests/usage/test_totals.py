"""The totals above the list of requests are exact, whether they are from log rows or from hourly and daily totals."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from capabilities.core.wire import Usage
from routing_admin.console.settings.pruning import prune_usage
from routing_admin.core.fallback.chain import Attempt
from routing_admin.core.fallback.endings import request_ending
from routing_admin.models import RequestLog
from routing_admin.request_log import totals
from routing_admin.request_log.entries import Entry, RequestFacts, build_entry
from routing_admin.request_log.insertion import write
from routing_admin.request_log.search_words import moment, parse
from routing_admin.request_log.totals import sum_matches
from routing_admin.request_log.usage_rollups import UsageRollups
from tests.console.page import Page

pytestmark = [pytest.mark.django_db(databases=["default", "logs"]), pytest.mark.usefixtures("demo")]

TIMES = [
    *(
        "",
        "since:30m",
        "since:1d",
        "since:7d",
        "since:9d",
        "since:9d until:8d",
        "since:9d until:7d",
        "since:9d until:2h",
        "until:3d",
    ),
    *("since:5d until:90m", "since:20m until:10m", "until:40d", "since:1h until:2h"),
]
TERMS = ["", "agent:text-agent", "task:planning", "agent:text-agent task:planning", "model:m"]
FOLDS = 12
"""The number of hours that are rolled up. Other hours are read from their hourly totals."""
OUTCOMES = ["ok", "ok", "ok", "http_503", "invalid_json", "client_cancelled"]


@pytest.fixture(params=["UTC", "Asia/Kolkata", "America/New_York"])
def now(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[datetime]:
    """Set the current time.

    In the three time zones, days begin at a full UTC hour, begin at half past, or have different lengths.
    """
    with timezone.override(request.param):
        moment = timezone.localtime().replace(hour=15, minute=45, second=0, microsecond=0) - timedelta(days=1)
        monkeypatch.setattr(timezone, "now", lambda: moment)
        yield moment


def log_requests(now: datetime) -> list[Entry]:
    draw = random.Random(11)
    entries = []
    for number in range(200):
        at = now - timedelta(minutes=draw.choice([draw.randrange(90), draw.randrange(10 * 24 * 60)]))
        agent, task = draw.choice(["text-agent", "vision-agent"]), draw.choice(["planning", "design"])
        facts = RequestFacts(f"r{number}", at, "v1", agent=agent, task_type=task)
        facts.outcome = draw.choice(OUTCOMES)
        facts.usage = Usage(number, 1) if facts.outcome == "ok" else Usage()
        before = (Attempt("down", "m", "http_503", 503),) if draw.random() < 0.2 else ()
        entries.append(build_entry(facts, (*before, Attempt("echo", "echo-text", facts.outcome))))
    write(entries)
    rollups = UsageRollups()
    for _ in range(FOLDS):
        assert rollups.fold_next(now)
    prune_usage(now)  # This deletes hourly totals older than a week.
    return entries


def test_totals_equal_a_count_of_the_matching_log_rows(now: datetime) -> None:
    """The time ranges include some without hourly totals, and days that begin at half past the hour."""
    log = log_requests(now)
    for text in (f"{terms} {times}" for terms in TERMS for times in TIMES):
        search = parse(text, now)
        since, until = (moment(search.get(key), now) if search.get(key) else None for key in ("since", "until"))
        matching = [
            entry
            for entry in log
            if (since is None or entry.facts.began >= since)
            and (until is None or entry.facts.began < until)
            and search.get("agent") in ("", entry.facts.agent)
            and search.get("task") in ("", entry.facts.task_type)
            and (not search.get("model") or len(entry.attempts) > 1)
        ]
        found = sum_matches(search, now).counts
        endings = [request_ending(entry.facts.outcome) for entry in matching]
        assert (text, found.requests, found.failures, found.refused, found.cancelled) == (
            *(text, len(matching)),
            *(endings.count(name) for name in ("failed", "refused", "cancelled")),
        )
        assert found.prompt_tokens == sum(entry.facts.usage.prompt_tokens or 0 for entry in matching)
        fallbacks = [entry for entry in matching if entry.facts.outcome == "ok" and len(entry.attempts) > 1]
        assert found.fallbacks == len(fallbacks)


def test_requests_above_the_limit_are_counted_only_if_an_index_suffices(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If no index suffices, the page only says that there are more requests than the limit."""
    monkeypatch.setattr(totals, "MAX_COUNTED", 2)
    now = timezone.now()
    for number, outcome in enumerate(("ok", "http_503", "http_503", "invalid_json")):
        RequestLog.objects.create(id=str(number), started_at=now, surface="v1", outcome=outcome, provider="echo")
    found = sum_matches(parse(""), now)
    assert (found.counts.requests, found.counts.failures, found.counts.refused) == (4, 2, 1)
    assert not found.has_spending
    page = Page(admin.get("/requests/", {"q": "surface:v1"}))
    assert page.shows("More than 2 requests")
    assert page.shows("Too many to sum up by these filters.")
