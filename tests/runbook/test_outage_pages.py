"""The outage pages from alert to repair: PostgreSQL, the artifact store and Redis fail and recover."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.chaos.callers import send
from tests.chaos.gate import gate_before
from tests.engines.cluster import find_programs, running_cluster
from tests.engines.programs import find_program
from tests.engines.redis import MISSING, PROGRAMS, RedisServer, free_port
from tests.engines.s3 import CREDENTIALS, s3_server
from tests.engines.webhook import Chat, running_chat
from tests.runbook.installation import Installation, until

pytestmark = pytest.mark.sqlite  # it brings its own engines
PATIENCE = 120


@pytest.fixture
def chat(own: Installation) -> Iterator[Chat]:
    """Yield the operator's chat, which receives the alerts."""
    with running_chat() as found:
        own.environment |= {"ROUTING_ADMIN_ALERT_WEBHOOK": f"{found.base}/hook", "ROUTING_ADMIN_ALLOWED_ORIGINS": "*"}
        yield found


def begun(chat: Chat, kind: str) -> Callable[[], bool]:
    return lambda: ("begun", kind) in [(each.body["event"], each.body["kind"]) for each in chat.received]


def degraded(own: Installation) -> list[str]:
    return list(send(own.server, "GET", "/readyz").json["degraded"])


def is_whole(own: Installation) -> bool:
    """Return whether every dependency works again; they recover one after another."""
    return send(own.server, "GET", "/readyz?full").status == 200


@pytest.mark.skipif(find_programs() is None, reason="PostgreSQL is not installed")
def test_a_database_that_stopped_is_started_and_nothing_is_lost(own: Installation, chat: Chat) -> None:
    """The address has two hosts, the first of them down; the alert is sent while the database is down."""
    with running_cluster() as cluster:
        url = cluster.make_database("away").replace("@127.0.0.1", f"@127.0.0.1:{free_port()},127.0.0.1")
        own.manage("move_data", "--to", url)
        own.environment["DATABASE_URL"] = url
        own.start()
        assert own.call(name="before").status == 200
        cluster.stop()
        until(begun(chat, "database"), PATIENCE)
        assert "databases" in degraded(own)
        assert own.call(name="meanwhile").status == 200
        assert "Start PostgreSQL" in own.play("database-away", "see")
        cluster.start()
        until(lambda: own.number("routing_admin_database_up") == 1, PATIENCE)
        until(lambda: own.number("routing_admin_log_entries_waiting") == 0, PATIENCE)
        until(lambda: is_whole(own), PATIENCE)
        own.play("database-away", "over")
        assert own.server.timeline("meanwhile")["outcome"] == "ok"
        own.stop()
    # A single alert for the whole outage.
    assert [each.body["kind"] for each in chat.received].count("database") == 1


def test_a_store_that_is_away_comes_back(own: Installation, chat: Chat, tmp_path: Path) -> None:
    """Calls without files are answered during the outage."""
    with gate_before(urlsplit(s3_server().url).port or 0) as gate:
        place = f"s3://artifacts/{tmp_path.name}?endpoint_url=http://127.0.0.1:{gate.port}"
        own.environment |= {**CREDENTIALS, "ROUTING_ADMIN_ARTIFACTS_URL": f"{place}&allow_http=true&style=path"}
        own.start()
        assert own.upload(b"before").status == 200
        gate.hold()
        until(begun(chat, "artifact_store"), PATIENCE)
        assert own.call().status == 200
        own.play("store-away", "see")
        gate.open()
        until(lambda: own.upload(b"after").status == 200, PATIENCE)
        until(lambda: own.number("routing_admin_artifact_store_up") == 1, PATIENCE)
        until(lambda: is_whole(own), PATIENCE)
        own.play("store-away", "over")
        own.stop()


@pytest.mark.skipif(find_program(*PROGRAMS) is None, reason=MISSING)
def test_a_redis_that_died_is_started_again(own: Installation, chat: Chat, tmp_path: Path) -> None:
    """Calls are answered during the outage."""
    redis = RedisServer(tmp_path)
    redis.start()
    try:
        own.environment["REDIS_URL"] = redis.url
        own.start()
        until(lambda: own.number("routing_admin_redis_up") == 1, PATIENCE)
        redis.kill()
        until(begun(chat, "redis"), PATIENCE)
        assert "redis" in json.dumps(send(own.server, "GET", "/readyz").json)
        assert own.call().status == 200
        own.play("redis-away", "see")
        redis.start()
        until(lambda: own.number("routing_admin_redis_up") == 1, PATIENCE)
        own.play("redis-away", "over")
    finally:
        redis.kill()
