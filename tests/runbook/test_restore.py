"""docs/runbook/restore.md: only the backup and the saved secrets are left, and the installation is restored."""

from __future__ import annotations

import shutil

from tests.runbook.installation import Installation


def test_what_was_lost_is_back(own: Installation) -> None:
    """A backup of a running server restores rows, file bytes and keys, and calls are answered."""
    own.start()
    stored = own.upload(b"hello").json["id"]
    own.play("restore", "save")
    assert "Secrets are not included" in own.play("restore", "backup")
    assert own.number("routing_admin_last_backup_timestamp_seconds") > 0
    revision = own.number("routing_admin_revision")
    own.stop()
    for path in own.directory.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    own.play("restore", "secrets")
    assert f"revision {revision:.0f}" in own.play("restore", "restore")
    said = own.play("restore", "check")
    assert "The audit log is intact" in said
    own.start()
    assert '"status": "ok"' in own.play("restore", "over")
    assert own.number("routing_admin_database_up") == 1
    assert own.number("routing_admin_revision") == revision
    assert own.call().status == 200
    assert [each["id"] for each in own.server.get("/v1/files")["data"]] == [stored]
