"""docs/runbook/move.md: moving an installation to PostgreSQL and S3, and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines.cluster import find_programs, running_cluster
from tests.engines.s3 import CREDENTIALS, s3_server
from tests.runbook.installation import Installation

pytestmark = [
    pytest.mark.sqlite,  # it brings its own engines
    pytest.mark.skipif(find_programs() is None, reason="PostgreSQL is not installed"),
]


def files(own: Installation) -> list[str]:
    return [each["id"] for each in own.server.get("/v1/files")["data"]]


def test_an_installation_goes_to_postgresql_and_s3_and_back(own: Installation, tmp_path: Path) -> None:
    """Keys, files and answers are the same after each move, and the metrics name the storage in use."""
    own.start()
    stored = [own.upload(b"hello").json["id"]]
    own.stop()
    place = s3_server().place()
    bucket = f"s3://{place.name}/{place.prefix}?endpoint_url={s3_server().url}&allow_http=true"
    own.environment |= CREDENTIALS
    with running_cluster() as cluster:
        database = cluster.make_database("moved")
        assert "Same on both sides, counted and hashed" in own.play(
            "move", "there", **{"$NEW_DATABASE": database, "$NEW_ARTIFACTS": bucket}
        )
        own.environment |= {"DATABASE_URL": database, "ROUTING_ADMIN_ARTIFACTS_URL": bucket}
        own.play("move", "check")
        own.start()
        assert 'database="postgresql"' in own.play("move", "over")
        assert own.number("routing_admin_info", database="postgresql", artifacts="s3") == 1
        assert (own.call().status, files(own)) == (200, stored)
        own.stop()
        own.play("move", "back")
        del own.environment["ROUTING_ADMIN_ARTIFACTS_URL"]
        own.environment["DATABASE_URL"] = f"sqlite:///{own.directory}/back.sqlite3"
    own.start()
    assert own.number("routing_admin_info", database="sqlite", artifacts="files") == 1
    assert (own.call().status, files(own)) == (200, stored)
