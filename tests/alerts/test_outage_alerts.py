"""Alerts about outages. During a database outage, a file stores them until the database can store them again."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.utils import timezone

from artifacts.core.store import StoreOutage
from capabilities.actors import SYSTEM
from routing_admin.configuration import snapshot
from routing_admin.configuration.audit import list_runs
from routing_admin.console.alerts import actions as ledger
from routing_admin.console.alerts import conditions as troubles
from routing_admin.console.alerts import conditions as watching
from routing_admin.console.alerts import sending
from routing_admin.console.alerts.conditions import AlertWatch
from routing_admin.console.alerts.queries import count_open, list_alerts
from routing_admin.console.backups.saving import record_backup
from routing_admin.console.settings.pruning import prune
from routing_admin.core.alerts.kinds import AlertKind, Condition, build_condition, is_overdue
from routing_admin.core.alerts.webhook import parse_webhook
from routing_admin.models import Alert
from routing_admin.platform.redis.link import RedisLink
from routing_admin.platform.server.alert_file import StoredAlert, alert_file
from routing_admin.platform.server.draining import ProcessMarker
from routing_admin.request_log.journal import journal
from tests.engines.webhook import WebhookReceiver

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "logs"])

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
DATABASE = (AlertKind.DATABASE, "database")


@pytest.fixture(autouse=True)
def own_directory(settings: Any, tmp_path: Path, demo: None) -> None:
    settings.DATA_DIR = tmp_path
    snapshot.current()


@pytest.fixture
def database_outage(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Make the database read-only until the returned `MonkeyPatch` is undone."""
    read_only = sqlite3.OperationalError()
    read_only.sqlite_errorcode = sqlite3.SQLITE_READONLY

    def refuse() -> None:
        raise OperationalError("attempt to write a readonly database") from read_only

    with monkeypatch.context() as patched:
        patched.setattr(watching, "check_writable", refuse)
        yield patched


def failing_watch() -> AlertWatch:
    """Return the alert watcher of a process whose database has been failing for longer than a restart takes."""
    watch = AlertWatch()
    watch.round()
    assert watch.querying_since is not None
    watch.querying_since -= troubles.OUTAGE_DELAY
    return watch


def received_notices(receiver: WebhookReceiver) -> list[tuple[str, str]]:
    return [(message.body["event"], message.body["kind"]) for message in receiver.received]


def condition_kinds(conditions: Iterator[Condition]) -> set[AlertKind]:
    return {condition.kind for condition in conditions}


def test_read_only_database_and_its_end_are_each_reported_once(receiver, database_outage):
    first, second = failing_watch(), failing_watch()
    for watch in (first, second, first):
        watch.offline_round()
    assert received_notices(receiver) == [("begun", "database")]
    assert "read-only" in receiver.received[0].body["text"]
    assert [(alert.kind, alert.ended_at, bool(alert.sent_at)) for alert in list_alerts()] == [(DATABASE[0], None, True)]
    assert count_open().by_kind[AlertKind.DATABASE] == 1
    database_outage.undo()
    second.round()
    first.round()
    assert alert_file().read() == {}
    later = timezone.now() + 5 * MINUTE
    ledger.end_alerts({}, {}, later)
    sending.send_due(parse_webhook(f"{receiver.base}/hook"), later + 5 * MINUTE)
    assert received_notices(receiver) == [("begun", "database"), ("over", "database")]


@pytest.mark.parametrize(
    ("code", "error", "expected"),
    [
        (sqlite3.SQLITE_PERM, "access permission denied", "denies"),
        (sqlite3.SQLITE_FULL, "database or disk is full", "is full"),
        (sqlite3.SQLITE_ERROR, "no such table: routing_admin_attemptlog", "lacks tables or columns"),
        (sqlite3.SQLITE_IOERR, "disk I/O error", "does not answer"),
    ],
)
def test_alert_names_the_kind_of_outage(receiver, monkeypatch, code, error, expected):
    """If the database rejects only writes, the alert must not advise restarting it."""
    cause = sqlite3.OperationalError()
    cause.sqlite_errorcode = code

    def refuse() -> None:
        raise OperationalError(error) from cause

    monkeypatch.setattr(watching, "check_writable", refuse)
    failing_watch().offline_round()
    assert expected in receiver.received[0].body["message"]["en"]


def test_log_entries_waiting_in_memory_raise_an_alert_immediately(monkeypatch):
    """A restart would lose log entries that wait in memory."""
    monkeypatch.setattr(journal(), "disk_is_full", True)
    (condition,) = troubles.find_outages(NOON)
    assert (condition.kind, "0 wait in memory" in condition.sentence) == (AlertKind.LOG_WAITING, True)


def test_outage_shorter_than_a_restart_raises_no_alert(receiver, database_outage):
    watch = AlertWatch()
    watch.round()
    watch.offline_round()
    assert received_notices(receiver) == []
    database_outage.undo()
    watch.round()
    assert watch.querying_since is None


def test_alert_sent_from_the_database_is_not_sent_again_from_the_file(receiver, database_outage):
    failing_watch().offline_round()
    database_outage.undo()
    watch = AlertWatch()
    watch.round()
    database_outage.setattr(watching, "check_writable", lambda: (_ for _ in ()).throw(OperationalError("gone")))
    watch.round()
    assert watch.querying_since is not None
    watch.querying_since -= troubles.OUTAGE_DELAY
    watch.offline_round()
    assert received_notices(receiver) == [("begun", "database")]


def test_outage_after_a_reported_recovery_is_reported_again(receiver, database_outage, monkeypatch):
    """A new outage may begin before the process has reread the stored alerts."""
    failing_watch().offline_round()
    database_outage.undo()
    watch = AlertWatch()
    watch.round()
    ended = timezone.now() - ledger.RESOLVE_DELAY + timedelta(seconds=5)
    Alert.objects.update(ended_at=ended, next_try_at=ended + ledger.RESOLVE_DELAY)
    watch.round()
    database_outage.setattr(watching, "check_writable", lambda: (_ for _ in ()).throw(OperationalError("gone")))
    for seconds, alert_count in ((0, 1), (60, 2)):
        shift = timedelta(seconds=seconds)
        monkeypatch.setattr(timezone, "now", lambda shift=shift: datetime.now(UTC) + shift)
        watch.querying_since = None
        watch.round()
        monkeypatch.setattr(timezone, "now", lambda shift=shift: datetime.now(UTC) + shift + troubles.OUTAGE_DELAY)
        watch.offline_round()
        assert received_notices(receiver) == [("begun", "database")] * alert_count


def test_open_alert_has_the_latest_count_in_database_and_file():
    for noting in (ledger, sending):
        for count in (110, 361):
            noting.record_condition(build_condition(AlertKind.LOG_LOST, "one", count=count), NOON + count * MINUTE)
    assert "361" in list_alerts()[0].sentence
    assert "361" in str(alert_file().read()[("log_lost", "one")].sentence)


def test_unsent_alert_in_the_database_is_sent_from_the_file_during_an_outage(receiver, database_outage, monkeypatch):
    database_outage.undo()
    redis = build_condition(AlertKind.REDIS, "Redis", problem="It is silent.")
    monkeypatch.setattr(watching, "find_outages", lambda now: iter([redis]))
    receiver.replies[:] = [(503, b"busy")]
    watch = AlertWatch()
    watch.round()
    database_outage.setattr(watching, "check_writable", lambda: (_ for _ in ()).throw(OperationalError("gone")))
    watch.round()
    assert watch.querying_since is not None
    watch.querying_since -= troubles.OUTAGE_DELAY
    watch.offline_round()
    assert received_notices(receiver) == [("begun", "redis"), ("begun", "database"), ("begun", "redis")]
    database_outage.undo()
    watch.round()
    assert [alert.kind for alert in list_alerts() if alert.sent_at is None] == []


def test_slow_chat_service_does_not_count_as_a_hanging_database(receiver, monkeypatch):
    watch, asking = AlertWatch(), []
    ledger.record_condition(build_condition(AlertKind.DISK, "data directory", free=1), timezone.now())
    claim, send = ledger.claim_next, sending.send
    monkeypatch.setattr(ledger, "claim_next", lambda now: (asking.append(watch.querying_since), claim(now))[1])
    monkeypatch.setattr(sending, "send", lambda *arguments: (asking.append(watch.querying_since), send(*arguments))[1])
    watch.round()
    assert [since is not None for since in asking] == [True, False, True]
    assert watch.querying_since is None


def test_error_outside_the_database_is_raised_and_not_reported_as_an_outage(monkeypatch):
    monkeypatch.setattr(watching, "find_conditions", lambda state: 1 / 0)
    watch = AlertWatch()
    with pytest.raises(ZeroDivisionError):
        watch.round()
    assert watch.querying_since is None


def test_process_with_a_full_disk_sends_an_alert_once(receiver, database_outage, monkeypatch):
    """The alert is kept in memory, because no file can be written."""
    # No file can be created in /proc, as on a full disk.
    monkeypatch.setattr(type(alert_file()), "path", property(lambda _: Path("/proc/alerts.json")))
    watch = failing_watch()
    watch.offline_round()
    watch.offline_round()
    assert received_notices(receiver) == [("begun", "database")]
    with alert_file().edit() as stored:
        stored.clear()


def test_long_outages_of_store_redis_log_and_configuration_are_reported(monkeypatch):
    """Outages of Redis and the store are reported after ten seconds, those of log and configuration after a minute."""
    link = RedisLink("redis://127.0.0.1:9", "test")
    assert link.look() is not None
    now = timezone.now()
    monkeypatch.setattr(troubles, "link", lambda: link)
    monkeypatch.setattr(troubles, "byte_store", lambda: SimpleNamespace(outage=StoreOutage(now, "it is silent")))
    monkeypatch.setattr(journal(), "behind_since", now)
    monkeypatch.setattr(snapshot, "unread_since", lambda: now)
    quick = {AlertKind.REDIS, AlertKind.ARTIFACT_STORE}
    assert condition_kinds(troubles.find_outages(now)) == set()
    assert condition_kinds(troubles.find_outages(now + 10 * timedelta(seconds=1))) == quick
    slow = {AlertKind.LOG_WAITING, AlertKind.CONFIGURATION_STALE}
    assert condition_kinds(troubles.find_outages(now + MINUTE)) == quick | slow


def test_each_loss_of_log_entries_raises_one_alert(monkeypatch):
    watch = AlertWatch()
    monkeypatch.setattr(journal(), "lost", 2)
    watch.round()
    watch.round()
    (alert,) = list_alerts()
    assert (alert.kind, alert.last_seen_at - alert.first_seen_at) == (AlertKind.LOG_LOST, timedelta(0))
    assert ": 2." in alert.sentence
    monkeypatch.setattr(journal(), "lost", 3)
    watch.round()
    assert list_alerts()[0].last_seen_at > alert.last_seen_at


def test_webhook_that_fails_three_times_raises_an_alert_until_a_delivery_succeeds(receiver, settings):
    ledger.record_condition(build_condition(AlertKind.DISK, "data directory", free=1), NOON)
    receiver.replies[:] = [(503, b"busy")] * 3
    for minutes in (0, 1, 3):
        assert AlertKind.WEBHOOK_FAILING not in [alert.kind for alert in list_alerts()]
        sending.send_due(settings.ALERT_WEBHOOK, NOON + minutes * MINUTE)
        receiver.replies[:] = receiver.replies[:2]
    failing = next(alert for alert in list_alerts() if alert.kind is AlertKind.WEBHOOK_FAILING)
    assert "503" in failing.sentence
    assert receiver.base.rpartition("/")[2] in failing.sentence
    receiver.replies.clear()
    sending.send_due(settings.ALERT_WEBHOOK, NOON + 10 * MINUTE)
    assert all(alert.ended_at for alert in list_alerts() if alert.kind is AlertKind.WEBHOOK_FAILING)


@pytest.mark.parametrize(
    ("days_ago", "overdue"),
    [
        ([], False),
        ([7], False),
        ([9], True),
        ([1.9, 2.9], False),
        ([2.1, 3.1], True),
        ([13, 20], False),
        ([15, 22], True),
    ],
)
def test_job_is_overdue_after_twice_its_interval(days_ago, overdue):
    """A job that never ran is not overdue. Runs in quick succession count as one."""
    runs = [NOON - days * DAY for days in days_ago]
    assert is_overdue(runs, NOON) is overdue
    assert is_overdue([run - delay for run in runs for delay in (timedelta(0), MINUTE)], NOON) is overdue


def test_overdue_backup_and_prune_are_reported_until_they_run(monkeypatch):
    """The backup that is made before a migration does not count as a regular backup."""
    assert condition_kinds(troubles.find_overdue(timezone.now() + 100 * DAY)) == set()
    record_backup(SYSTEM, {"folder": "20261122-before-0030"})
    prune(SYSTEM, timezone.now())
    assert condition_kinds(troubles.find_overdue(timezone.now() + 100 * DAY)) == {AlertKind.PRUNE_OVERDUE}
    record_backup(SYSTEM, {})
    monkeypatch.setattr(timezone, "now", lambda: datetime.now(UTC) + 100 * DAY)
    AlertWatch().round()
    overdue = {AlertKind.BACKUP_OVERDUE, AlertKind.PRUNE_OVERDUE}
    assert {alert.kind for alert in list_alerts() if alert.ended_at is None} == overdue
    record_backup(SYSTEM, {})
    prune(SYSTEM, timezone.now())
    assert {alert.kind for alert in list_alerts() if alert.ended_at is not None} == overdue


def test_crash_of_a_process_is_reported_once_and_a_normal_exit_is_not(tmp_path):
    program = (
        "import django; django.setup(); "
        "from routing_admin.platform.server.draining import process_marker as own; m = own(); m.place(); "
    )
    environment = {"DJANGO_SETTINGS_MODULE": "routing_admin.settings", "ROUTING_ADMIN_DATA_DIR": str(tmp_path)}
    for ending in ("m.remove()", "import os; os.kill(os.getpid(), 9)"):
        subprocess.run([sys.executable, "-c", program + ending], env=environment, check=False)
    mark = ProcessMarker()
    mark.place()
    assert mark.count_crashes() == 1
    assert mark.count_crashes() == 0
    mark.remove()
    subprocess.run([sys.executable, "-c", program + "import os; os._exit(1)"], env=environment, check=False)
    watch = AlertWatch()
    watch.round()
    watch.round()
    assert [(alert.kind, alert.times) for alert in list_alerts()] == [(AlertKind.PROCESS_CRASHED, 1)]


def test_alert_file_has_its_full_size_from_the_start():
    """Alerts can therefore be written to it even if the disk is full."""
    watch = AlertWatch()
    watch.start()
    size = alert_file().path.stat().st_size
    watch.stop()
    with alert_file().edit() as stored:
        stored["disk", "x"] = StoredAlert("disk", "x", "text", NOON, NOON, NOON, NOON)
    assert alert_file().path.stat().st_size == size > 0
    assert list(alert_file().read()) == [("disk", "x")]


def test_backup_by_another_tool_is_recorded(capsys):
    call_command("backup", "--record")
    assert "another tool" in capsys.readouterr().out
    assert len(list_runs("installation.backup")) == 1
    with pytest.raises(CommandError, match="--record"):
        call_command("backup")
