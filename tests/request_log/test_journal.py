"""Request log entries are written after the response, do not delay requests, and contain no file contents."""

from __future__ import annotations

import gc
import weakref
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from capabilities.core.delivery.adaptation import PartDelivery
from capabilities.core.delivery.decision import Delivery, Outcome
from capabilities.core.delivery.model_endpoint import Prepared
from capabilities.core.delivery.obstacles import ReasonCode, make_reason
from capabilities.core.message import ChatRequest, FilePart
from capabilities.core.translatable import translatable
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import AnswerDetails, Media, UpstreamRequest, Usage
from routing_admin.core.fallback.chain import Attempt, Try
from routing_admin.models import AttemptLog, RequestLog, UsageSum
from routing_admin.request_log.costs import cost_columns
from routing_admin.request_log.entries import (
    Entry,
    RequestFacts,
    attempt_chip,
    attempt_columns,
    build_entry,
    request_columns,
)
from routing_admin.request_log.insertion import json_text, write
from routing_admin.request_log.journal import QUEUE, Journal
from routing_admin.request_log.recorder import RequestRecorder

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


def entry(name: str, *attempts: Attempt, **facts: Any) -> Entry:
    return build_entry(RequestFacts(name, timezone.now(), "v1", **facts), attempts)


def test_entries_are_written_in_order_with_their_attempts():
    journal = Journal()
    journal.record(entry("a", Attempt("one", "m", "http_503", 503), Attempt("two", "n", "ok"), agent="x"))
    journal.record(entry("b", outcome="invalid_type", status=400))
    assert not RequestLog.objects.exists()
    journal.flush()
    row = RequestLog.objects.get(pk="a")
    assert (row.provider, row.fell_back, [chip["code"] for chip in row.chain]) == ("two", True, ["503", "200"])
    assert [attempt.position for attempt in row.attempts.all()] == [0, 1]
    assert RequestLog.objects.get(pk="b").status == 400


def test_entry_with_a_used_id_overwrites_no_other_entry():
    journal = Journal()
    for agent in ("first", "second", "third"):
        journal.record(entry("same", Attempt("one", agent, "ok"), agent=agent))
        journal.flush()
    journal.record(entry("same", Attempt("one", "fourth", "ok"), agent="fourth"))
    journal.record(entry("same", Attempt("one", "fifth", "ok"), agent="fifth"))
    journal.flush()
    assert RequestLog.objects.get(pk="same").agent == "first"
    assert RequestLog.objects.count() == 5
    assert all(attempt.request.agent == attempt.model for attempt in AttemptLog.objects.select_related("request"))
    assert AttemptLog.objects.count() == 5


ODD_VALUES: list[dict[str, Any]] = [
    {"status": -1},
    {"status": 2**70},
    {"usage": Usage(-1_000_000, 2**70, cached_tokens=2**80, reasoning_tokens=-7)},
    {"first_content_ms": float("nan"), "duration_ms": float("inf")},
    {"asked_model": "half \ud83d", "answered_model": "half \ud83d", "error": "half \ud83d", "finish_reason": "\ud83d"},
    {"details": AnswerDetails(stop_details={"deep": float("nan"), "half": "\ud83d"})},
    {"details": AnswerDetails(service_tier=cast(str, 7))},
]


@pytest.mark.parametrize("odd", ODD_VALUES)
def test_row_is_written_even_if_a_value_cannot_be_stored(odd: dict[str, Any]):
    journal = Journal()
    journal.record(entry("good"))
    journal.record(entry("odd", Attempt("one", "m", "ok"), agent="ada", **odd))
    journal.record(entry("also good"))
    journal.flush()
    assert set(RequestLog.objects.values_list("pk", flat=True)) == {"good", "odd", "also good"}
    assert journal.lost == 0
    row = RequestLog.objects.get(pk="odd")
    assert (row.agent, row.outcome) == ("ada", "ok")
    assert all(0 <= count <= 2**31 - 1 for count in (row.prompt_tokens or 0, row.completion_tokens or 0))
    assert all(count >= 0 for count in UsageSum.objects.values_list("prompt_tokens", flat=True))


def test_entry_that_cannot_be_repaired_is_counted_as_lost():
    journal = Journal()
    journal.record(entry("good"))
    journal.record(build_entry(RequestFacts("bad", cast(Any, "no moment"), "v1")))
    journal.flush()
    assert set(RequestLog.objects.values_list("pk", flat=True)) == {"good"}
    assert journal.lost == 1


def test_queue_is_bounded_and_overflow_is_counted_as_lost(caplog: pytest.LogCaptureFixture):
    journal, waiting_entry = Journal(), entry("a")
    for _ in range(QUEUE + 3):
        journal.record(waiting_entry)
    assert (len(journal.waiting), journal.lost) == (QUEUE, 3)
    journal.waiting.clear()
    for _ in range(2):
        journal.flush()
    assert [record.getMessage() for record in caplog.records] == [
        f"{QUEUE} requests wait in memory: until they are written, further ones are lost",
        "3 requests are not logged: too many waited in memory",
    ]


@pytest.mark.parametrize(("entries", "statements"), [(1, 3), (3, 3), (100, 4), (125, 9), (200, 7)])
def test_batch_is_written_in_a_few_statements(entries: int, statements: int):
    """One statement per row would be too slow: the writer waits for the GIL after each statement, so under load it fell
    thousands of entries behind, and the queue overflowed. Each entry in this test has two attempts.
    """
    journal = Journal()
    for number in range(entries):
        journal.record(entry(f"req_{number:024x}", Attempt("one", "m", "http_503", 503), Attempt("two", "n", "ok")))
    with CaptureQueriesContext(connections["logs"]) as captured:
        journal.flush()
    written = [query["sql"].split(" (")[0] for query in captured if "SAVEPOINT" not in query["sql"]]
    tables = ("requestlog", "attemptlog", "usagesum")
    assert set(written) == {f'INSERT INTO "routing_admin_{table}"' for table in tables}
    assert len(written) == statements
    assert RequestLog.objects.using("logs").count() == entries
    assert AttemptLog.objects.using("logs").count() == 2 * entries


def described(content: Any = None) -> Prepared:
    """Return a prepared request in which a description replaces an image."""
    file = FilePart(Kind.IMAGE, "image/png", "点.png", 70, "0123abcd", content=content)
    reason = make_reason(ReasonCode.NO_CAPABILITY, capability="vision")
    delivery = PartDelivery(0, 1, file, Delivery(Outcome.DESCRIBED, reason), "a picture")
    return Prepared(UpstreamRequest("https://one.example", {}), ChatRequest(()), (delivery,))


def all_kinds() -> list[Entry]:
    """Return entries in which each optional column has a value in one entry and none in another."""
    began = datetime(2026, 11, 21, 23, 59, 59, 999_900, UTC)
    error = translatable("%(name)s refused the request: %(said)s", name="一", said="余额不足 \ud83d\ude00 é")
    tries = (Try(0.1 + 0.2, 1e-7, "http_429", 429), Try(1e16, 2.0, "read_timeout"))
    failed = Attempt(
        "一", "m", "http_429", 429, error, 1, 12.345678901234567, 0.25, tries=tries, dropped_params=("top_p",)
    )
    full = RequestFacts("full", began, "v1", "agent é", "abcdef01", "task:设计", "design", False, "zh", True, 2**40)
    full.usage, full.finish_reason = Usage(3, 4, cached_tokens=2, cache_write_1h_tokens=1), "length"
    full.details = AnswerDetails("VANISHED é", {"explanation": "\ud800"}, "priority", "fp")
    full.media = (Media(Kind.IMAGE, "image/png", size=70, artifact_id="0a"), Media(Kind.VIDEO, "", url="https://é"))
    full.citations = 2
    full.body = {"messages": [{"content": "\ud800 \0 €"}], "n": 2**70}
    full.first_content_ms, full.duration_ms = 30.5, 99.875
    broken = RequestFacts("broken", began.replace(microsecond=0), "api", outcome="all_providers_failed", status=None)
    broken.error = "boom"
    answered = Attempt("two", "n", "ok", started_ms=13.0, duration_ms=20.0, adaptation="image=described")
    return [
        build_entry(full, (failed, answered), {1: described()}),
        build_entry(broken, (Attempt("three", "", "skipped_missing", error="There is none."),)),
        build_entry(RequestFacts("bare", began, "v1")),
    ]


def rows_read() -> list[Any]:
    """Return the logged requests and attempts, once as the ORM reads them and once as they are stored.

    The stored form omits the JSON columns and includes the type of each value.
    """
    read: list[Any] = [list(RequestLog.objects.order_by("pk").values())]
    read.append([{**row, "id": None} for row in AttemptLog.objects.order_by("request", "position").values()])
    for model, order in ((RequestLog, "id"), (AttemptLog, "request_id, position")):
        plain = [field for field in model._meta.concrete_fields if field.get_internal_type() != "JSONField"]
        kind = "typeof" if connections["logs"].vendor == "sqlite" else "pg_typeof"
        names = ", ".join(f'"{field.column}", {kind}("{field.column}")' for field in plain if field.column != "id")
        with connections["logs"].cursor() as cursor:
            read.append(cursor.execute(f"SELECT {names} FROM {model._meta.db_table} ORDER BY {order}").fetchall())
    return read


def test_written_rows_equal_rows_created_by_the_orm():
    """Characters that a database cannot store are replaced by U+FFFD."""
    rows = [({**request_columns(item), **cost_columns(item)[0]}, item) for item in all_kinds()]
    RequestLog.objects.bulk_create([RequestLog(**row) for row, _ in rows])
    attempts = [(attempt_columns(item), cost_columns(item)[1]) for item in all_kinds()]
    AttemptLog.objects.bulk_create(
        [AttemptLog(**row, **cost) for rows, costs in attempts for row, cost in zip(rows, costs, strict=True)]
    )
    expected = rows_read()
    RequestLog.objects.all().delete()
    write(all_kinds())
    assert rows_read() == expected
    full = RequestLog.objects.get(pk="full")
    assert full.body == {"messages": [{"content": "\ufffd \ufffd €"}], "n": 2**70}
    assert full.token_details == {"cachedTokens": 2, "cacheWrite1hTokens": 1}
    assert [medium["artifactId"] for medium in full.answer["media"]] == ["0a", None]
    assert "https" not in str(full.answer)
    assert (full.answer["stopReason"], full.answer["serviceTier"]) == ("VANISHED é", "priority")
    assert (RequestLog.objects.get(pk="bare").token_details, RequestLog.objects.get(pk="bare").answer) == (None, None)


@pytest.mark.parametrize("value", [[], {"a": "é€\ud83d\ude00"}, "\ud800", 2**70, [1.5, None, True]])
def test_json_text_can_always_be_encoded_as_utf_8(value):
    assert json_text(value).encode()


class Content:
    """A substitute for a file's content, which must not stay in memory, since it may be several megabytes long."""


def test_queued_entry_references_no_file_content():
    content = Content()
    reference, journal = weakref.ref(content), Journal()
    recorder = RequestRecorder("a", "v1", journal)
    recorder.end((Attempt("one", "m", "ok"),), {0: described(content)})
    del content
    gc.collect()
    assert reference() is None
    journal.flush()
    (delivery,) = AttemptLog.objects.get().deliveries
    assert delivery == {
        "message": 0,
        "part": 1,
        "kind": "image",
        "filename": "点.png",
        "artifactId": "0123abcd",
        "mimeType": "image/png",
        "size": 70,
        "outcome": "described",
        "shown": "described",
        "loss": None,
        "reason": "no_capability",
        "sentence": {
            "code": "The model does not support %(capability)s.",
            "facts": {"capability": "vision"},
        },
    }


def test_recorder_accepts_only_known_facts_and_none_after_the_end():
    journal = Journal()
    recorder = RequestRecorder("a", "v1", journal)
    with pytest.raises(AttributeError):
        recorder.add_facts(no_such_fact=1)
    recorder.add_facts(agent="x")
    recorder.end(outcome="invalid_type", status=400)
    recorder.add_facts(agent="y")
    recorder.end(outcome="ok", status=200)
    journal.flush()
    row = RequestLog.objects.get()
    assert (row.agent, row.outcome, row.status) == ("x", "invalid_type", 400)


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
def test_attempt_is_shown_as_one_chip_with_code_and_tone(attempt, code, tone):
    assert attempt_chip(attempt) == {"name": "p/m", "code": code, "tone": tone}


def test_long_names_are_truncated_to_their_column_length():
    """Otherwise, the database would reject the log entry."""
    journal = Journal()
    long = "x" * 5000
    journal.record(entry(long, Attempt(long, long, long, error=long), agent=long, task_type=long, error=long))
    journal.flush()
    assert journal.lost == 0
    assert AttemptLog.objects.get().provider == "x" * 120
