"""Back up a running installation: a snapshot of the databases, and every artifact that they list.

An artifact's bytes are stored before its row and deleted after it. The backup copies the bytes, then the databases, and
then any bytes that were stored in the meantime, so every row in the backup has its bytes. A backup made before
migrations omits artifacts, because migrations do not touch them.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connections
from django.utils import timezone

from artifacts.core.errors import CorruptError, MissingError
from artifacts.core.store import ByteStore
from artifacts.storage.content import byte_store
from artifacts.storage.files import FileStore
from capabilities.actors import Actor, AuditedAction
from capabilities.quantities import size_text
from routing_admin.configuration import exports
from routing_admin.configuration.audit import record_head
from routing_admin.configuration.revisions import ledger
from routing_admin.console.alerts.actions import end_kind
from routing_admin.console.backups import databases
from routing_admin.console.backups.manifest import (
    ARTIFACTS,
    FORMAT,
    PACKED_FORMAT,
    SECRETS,
    BackupError,
    Manifest,
    SavedDatabase,
    hash_secret,
    write_manifest,
)
from routing_admin.console.backups.restoring import PART_SUFFIX, new_folder, remove_unfinished
from routing_admin.console.backups.rows import measure_rows, save_rows
from routing_admin.core.alerts.kinds import AlertKind
from routing_admin.core.configuration.as_json import from_json
from routing_admin.core.configuration.specs import EMPTY
from routing_admin.paths import program_version
from routing_admin.platform.databases.schema import list_applied_in_file, list_pending


def back_up(actor: Actor, folder: Path, *, with_secrets: bool = False) -> Manifest:
    """Write a backup into a new folder. Raise `BackupError` or `OSError` if that fails."""
    with new_folder(folder) as part:
        manifest = _fill(part, with_secrets=with_secrets)
    record_backup(actor, {"withSecrets": with_secrets})
    if head := databases.find_head(folder / databases.FILES["default"]):
        record_head(head)
    return manifest


def record_backup(actor: Actor, details: dict[str, Any]) -> None:
    """Record a completed backup in the audit log, and end the alert about an overdue backup."""
    with ledger.audit(actor, AuditedAction("installation.backup", details=details)):
        pass
    end_kind(AlertKind.BACKUP_OVERDUE, timezone.now())


def _fill(part: Path, *, with_secrets: bool) -> Manifest:
    store, folder = byte_store(), part / ARTIFACTS
    folder.mkdir(mode=0o700)
    for sha256 in store.digests():
        _save_bytes(store, sha256, folder)
    copies = copy_databases(part)
    sizes = databases.list_artifacts(part / databases.FILES["default"])
    # Copy artifacts that were stored since the loop above began.
    missing = [sha256 for sha256 in sizes if not _save_bytes(store, sha256, folder)]
    # An artifact without a row in the copied database was deleted before the snapshot or stored after it. Omit it.
    for path in folder.glob("??/*"):
        if path.name not in sizes:
            path.unlink()
    _save_configuration(part)
    if with_secrets:
        _save_secrets(part)
    manifest = describe(
        part, copies, missing=missing, artifacts=len(sizes) - len(missing), with_secrets=with_secrets, sizes=sizes
    )
    write_manifest(part, manifest)
    return manifest


def copy_databases(part: Path) -> dict[str, SavedDatabase]:
    """Copy each database into the folder.

    Return a description of each copy by alias. Raise `BackupError` if that fails.
    """
    if not databases.uses_sqlite():
        return save_rows(part)
    copies = {}
    for alias, name in databases.FILES.items():
        path = part / name
        databases.copy_database(alias, path)
        applied = [list(migration) for migration in list_applied_in_file(path)]
        copies[alias] = SavedDatabase(
            file=name, engine=connections[alias].vendor, migrations=applied, rows=databases.count_rows(path)
        )
    return copies


def describe(
    part: Path,
    copies: dict[str, SavedDatabase],
    *,
    artifacts: int | None,
    missing: list[str],
    sizes: dict[str, int],
    with_secrets: bool,
) -> Manifest:
    size = sum(length for sha256, length in sizes.items() if sha256 not in missing)
    newest = databases.find_newest_revision(part / databases.FILES["default"])
    return Manifest(
        created_at=timezone.now().isoformat(timespec="seconds"),
        version=program_version(),
        databases=copies,
        revision=newest[0] if newest else None,
        audit_head=str(databases.find_head(part / databases.FILES["default"]) or ""),
        artifacts=artifacts,
        artifact_bytes=size if artifacts is not None else None,
        missing=missing,
        has_secrets=with_secrets,
        secret_marks=[hash_secret(secret) for secret in settings.SIGNING_SECRETS],
        format=PACKED_FORMAT if any(database.is_packed for database in copies.values()) else FORMAT,
    )


def _save_bytes(store: ByteStore, sha256: str, folder: Path) -> bool:
    target = folder / sha256[:2] / sha256
    if target.exists():
        return True
    target.parent.mkdir(mode=0o700, exist_ok=True)
    try:
        if isinstance(store, FileStore):
            # A hard link takes no space and is safe, because stored files never change. If linking raises `OSError`,
            # for example across file systems, the file is copied.
            with store.local_file(sha256) as path, suppress(OSError):
                os.link(path, target)
                return True
        with target.open("xb") as file:
            for block in store.open_blocks(sha256):
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
    except (MissingError, CorruptError):
        target.unlink(missing_ok=True)
        return False
    return True


def _save_configuration(part: Path) -> None:
    newest = databases.find_newest_revision(part / databases.FILES["default"])
    # Export the configuration from the copied database, so that the exported files match it.
    configuration = from_json(json.loads(newest[1])) if newest else EMPTY
    for name in exports.FILES:
        text = exports.export(name, configuration=configuration).text
        (part / f"{name.value}.json").write_text(text, encoding="utf-8")


def _save_secrets(part: Path) -> None:
    value = {"secret_key": settings.SIGNING_SECRETS, "keys": settings.ENCRYPTION_KEYS}
    with open(os.open(part / SECRETS, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)


FOLDER = "backups"
"""Folder in the data directory for backups made before migrations."""
MAX_BACKUPS = 3
"""How many backups made before migrations are kept."""
SPARE_BYTES = 1024 * 1024
"""Disk space that must remain free."""


def back_up_before_migrating(report: Callable[[str], object]) -> Path | None:
    """Copy the databases if migrations are pending. Return the backup's folder, or None if no migration is pending.

    Before copying, `report` receives a line with the required disk space. Raise `BackupError` if the disk lacks space
    for the copy and for what the migrations write.
    """
    root, pending = Path(settings.DATA_DIR) / FOLDER, list_pending()
    remove_unfinished(root)
    if not pending:
        return None
    root.mkdir(mode=0o700, exist_ok=True)
    _check_disk_space(len(pending), report)
    folder = root / f"{timezone.now():%Y%m%dT%H%M%S%f}-before-{pending[-1][1]}"
    with new_folder(folder) as part:
        copies = copy_databases(part)
        write_manifest(part, describe(part, copies, artifacts=None, missing=[], sizes={}, with_secrets=False))
    # Names begin with a timestamp, so sorting puts the newest backup last.
    for path in sorted(entry for entry in root.iterdir() if entry.is_dir() and not entry.name.endswith(PART_SUFFIX))[
        :-MAX_BACKUPS
    ]:
        shutil.rmtree(path)
    return folder


def audit_backup(actor: Actor, folder: Path) -> None:
    """Record the backup in the audit log. Call this after the migrations, which may change the audit log's table."""
    with ledger.audit(actor, AuditedAction("installation.backup", details={"folder": folder.name})):
        pass


def _check_disk_space(count: int, report: Callable[[str], object]) -> None:
    # The copy needs as much space as the database files. A migration that rewrites a table needs twice as much, for the
    # table and for its journal.
    needed = SPARE_BYTES + (3 * databases.measure_files() if databases.uses_sqlite() else measure_rows())
    free = shutil.disk_usage(settings.DATA_DIR).free
    if needed > free:
        raise BackupError(
            f"Pending migrations: {count}. The disk has no room for the backup before them: {needed} bytes needed, "
            f"{free} free. Free up space, or skip the backup: bootstrap --no-backup."
        )
    report(f"  pending migrations: {count}; they and the backup before them take up to {size_text(needed)} of the disk")
