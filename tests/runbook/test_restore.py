"""docs/runbook/restore.md: restoring a lost installation from a backup and the saved secrets."""

from __future__ import annotations

import shutil

from tests.runbook.installation import Installation


def test_lost_installation_is_restored_from_a_backup(installation: Installation) -> None:
    installation.start()
    stored = installation.upload(b"hello").json["id"]
    installation.play("restore", "save")
    assert "Secrets are not included" in installation.play("restore", "backup")
    assert installation.number("routing_admin_last_backup_timestamp_seconds") > 0
    revision = installation.number("routing_admin_revision")
    installation.stop()
    for path in installation.directory.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    installation.play("restore", "secrets")
    assert f"revision {revision:.0f}" in installation.play("restore", "restore")
    output = installation.play("restore", "check")
    assert "The audit log is intact" in output
    installation.start()
    assert '"status": "ok"' in installation.play("restore", "over")
    assert installation.number("routing_admin_database_up") == 1
    assert installation.number("routing_admin_revision") == revision
    assert installation.call().status == 200
    assert [file["id"] for file in installation.server.get("/v1/files")["data"]] == [stored]
