"""Back up both databases before migrations change them. Artifacts are left out, as migrations do not touch them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from django.utils import timezone

from capabilities.acts import Actor, AuditedAction
from capabilities.quantities import size_text
from routing_admin.configuration.revisions import ledger
from routing_admin.console.backups import databases
from routing_admin.console.backups.manifest import BackupError, write_manifest
from routing_admin.console.backups.restoring import PART, new_folder, remove_unfinished
from routing_admin.console.backups.rows import measure_rows
from routing_admin.console.backups.saving import copy_databases, describe
from routing_admin.platform.databases.schema import list_pending

FOLDER = "backups"
"""Folder of these backups in the data directory."""
MOST = 3
"""How many of these backups are kept."""
SPARE_BYTES = 1024 * 1024
"""Disk space that is always left free."""


def back_up_before_migrating(report: Callable[[str], object]) -> Path | None:
    """Copy the databases if migrations are pending. Return the backup's folder, or None if none are pending.

    Before the copy starts, `report` receives a line with the disk space needed. Raise `BackupError` if the disk has no
    room for the copy and for what the migrations write.
    """
    root, pending = Path(settings.DATA_DIR) / FOLDER, list_pending()
    remove_unfinished(root)
    if not pending:
        return None
    root.mkdir(mode=0o700, exist_ok=True)
    _check_room(len(pending), report)
    folder = root / f"{timezone.now():%Y%m%dT%H%M%S%f}-before-{pending[-1][1]}"
    with new_folder(folder) as part:
        copies = copy_databases(part)
        write_manifest(part, describe(part, copies, artifacts=None, missing=[], sizes={}, with_secrets=False))
    # Names begin with a timestamp, so sorting puts the newest last.
    for path in sorted(entry for entry in root.iterdir() if entry.is_dir() and not entry.name.endswith(PART))[:-MOST]:
        shutil.rmtree(path)
    return folder


def note_backup(actor: Actor, folder: Path) -> None:
    """Record the backup in the audit log. Call this after the migrations, since they may change the log's table."""
    with ledger.audit(actor, AuditedAction("installation.backup", details={"folder": folder.name})):
        pass


def _check_room(count: int, report: Callable[[str], object]) -> None:
    # Three times the size of the files: for the copy, and for a table and its journal while a migration rewrites it.
    needed = SPARE_BYTES + (3 * databases.measure_files() if databases.are_files() else measure_rows())
    free = shutil.disk_usage(settings.DATA_DIR).free
    if needed > free:
        raise BackupError(
            f"Pending migrations: {count}. The disk has no room for the backup before them: {needed} bytes needed, "
            f"{free} free. Free up space, or skip the backup: bootstrap --no-backup."
        )
    report(f"  pending migrations: {count}; they and the backup before them take up to {size_text(needed)} of the disk")
