"""The dashboard says since when the request log takes nothing, and how many entries wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from capabilities.templatetags.moments import exact
from routing_admin.request_log.entries import RequestFacts, entry_of
from routing_admin.request_log.insertion import rows_of
from routing_admin.request_log.journal import journal
from tests.cast import browser_of

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


@pytest.fixture
def two_waiting() -> Iterator[None]:
    """Two entries that the log did not take."""
    journal.behind_since = timezone.now()
    journal.spool.append(rows_of([entry_of(RequestFacts(name, timezone.now(), "v1")) for name in ("a", "b")]))
    yield
    journal.spool.drain(lambda rows: None)
    journal.spool.close()
    journal.behind_since = None


@pytest.mark.parametrize(
    ("language", "words"), [("en", "2 requests wait on disk"), ("zh-hans", "2 条请求暂存在磁盘上")]
)
def test_the_dashboard_tells_of_entries_that_wait(
    two_waiting: None, language: str, words: str, admin_account: Any
) -> None:
    """In the reader's language, with the moment."""
    page = browser_of(admin_account, headers={"accept-language": language}).get(reverse("dashboard")).content.decode()
    assert words in page
    assert journal.behind_since is not None
    assert exact(journal.behind_since) in page
