"""The runbook's pages about outages of PostgreSQL, the artifact store and Redis, from the alert to the recovery."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.chaos.callers import send
from tests.chaos.proxy import proxy_to
from tests.engines.cluster import find_programs, running_cluster
from tests.engines.programs import find_program
from tests.engines.redis import MISSING, PROGRAMS, RedisServer
from tests.engines.s3 import CREDENTIALS, s3_server
from tests.engines.webhook import WebhookReceiver, running_receiver
from tests.processes import free_port, wait_until
from tests.runbook.installation import Installation

pytestmark = pytest.mark.sqlite  # The tests start their own PostgreSQL, S3 and Redis servers.
PATIENCE = 120


@pytest.fixture
def chat_receiver(installation: Installation) -> Iterator[WebhookReceiver]:
    """Yield a simulated chat service that receives the installation's alerts."""
    with running_receiver() as receiver:
        installation.environment |= {
            "ROUTING_ADMIN_ALERT_WEBHOOK": f"{receiver.base}/hook",
            "ROUTING_ADMIN_ALLOWED_ORIGINS": "*",
        }
        yield receiver


def is_alert_received(chat_receiver: WebhookReceiver, kind: str) -> Callable[[], bool]:
    return lambda: ("begun", kind) in [(notice.body["event"], notice.body["kind"]) for notice in chat_receiver.received]


def degraded(installation: Installation) -> list[str]:
    return list(send(installation.server, "GET", "/readyz").json["degraded"])


def is_fully_ready(installation: Installation) -> bool:
    """Return whether all dependencies work. They recover one after the other."""
    return send(installation.server, "GET", "/readyz?full").status == 200


@pytest.mark.skipif(find_programs() is None, reason="PostgreSQL is not installed")
def test_restarted_database_receives_every_entry_logged_during_the_outage(
    installation: Installation, chat_receiver: WebhookReceiver
) -> None:
    """The database URL has two hosts. The first is always down, and the alert is sent while the second is stopped."""
    with running_cluster() as cluster:
        url = cluster.make_database("away").replace("@127.0.0.1", f"@127.0.0.1:{free_port()},127.0.0.1")
        installation.manage("move_data", "--to", url)
        installation.environment["DATABASE_URL"] = url
        installation.start()
        assert installation.call(name="before").status == 200
        cluster.stop()
        wait_until(is_alert_received(chat_receiver, "database"), PATIENCE)
        assert "databases" in degraded(installation)
        assert installation.call(name="meanwhile").status == 200
        assert "Start PostgreSQL" in installation.play("database-away", "see")
        cluster.start()
        wait_until(lambda: installation.number("routing_admin_database_up") == 1, PATIENCE)
        wait_until(lambda: installation.number("routing_admin_log_entries_waiting") == 0, PATIENCE)
        wait_until(lambda: is_fully_ready(installation), PATIENCE)
        installation.play("database-away", "over")
        assert installation.server.timeline("meanwhile")["outcome"] == "ok"
        installation.stop()
    # There was only one alert for the whole outage.
    assert [notice.body["kind"] for notice in chat_receiver.received].count("database") == 1


def test_artifact_store_recovers_from_an_outage(
    installation: Installation, chat_receiver: WebhookReceiver, tmp_path: Path
) -> None:
    with proxy_to(urlsplit(s3_server().url).port or 0) as gate:
        url = f"s3://artifacts/{tmp_path.name}?endpoint_url=http://127.0.0.1:{gate.port}"
        installation.environment |= {
            **CREDENTIALS,
            "ROUTING_ADMIN_ARTIFACTS_URL": f"{url}&allow_http=true&style=path",
        }
        installation.start()
        assert installation.upload(b"before").status == 200
        gate.hold()
        wait_until(is_alert_received(chat_receiver, "artifact_store"), PATIENCE)
        assert installation.call().status == 200
        installation.play("store-away", "see")
        gate.open()
        wait_until(lambda: installation.upload(b"after").status == 200, PATIENCE)
        wait_until(lambda: installation.number("routing_admin_artifact_store_up") == 1, PATIENCE)
        wait_until(lambda: is_fully_ready(installation), PATIENCE)
        installation.play("store-away", "over")
        installation.stop()


@pytest.mark.skipif(find_program(*PROGRAMS) is None, reason=MISSING)
def test_installation_uses_redis_again_after_a_restart(
    installation: Installation, chat_receiver: WebhookReceiver, tmp_path: Path
) -> None:
    redis = RedisServer(tmp_path)
    redis.start()
    try:
        installation.environment["REDIS_URL"] = redis.url
        installation.start()
        wait_until(lambda: installation.number("routing_admin_redis_up") == 1, PATIENCE)
        redis.kill()
        wait_until(is_alert_received(chat_receiver, "redis"), PATIENCE)
        assert "redis" in json.dumps(send(installation.server, "GET", "/readyz").json)
        assert installation.call().status == 200
        installation.play("redis-away", "see")
        redis.start()
        wait_until(lambda: installation.number("routing_admin_redis_up") == 1, PATIENCE)
        installation.play("redis-away", "over")
    finally:
        redis.kill()
