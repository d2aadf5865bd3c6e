"""Restore a backup: verify all of it, move the existing installation aside, and replace it with the backup."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.db import connections
from django.utils import timezone

from artifacts.core.store import BLOCK
from artifacts.storage.content import byte_store
from artifacts.storage.files import FileStore
from capabilities.actors import Actor, AuditedAction
from capabilities.signing import read_secrets_again
from routing_admin.configuration import exports, integrity, snapshot
from routing_admin.configuration.audit import NOTED, find_head, record_head
from routing_admin.configuration.revisions import ledger
from routing_admin.console.backups import databases
from routing_admin.console.backups.data_transfer.serving import is_in_use
from routing_admin.console.backups.databases import FILES, sync
from routing_admin.console.backups.manifest import (
    ARTIFACTS,
    MANIFEST,
    SECRETS,
    SUMS,
    BackupError,
    Manifest,
    matches_hash,
    read_manifest,
)
from routing_admin.console.backups.rows import copy_file, has_rows, restore_rows, set_schema_aside
from routing_admin.platform.databases.schema import NewerSchemaError, refuse_newer
from routing_admin.platform.server.file_locks import hold_unless_locked, try_lock

# On SQLite, the request log with its indexes and temporary files takes this many times the size of its text.
UNPACKED = 4
SECRET_FILES = ("secret_key", "keys")
"""Files in the data directory that contain secrets."""


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of a restore: where the previous installation was moved, and what the operator must still do."""

    manifest: Manifest
    moved_aside: tuple[str, ...]
    remarks: tuple[str, ...]


def restore(actor: Actor, folder: Path, *, replace: bool = False) -> Restored:
    """Replace the installation with a backup. If this raises `BackupError`, nothing has changed."""
    manifest = read_manifest(folder)
    try:
        for database in manifest.databases.values():
            refuse_newer([(app, name) for app, name in database.migrations], "The backup was made by")
    except NewerSchemaError as error:
        raise BackupError(str(error)) from error
    # Check everything before moving anything.
    _check_disk_space(folder, manifest, replace=replace)
    _close_databases()
    with _set_files_aside(manifest) as aside, _set_rows_aside() as schema:
        _restore_contents(folder, manifest)
    remarks = tuple(_remarks(folder, manifest))
    details = {"createdAt": manifest.created_at, "revision": manifest.revision, "auditHead": manifest.audit_head}
    with ledger.audit(actor, AuditedAction("installation.restore", details=details)):
        pass
    if (head := find_head()) is not None:
        record_head(head)
    return Restored(manifest, tuple(str(place) for place in (schema, aside) if place), remarks)


def _close_databases() -> None:
    connections.close_all()
    if not databases.uses_sqlite():
        if is_in_use():
            raise BackupError("Another process is using the database. Stop the servers on every machine first.")
        return
    for alias in databases.FILES:
        try:
            databases.merge_files(databases.database_path(alias))
        except databases.DatabaseInUseError:
            raise BackupError(
                f"{databases.database_path(alias)} is open in another process. Stop the server first, then restore."
            ) from None


def _set_rows_aside() -> AbstractContextManager[str | None]:
    return nullcontext() if databases.uses_sqlite() else set_schema_aside()


def _check_disk_space(folder: Path, manifest: Manifest, *, replace: bool) -> None:
    existing = [str(path) for path in _replaced_paths(manifest) if path.exists() and _is_in_use(path)]
    if not databases.uses_sqlite() and has_rows():
        existing.insert(0, "rows in the database")
    if existing and not replace:
        raise BackupError(
            f"There is already an installation: {', '.join(existing)}. Use --replace to move it aside and restore the "
            "backup in its place."
        )
    needed = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    needed += sum(
        UNPACKED * (database.text_bytes or 0) for database in manifest.databases.values() if databases.uses_sqlite()
    )
    free = shutil.disk_usage(settings.DATA_DIR).free
    if needed > free:
        raise BackupError(f"Not enough disk space: the backup needs {needed} bytes, and {free} are free.")


def _is_in_use(path: Path) -> bool:
    return path.stat().st_size > 0 if path.is_file() else any(entry.is_file() for entry in path.rglob("*"))


def _replaced_paths(manifest: Manifest) -> list[Path]:
    parts = [databases.database_path(alias) for alias in databases.FILES] if databases.uses_sqlite() else []
    if manifest.artifacts is not None and isinstance(byte_store(), FileStore):
        parts.append(Path(settings.DATA_DIR) / ARTIFACTS)
    return parts


@contextmanager
def _set_files_aside(manifest: Manifest) -> Iterator[Path | None]:
    root = Path(settings.DATA_DIR)
    aside = root / f"before-restore-{timezone.now():%Y%m%dT%H%M%S%f}"
    paths = [*_replaced_paths(manifest), root / NOTED]
    if manifest.artifacts is not None:
        paths.append(root / "thumbnails")
    if manifest.has_secrets:
        paths += [root / name for name in SECRET_FILES]
    moved = []
    try:
        for path in paths:
            if path.exists() and _is_in_use(path):
                aside.mkdir(mode=0o700, exist_ok=True)
                shutil.move(path, aside / path.name)
                moved.append(path)
        yield aside if moved else None
    # On failure, delete what was restored so far and move the previous files back.
    except BaseException:
        connections.close_all()
        for path in paths:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        for path in moved:
            shutil.move(aside / path.name, path)
        if moved:
            aside.rmdir()
        raise


def _restore_contents(folder: Path, manifest: Manifest) -> None:
    # Restore artifacts first, so that no restored row refers to missing bytes.
    if manifest.artifacts is not None:
        _restore_artifacts(folder)
    if manifest.has_secrets:
        _restore_secrets(folder)
    if not databases.uses_sqlite():
        restore_rows(folder, manifest)
        return
    for alias, saved in manifest.databases.items():
        if saved.is_packed:
            copy_file(folder, saved, databases.database_path(alias))
        else:
            databases.replace_database(folder / saved.file, databases.database_path(alias))
    for alias in manifest.databases:
        call_command("migrate", database=alias, verbosity=0, interactive=False)


def _restore_artifacts(folder: Path) -> None:
    if isinstance(byte_store(), FileStore):
        # This recreates the store's folders, which were moved aside.
        FileStore(Path(settings.DATA_DIR) / ARTIFACTS)
    # The store computes each hash again, which shows whether the file is intact.
    store = byte_store()
    for path in sorted((folder / ARTIFACTS).glob("??/*")):
        with path.open("rb") as file:
            if store.put(iter(lambda file=file: file.read(BLOCK), b"")).sha256 != path.name:  # type: ignore[misc]
                raise BackupError(f"The backup is incomplete: {path.name} is damaged.")


def _restore_secrets(folder: Path) -> None:
    saved = json.loads((folder / SECRETS).read_text(encoding="utf-8"))
    for name in SECRET_FILES:
        path = Path(settings.DATA_DIR) / name
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(",".join(saved[name]))
    # The restored secrets apply to this process at once, unless the environment sets other secrets.
    read_secrets_again()


def _remarks(folder: Path, manifest: Manifest) -> Iterator[str]:
    if not any(matches_hash(secret, manifest.secret_marks[0]) for secret in settings.SIGNING_SECRETS):
        yield (
            "The signing secret differs from the one in use when the backup was made: every agent needs a new key, and "
            "people must sign in again. To keep the old keys, set ROUTING_ADMIN_SECRET_KEY to the saved one."
        )
    yield from integrity.keys()
    if manifest.missing:
        yield f"Files missing or damaged when the backup was made: {len(manifest.missing)}."
    snapshot.refresh()
    for name in exports.FILES:
        path = folder / f"{name.value}.json"
        if path.exists() and exports.export(name).text != path.read_text(encoding="utf-8"):
            yield f"{path.name} is exported otherwise than when the backup was made, by another version of the program."


# While a backup is being written, its folder is hidden and locked. The folder is renamed when the backup is complete.
# If the writing process dies, a later backup deletes the folder.

PART_SUFFIX = ".part"
"""Suffix of an unfinished backup's folder. The folder's name begins with a dot, so that `*/` in a shell skips it."""
CONTENTS = (ARTIFACTS, MANIFEST, SUMS, SECRETS, "rows", *FILES.values(), *(f"{file}.json" for file in exports.FILES))
"""Every file or folder in a finished or unfinished backup has a name with one of these prefixes."""


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty private folder. It is renamed to `folder` if the block succeeds, and deleted otherwise.

    This also deletes folders next to it that other processes left unfinished when they ended. Raise `BackupError` if
    `folder` exists or another backup is writing it.
    """
    if folder.exists():
        raise BackupError(f"{folder} already exists. A backup needs a new folder.")
    part = folder.with_name(f".{folder.name}{PART_SUFFIX}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    remove_unfinished(folder.parent)
    try:
        part.mkdir(mode=0o700)
    except FileExistsError:
        raise BackupError(f"{part} exists: another backup is running. If none is, remove it.") from None
    lock = os.open(part, os.O_RDONLY)
    try:
        with suppress(OSError):  # On a file system without locks, unfinished backups are never deleted.
            try_lock(lock)
        yield part
        os.rename(part, folder)
        sync(folder.parent)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    finally:
        os.close(lock)


def remove_unfinished(folder: Path) -> None:
    """Delete unfinished backups in a folder whose processes have ended."""
    # Earlier versions did not hide unfinished folders, so delete a folder only if all files in it belong to a backup.
    for part in folder.glob(f"*{PART_SUFFIX}"):
        if part.is_dir() and all(entry.name.startswith(CONTENTS) for entry in part.iterdir()):
            with suppress(OSError), hold_unless_locked(part) as is_free:
                if is_free:
                    shutil.rmtree(part)
