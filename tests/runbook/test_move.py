"""docs/runbook/move.md: moving an installation to PostgreSQL and S3, and back again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines.cluster import find_programs, running_cluster
from tests.engines.s3 import CREDENTIALS, s3_server
from tests.runbook.installation import Installation

pytestmark = [
    pytest.mark.sqlite,  # The test starts its own PostgreSQL and S3 servers.
    pytest.mark.skipif(find_programs() is None, reason="PostgreSQL is not installed"),
]


def list_file_ids(installation: Installation) -> list[str]:
    return [file["id"] for file in installation.server.get("/v1/files")["data"]]


def test_installation_is_moved_to_postgresql_and_s3_and_back(installation: Installation, tmp_path: Path) -> None:
    installation.start()
    stored = [installation.upload(b"hello").json["id"]]
    installation.stop()
    prefix = s3_server().new_prefix()
    bucket = f"s3://{prefix.name}/{prefix.prefix}?endpoint_url={s3_server().url}&allow_http=true"
    installation.environment |= CREDENTIALS
    with running_cluster() as cluster:
        database = cluster.make_database("moved")
        assert "Same on both sides, counted and hashed" in installation.play(
            "move", "there", **{"$NEW_DATABASE": database, "$NEW_ARTIFACTS": bucket}
        )
        installation.environment |= {"DATABASE_URL": database, "ROUTING_ADMIN_ARTIFACTS_URL": bucket}
        installation.play("move", "check")
        installation.start()
        assert 'database="postgresql"' in installation.play("move", "over")
        assert installation.number("routing_admin_info", database="postgresql", artifacts="s3") == 1
        assert (installation.call().status, list_file_ids(installation)) == (200, stored)
        installation.stop()
        installation.play("move", "back")
        del installation.environment["ROUTING_ADMIN_ARTIFACTS_URL"]
        installation.environment["DATABASE_URL"] = f"sqlite:///{installation.directory}/back.sqlite3"
    installation.start()
    assert installation.number("routing_admin_info", database="sqlite", artifacts="files") == 1
    assert (installation.call().status, list_file_ids(installation)) == (200, stored)
