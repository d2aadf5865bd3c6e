"""A server on PostgreSQL answers other requests while its bucket service hangs. Failed uploads name the artifact
store.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from routing_admin.platform.databases.addresses import POOL
from tests.chaos.callers import Reply, ask, chat, upload
from tests.chaos.proxy import BreakableProxy, proxy_to
from tests.engines.cluster import running_cluster
from tests.engines.s3 import CREDENTIALS, s3_server
from tests.gateway.serving import Server, listening, manage_all, server_environment
from tests.lab import Lab
from tests.processes import wait_until

UPLOADS = 3 * int(POOL["max_size"])


@pytest.fixture
def gate() -> Iterator[BreakableProxy]:
    """Yield a proxy in front of the bucket service. It can make connections hang."""
    with proxy_to(urlsplit(s3_server().url).port or 0) as proxy:
        yield proxy


@pytest.fixture
def server(tmp_path: Path, gate: BreakableProxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    try:
        with running_cluster() as cluster, Lab({}) as lab:
            url = f"s3://artifacts/{tmp_path.name}?endpoint_url=http://127.0.0.1:{gate.port}"
            environment = server_environment(tmp_path, lab) | {
                "DATABASE_URL": cluster.make_database("hanging"),
                "ROUTING_ADMIN_ARTIFACTS_URL": f"{url}&allow_http=true&region=us-east-1&style=path",
            }
            *_, key = manage_all(environment, ("bootstrap", "--no-traffic"), ("issue_agent_key", "text-agent"))
            server = listening(environment, key, lab, tmp_path)
            yield server
            gate.open()
            server.process.terminate()
            server.process.wait(timeout=60)
    except LookupError as error:
        pytest.skip(str(error))


def test_hanging_store_blocks_neither_connections_nor_threads(server: Server, gate: BreakableProxy) -> None:
    replies = list[Reply]()

    def store(number: int) -> None:
        replies.append(upload(server, f"file {number}".encode()))

    assert upload(server, b"before").status == 200
    gate.hold()
    threads = [threading.Thread(target=store, args=(number,)) for number in range(UPLOADS)]
    for thread in threads:
        thread.start()
    wait_until(lambda: replies, 120)
    assert ask(server, "GET", "/api/v1/agents/me").status == 200
    assert chat(server, "beside", "echo-text").status == 200
    ready = ask(server, "GET", "/readyz")
    assert ready.status == 200
    assert "artifacts" in ready.json["degraded"]
    gate.open()
    for thread in threads:
        thread.join()
    refused = [reply for reply in replies if reply.status != 200]
    assert refused
    for reply in refused:
        assert (reply.status, reply.headers["retry-after"]) == (503, "2")
        assert "artifact store" in reply.json["error"]["message"]
    stored = ask(server, "GET", "/api/v1/artifacts?limit=200&q=a.bin").json["artifacts"]
    assert len(stored) == 1 + Counter(reply.status for reply in replies)[200]
    assert "The database is not responding" not in server.log
