"""The dashboard shows since when the request log is behind and how many entries are waiting."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from routing_admin.console.base.tags.ui import exact
from routing_admin.platform.server import store_monitor
from routing_admin.request_log.entries import RequestFacts, build_entry
from routing_admin.request_log.insertion import build_rows
from routing_admin.request_log.journal import journal
from tests.cast import open_browser
from tests.console.page import Page

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


@pytest.fixture
def two_unwritten_requests() -> Iterator[None]:
    """Two entries that are in the spool file but not in the request log yet."""
    journal().behind_since = timezone.now()
    journal().spool.append(build_rows([build_entry(RequestFacts(name, timezone.now(), "v1")) for name in ("a", "b")]))
    yield
    journal().spool.drain(lambda rows: None, lambda line: None)
    journal().spool.close()
    journal().behind_since = None


@pytest.mark.parametrize(
    ("language", "expected"), [("en", "2 requests are waiting on disk"), ("zh-hans", "2 条请求暂存在磁盘上")]
)
def test_dashboard_shows_unwritten_log_entries(
    two_unwritten_requests: None, language: str, expected: str, admin_account: Any
) -> None:
    page = Page(open_browser(admin_account, headers={"accept-language": language}).get(reverse("dashboard")))
    assert page.shows(expected)
    assert journal().behind_since is not None
    assert page.shows(exact(journal().behind_since))


@pytest.mark.parametrize(
    ("language", "expected"), [("en", "requests are waiting in memory"), ("zh-hans", "条请求暂存在内存中")]
)
def test_dashboard_shows_a_full_disk_and_lost_requests(
    two_unwritten_requests: None, language: str, expected: str, admin_account: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_monitor, "LOW_BYTES", 1 << 62)
    monkeypatch.setattr(journal(), "disk_is_full", True)
    monkeypatch.setattr(journal(), "lost", 7)
    waiting = [build_entry(RequestFacts(name, timezone.now(), "v1")) for name in ("c", "d", "e")]
    monkeypatch.setattr(journal(), "waiting", deque(waiting))
    page = Page(open_browser(admin_account, headers={"accept-language": language}).get(reverse("dashboard")))
    assert page.shows(f"3 {expected}")
    assert page.shows({"en": "7 requests could not be logged", "zh-hans": "有 7 条请求未能记录"}[language])
    assert page.shows({"en": "left on the disk", "zh-hans": "可用空间"}[language])
