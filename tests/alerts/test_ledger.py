"""Stored alerts: one row per kind and subject, and one notice each for the beginning and the end.

Each notice is sent by only one process.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connections
from django.test import Client

from routing_admin.console.alerts import actions as ledger
from routing_admin.console.alerts.queries import list_alerts
from routing_admin.core.alerts.kinds import AlertKind, build_condition

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
REFUSED = build_condition(AlertKind.KEY_REFUSED, "deepseek", status=401)
FULL = build_condition(AlertKind.DISK, "data directory", free=12)
RECOVERED = (AlertKind.KEY_REFUSED, "deepseek")


def send_all(now: datetime) -> list[str]:
    """Claim and send the alert notices that are due, and return them."""
    sent = []
    while claimed := ledger.claim_next(now):
        ledger.record_sent(claimed, now)
        sent.append(f"{claimed.kind} {'over' if claimed.ended_at else 'begun'}")
    return sent


def test_lasting_condition_is_reported_once():
    for minutes in range(5):
        ledger.record_condition(REFUSED, NOON + minutes * MINUTE)
    assert send_all(NOON + 5 * MINUTE) == ["key_refused begun"]
    assert send_all(NOON + 9 * MINUTE) == []
    (alert,) = list_alerts()
    assert (alert.times, alert.first_seen_at, alert.last_seen_at) == (1, NOON, NOON + 4 * MINUTE)


def test_alert_end_is_reported_once_and_a_recurrence_is_reported_again():
    ledger.record_condition(REFUSED, NOON)
    send_all(NOON)
    ledger.end_alerts({RECOVERED: NOON + MINUTE}, {}, NOON + MINUTE)
    assert send_all(NOON + 2 * MINUTE) == []
    assert send_all(NOON + 4 * MINUTE) == ["key_refused over"]
    ledger.record_condition(REFUSED, NOON + 10 * MINUTE)
    assert send_all(NOON + 10 * MINUTE) == ["key_refused begun"]
    assert list_alerts()[0].times == 2


def test_alert_that_recurs_within_two_minutes_is_not_sent_again():
    ledger.record_condition(REFUSED, NOON)
    send_all(NOON)
    for minutes in range(1, 20, 2):
        ledger.end_alerts({RECOVERED: NOON + minutes * MINUTE}, {}, NOON + minutes * MINUTE)
        ledger.record_condition(REFUSED, NOON + (minutes + 1) * MINUTE)
        assert send_all(NOON + (minutes + 1) * MINUTE) == []
    assert list_alerts()[0].ended_at is None


def test_outdated_observation_does_not_change_an_alert():
    """Reports from two processes may arrive out of order."""
    ledger.record_condition(REFUSED, NOON)
    ledger.end_alerts({RECOVERED: NOON - MINUTE}, {}, NOON)
    assert list_alerts()[0].ended_at is None
    ledger.end_alerts({RECOVERED: NOON + MINUTE}, {}, NOON + MINUTE)
    ledger.record_condition(REFUSED, NOON + MINUTE / 2)
    assert list_alerts()[0].ended_at == NOON + MINUTE


def test_alert_ends_when_its_condition_is_no_longer_observed():
    """An alert ends a minute after its last observation if its condition is polled, and a day after it otherwise."""
    ledger.record_condition(FULL, NOON)
    ledger.record_condition(REFUSED, NOON)
    ledger.record_condition(FULL, NOON + MINUTE / 2)
    ledger.end_alerts({}, {}, NOON + MINUTE)
    assert [alert.ended_at for alert in list_alerts()] == [None, None]
    ledger.end_alerts({}, {}, NOON + 2 * MINUTE)
    assert {alert.kind: alert.ended_at for alert in list_alerts()} == {
        AlertKind.KEY_REFUSED: None,
        AlertKind.DISK: NOON + 2 * MINUTE,
    }


def test_alerts_about_removed_configuration_are_ended():
    ledger.record_condition(REFUSED, NOON)
    ledger.end_alerts({}, {AlertKind.KEY_REFUSED: {"qwen"}}, NOON + MINUTE)
    assert list_alerts()[0].ended_at == NOON + MINUTE


def test_failed_delivery_is_retried_with_growing_delays_then_given_up():
    ledger.record_condition(REFUSED, NOON)
    now, delays = NOON, []
    while claimed := ledger.claim_next(now):
        ledger.record_failed(claimed, "nothing is listening there.")
        due = list_alerts()[0].next_try_at
        if due is None:
            break
        assert ledger.claim_next(due - timedelta(seconds=1)) is None
        delays.append(due - now)
        now = due
    assert delays == sorted(delays)
    assert (len(delays), delays[0], delays[-1]) == (9, timedelta(seconds=30), timedelta(hours=1))
    (alert,) = list_alerts()
    assert alert.is_given_up
    assert alert.error == "nothing is listening there."
    assert ledger.claim_next(now + timedelta(days=1)) is None


def test_metrics_count_open_alerts_of_every_kind_including_zero():
    ledger.record_condition(REFUSED, NOON)
    numbers = Client(REMOTE_ADDR="127.0.0.1").get("/metrics").content.decode()
    assert 'routing_admin_alerts_open{kind="key_refused"} 1.0' in numbers
    assert 'routing_admin_alerts_open{kind="disk"} 0.0' in numbers


def test_alerts_are_deleted_ninety_days_after_their_end():
    ledger.record_condition(REFUSED, NOON)
    ledger.end_kind(AlertKind.KEY_REFUSED, NOON + MINUTE)
    ledger.prune_alerts(NOON + timedelta(days=89))
    assert len(list_alerts()) == 1
    ledger.prune_alerts(NOON + timedelta(days=91))
    assert list_alerts() == []


@pytest.mark.django_db(transaction=True, databases=["default", "logs"])
def test_concurrent_processes_send_an_alert_once():
    def find_and_claim(_: int) -> int:
        try:
            ledger.record_condition(REFUSED, NOON)
            return int(ledger.claim_next(NOON) is not None)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(find_and_claim, range(24))) == 1
    assert len(list_alerts()) == 1
