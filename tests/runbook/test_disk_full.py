"""docs/runbook/disk-full.md: after a full disk or an exhausted quota is cleared, files can be stored again."""

from __future__ import annotations

import os
from pathlib import Path

from tests.chaos.callers import ask
from tests.processes import wait_until
from tests.runbook.installation import Installation

MEBIBYTE = 1024 * 1024


def fill_disk(folder: Path) -> None:
    with (folder / "ballast").open("wb", buffering=0) as file:
        # Fill the disk with large blocks, and the remaining space with smaller ones.
        for size in (MEBIBYTE, 4096, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue


def waiting_log_entries(installation: Installation) -> float:
    return installation.number("routing_admin_log_entries_waiting")


def test_freeing_space_on_a_full_disk_restores_service_without_losing_log_entries(on_small_disk: Installation) -> None:
    disk, installation = on_small_disk.directory, on_small_disk
    installation.start()
    old = installation.upload(os.urandom(4 * MEBIBYTE)).json["id"]
    thumbnail = disk / "thumbnails" / "00" / f"{'0' * 64}.png"
    thumbnail.parent.mkdir(parents=True, exist_ok=True)
    thumbnail.write_bytes(b"\0" * 2 * MEBIBYTE)
    fill_disk(disk)
    assert installation.number("routing_admin_disk_free_bytes") < 64 * 1024
    names = [f"full-{number}" for number in range(5)]
    assert [installation.call(name=name).status for name in names] == [200] * len(names)
    wait_until(lambda: waiting_log_entries(installation))
    refused = installation.upload(os.urandom(MEBIBYTE))
    assert (refused.status, refused.json["error"]["code"]) == (507, "storage_full")
    assert "artifacts" in installation.play("disk-full", "room")
    installation.play("disk-full", "thumbnails")
    assert wait_until(lambda: ask(installation.server, "DELETE", f"/v1/files/{old}").status == 200)
    assert "1 artifact (4.0 MB)" in installation.play("disk-full", "prune")
    wait_until(lambda: waiting_log_entries(installation) == 0)
    installation.play("disk-full", "over")
    assert installation.number("routing_admin_log_entries_lost_total") == 0
    assert [installation.server.timeline(name)["outcome"] for name in names] == ["ok"] * len(names)
    assert installation.upload(os.urandom(MEBIBYTE)).status == 200


def test_exhausted_artifact_quota_can_be_raised_on_the_settings_page(served: Installation) -> None:
    person = served.person()

    def set_quota(mebibytes: str) -> None:
        fields = {"request_days": 30, "content_policy": "extract+convert"}
        assert person.post("/settings/", quota_bytes=mebibytes, **fields).status == 302

    set_quota("1")
    refused = served.upload(os.urandom(2 * MEBIBYTE))
    assert refused.status == 507
    assert "of the quota of 1048576 are used" in refused.json["error"]["message"]
    assert served.number("routing_admin_artifact_quota_bytes") == MEBIBYTE
    set_quota("")
    assert served.upload(os.urandom(2 * MEBIBYTE)).status == 200
    assert served.number("routing_admin_artifact_bytes") > 2 * MEBIBYTE
