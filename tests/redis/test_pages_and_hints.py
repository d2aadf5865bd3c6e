"""Pages and health checks while Redis is unavailable, and hints from other processes that the configuration has
changed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from django.db.models import F

from routing_admin.configuration import snapshot
from routing_admin.configuration.publishing import TOPIC, follow_changes
from routing_admin.models import Installation
from routing_admin.platform.redis.link import RedisLink, link
from routing_admin.platform.redis.news import News
from tests.engines.redis import RedisServer
from tests.processes import free_port

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "logs"])


@pytest.fixture
def redis_outage() -> Iterator[int]:
    """Set a Redis URL whose port has no listener. Yield the port."""
    port = free_port()
    link().set_url(f"redis://:hidden-word@127.0.0.1:{port}")
    link().look()
    yield port
    link().set_url("")


def test_dashboard_shows_since_when_and_why_redis_is_unavailable(demo, admin, redis_outage):
    page = admin.get("/").content.decode()
    assert (
        f"this process runs without Redis: Redis at 127.0.0.1:{redis_outage} cannot be reached: Connection refused."
        in page
    )
    chinese = admin.get("/", HTTP_ACCEPT_LANGUAGE="zh-hans").content.decode()
    assert f"本进程未使用 Redis：无法连接位于 127.0.0.1:{redis_outage} 的 Redis" in chinese
    assert "hidden-word" not in page + chinese


def test_dashboard_does_not_mention_redis_if_none_is_configured(demo, admin):
    assert "Redis" not in admin.get("/").content.decode()


def test_server_is_ready_without_redis(demo, client, redis_outage):
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["checks"]["redis"]) == (200, "away")


def test_settings_page_does_not_show_the_redis_password(demo, admin, monkeypatch):
    monkeypatch.setenv("REDIS_URL", "redis://:hidden-word@127.0.0.1:6379")
    page = admin.get("/settings/").content.decode().replace("<wbr>", "")
    assert "REDIS_URL" in page
    assert "hidden-word" not in page


def test_change_hint_of_another_process_triggers_an_immediate_check(demo, redis_server: RedisServer):
    """A process ignores its own hints, so the test uses a second connection as the other process."""
    own, remote = (News(RedisLink(redis_server.url, "test-hints"), wake=lambda: None) for _ in range(2))
    for news in (own, remote):
        news.link.beat()
        follow_changes(news)
    snapshot.current()
    before = snapshot.newest().stamp()
    Installation.objects.update(version=F("version") + 1)
    own.publish(TOPIC, "", dict)
    own.send()
    assert own.listen()
    assert snapshot.newest().stamp() == before
    remote.publish(TOPIC, "", dict)
    remote.send()
    until = time.monotonic() + 30
    while snapshot.newest().stamp() == before:
        assert time.monotonic() < until
        own.listen()
    assert snapshot.newest().stamp() == before + 1
