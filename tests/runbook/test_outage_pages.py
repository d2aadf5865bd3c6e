"""The runbook's pages about outages of PostgreSQL, the artifact store and Redis, from the alert to the recovery."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest

from tests.chaos.callers import send
from tests.chaos.proxy import BreakableProxy, proxy_to
from tests.engines.cluster import Cluster, find_programs, running_cluster
from tests.engines.redis import RedisServer, redis_running
from tests.engines.s3 import CREDENTIALS, s3_server
from tests.engines.webhook import WebhookReceiver, running_receiver
from tests.processes import free_port, wait_until
from tests.runbook.installation import Installation, copied

pytestmark = pytest.mark.sqlite  # The tests start their own PostgreSQL, S3 and Redis servers.
PATIENCE = 120


@dataclass(frozen=True)
class ServedWithEngines:
    """A running installation that uses PostgreSQL, an artifact store and Redis, and sends its alerts to a chat."""

    installation: Installation
    cluster: Cluster
    store: BreakableProxy
    redis: RedisServer
    chat: WebhookReceiver

    def is_alert_received(self, kind: str) -> bool:
        return ("begun", kind) in [(notice.body["event"], notice.body["kind"]) for notice in self.chat.received]

    def degraded(self) -> list[str]:
        return list(send(self.installation.server, "GET", "/readyz").json["degraded"])

    def is_fully_ready(self) -> bool:
        """Return whether all dependencies work. They recover one after the other."""
        return send(self.installation.server, "GET", "/readyz?full").status == 200


@pytest.fixture(scope="module")
def with_engines(template: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWithEngines]:
    """Yield an installation whose database URL has two hosts, of which the first is always down."""
    if find_programs() is None:
        pytest.skip("PostgreSQL is not installed")
    folder = tmp_path_factory.mktemp("with_engines")
    with (
        running_receiver() as chat,
        running_cluster() as cluster,
        proxy_to(urlsplit(s3_server().url).port or 0) as store,
        redis_running(folder) as redis,
        copied(template, folder) as installation,
    ):
        url = cluster.make_database("away").replace("@127.0.0.1", f"@127.0.0.1:{free_port()},127.0.0.1")
        endpoint = f"http://127.0.0.1:{store.port}"
        bucket = f"s3://artifacts/{folder.name}?endpoint_url={endpoint}&allow_http=true&style=path"
        installation.environment |= CREDENTIALS
        installation.manage("move_data", "--to", url, "--artifacts", bucket)
        installation.environment |= {
            "DATABASE_URL": url,
            "REDIS_URL": redis.url,
            "ROUTING_ADMIN_ALERT_WEBHOOK": f"{chat.base}/hook",
            "ROUTING_ADMIN_ALLOWED_ORIGINS": "*",
            "ROUTING_ADMIN_ARTIFACTS_URL": bucket,
        }
        installation.start()
        yield ServedWithEngines(installation, cluster, store, redis, chat)


def test_restarted_database_receives_every_entry_logged_during_the_outage(with_engines: ServedWithEngines) -> None:
    """The alert is sent while the database is stopped, and only once."""
    installation = with_engines.installation
    assert installation.call(name="before").status == 200
    with_engines.cluster.stop()
    wait_until(lambda: with_engines.is_alert_received("database"), PATIENCE)
    assert "databases" in with_engines.degraded()
    assert installation.call(name="meanwhile").status == 200
    assert "Start PostgreSQL" in installation.play("database-away", "see")
    with_engines.cluster.start()
    wait_until(lambda: installation.number("routing_admin_database_up") == 1, PATIENCE)
    wait_until(lambda: installation.number("routing_admin_log_entries_waiting") == 0, PATIENCE)
    wait_until(with_engines.is_fully_ready, PATIENCE)
    installation.play("database-away", "over")
    assert installation.server.timeline("meanwhile")["outcome"] == "ok"


def test_artifact_store_and_redis_are_used_again_after_an_outage_of_both(with_engines: ServedWithEngines) -> None:
    """The database responds all the time, so these alerts are stored there before they are sent."""
    installation = with_engines.installation
    wait_until(lambda: installation.number("routing_admin_redis_up") == 1, PATIENCE)
    assert installation.upload(b"before").status == 200
    with_engines.store.hold()
    with_engines.redis.kill()
    wait_until(lambda: with_engines.is_alert_received("artifact_store"), PATIENCE)
    wait_until(lambda: with_engines.is_alert_received("redis"), PATIENCE)
    assert "redis" in with_engines.degraded()
    assert installation.call().status == 200
    installation.play("store-away", "see")
    with_engines.store.open()
    installation.play("redis-away", "see")
    with_engines.redis.start()
    wait_until(lambda: installation.upload(b"after").status == 200, PATIENCE)
    wait_until(lambda: installation.number("routing_admin_artifact_store_up") == 1, PATIENCE)
    wait_until(lambda: installation.number("routing_admin_redis_up") == 1, PATIENCE)
    wait_until(with_engines.is_fully_ready, PATIENCE)
    installation.play("store-away", "over")
    installation.play("redis-away", "over")
    # There was only one alert for each outage, including the earlier one of the database.
    kinds = [notice.body["kind"] for notice in with_engines.chat.received]
    assert sorted(kinds) == ["artifact_store", "database", "redis"]
