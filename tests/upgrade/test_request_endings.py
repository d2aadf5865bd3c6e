"""A migration sets how each request of an earlier version ended, in log rows and in usage totals."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from routing_admin.models import RequestLog, UsageSum
from routing_admin.platform.databases.router import LOGS
from routing_admin.request_log.usage_sums import OTHERS
from tests.upgrade.test_limit_holders import migrate

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "logs"])
NOON = datetime(2026, 11, 22, 12, 30, tzinfo=UTC)
HOUR, DAY = NOON.replace(minute=0), NOON.replace(hour=0, minute=0)
OUTCOMES = ("ok", "ok", "http_503", "invalid_json", "invalid_json", "client_cancelled", "no_such_outcome")


def test_migration_fills_in_request_endings() -> None:
    try:
        apps = migrate("0031_fire_drills_and_missed_calls")
        rows = apps.get_model("routing_admin", "RequestLog").objects.using(LOGS)
        sums = apps.get_model("routing_admin", "UsageSum").objects.using(LOGS)
        for number, outcome in enumerate(OUTCOMES):
            user = f"u{number}" if number > 3 else None
            rows.create(id=f"r{number}", started_at=NOON, surface="v1", agent="a", outcome=outcome, end_user=user)
        for span, start in (("h", HOUR), ("d", DAY)):
            sums.create(span=span, start=start, agent="a", requests=4, failures=2)
            sums.create(span=span, start=start, agent="a", end_user=OTHERS, requests=3, failures=3)
    finally:
        migrate()
    endings = dict(RequestLog.objects.order_by("pk").values_list("pk", "ending"))
    assert [*endings.values()] == ["answered", "answered", "failed", "refused", "refused", "cancelled", "refused"]
    for span in ("h", "d"):
        sums_of_span = UsageSum.objects.filter(span=span).order_by("end_user")
        assert [*sums_of_span.values_list("requests", "failures", "refused", "cancelled")] == [
            (4, 1, 1, 0),
            (3, 0, 2, 1),
        ]
