"""The request log: behind the answers, content-free, never in the way."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.utils import timezone

from routing_admin.core.fallback.chain import Attempt
from routing_admin.models import AttemptLog, RequestLog
from routing_admin.request_log.journal import QUEUE, Entry, Journal, RequestFacts, chip_of, entry_of

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


def entry(name: str, *attempts: Attempt, **facts: object) -> Entry:
    return entry_of(replace(RequestFacts(name, timezone.now(), "v1"), **facts), attempts)  # type: ignore[arg-type]


def test_entries_are_written_in_order_with_their_attempts():
    """One row per request, one per candidate reached, positions without gaps."""
    journal = Journal()
    journal.record(entry("a", Attempt("one", "m", "http_503", 503), Attempt("two", "n", "ok"), agent="x"))
    journal.record(entry("b", outcome="invalid_type", status=400))
    assert not RequestLog.objects.exists()
    journal.flush()
    row = RequestLog.objects.get(pk="a")
    assert (row.provider, row.fell_back, [chip["code"] for chip in row.chain]) == ("two", True, ["503", "200"])
    assert [one.position for one in row.attempts.all()] == [0, 1]
    assert RequestLog.objects.get(pk="b").status == 400


def test_an_id_that_is_taken_overwrites_nothing():
    """A caller may send any request id; the second request is kept under a mark of its own."""
    journal = Journal()
    for agent in ("first", "second", "third"):
        journal.record(entry("same", agent=agent))
        journal.flush()
    journal.record(entry("same", agent="fourth"))
    journal.record(entry("same", agent="fifth"))
    journal.flush()
    assert RequestLog.objects.get(pk="same").agent == "first"
    assert RequestLog.objects.count() == 5


def test_what_cannot_be_written_is_dropped_and_counted_and_the_rest_is_kept():
    """One entry that the database refuses fails nobody: not its request, not its neighbours."""
    journal = Journal()
    journal.record(entry("good"))
    journal.record(Entry({"id": "bad", "no_such_column": 1}))
    journal.record(entry("also good"))
    journal.flush()
    assert set(RequestLog.objects.values_list("pk", flat=True)) == {"good", "also good"}
    assert journal.dropped == 1


def test_the_queue_is_bounded():
    """When nobody writes, memory does not grow without end; what is dropped is counted."""
    journal = Journal()
    for _ in range(QUEUE + 3):
        journal.record(Entry({}))
    assert (len(journal.waiting), journal.dropped) == (QUEUE, 3)


@pytest.mark.parametrize(
    ("attempt", "code", "tone"),
    [
        (Attempt("p", "m", "ok"), "200", "ok"),
        (Attempt("p", "m", "http_429", 429), "429", "warn"),
        (Attempt("p", "m", "http_503", 503), "503", "bad"),
        (Attempt("p", "m", "read_timeout"), "read_timeout", "bad"),
        (Attempt("p", "m", "stream_truncated", 200), "stream_truncated", "bad"),
        (Attempt("p", "m", "skipped_cooling"), "skipped_cooling", ""),
    ],
)
def test_an_attempt_is_one_chip_of_the_chain(attempt, code, tone):
    """The status where there is one, else the word; its colour says how bad it is; the candidate is named."""
    assert chip_of(attempt) == {"name": "p/m", "code": code, "tone": tone}


def test_long_names_are_cut_to_what_a_column_holds():
    """A log entry is never refused for its length."""
    journal = Journal()
    long = "x" * 5000
    journal.record(entry(long, Attempt(long, long, long, error=long), agent=long, task_type=long, error=long))
    journal.flush()
    assert journal.dropped == 0
    assert AttemptLog.objects.get().provider == "x" * 120
