"""Write and read `manifest.json`, which describes a backup, and a list of file hashes in the format of `sha256sum -c`.

The manifest identifies the secrets that a backup needs by salted slow hashes, which do not reveal them.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from artifacts.core.store import BLOCK
from routing_admin.console.backups.databases import sync

MANIFEST, SUMS, SECRETS, ARTIFACTS = "manifest.json", "SHA256SUMS", "secrets.json", "artifacts"
FORMAT, PACKED_FORMAT = 1, 2
"""Values of the manifest's field `format`. In the first format, both databases are SQLite files; in the second, the
request log is in PostgreSQL's text format.
"""


class BackupError(Exception):
    """A backup cannot be made or used. The message says why, and what to do about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedDatabase:
    """A database in a backup: its file, source engine, migrations, and number of rows per table.

    If `file` is a folder of compressed PostgreSQL text, `text_bytes` is the uncompressed size.
    """

    file: str
    engine: str
    migrations: list[list[str]]
    rows: dict[str, int]
    text_bytes: int | None = None

    @property
    def is_packed(self) -> bool:
        return self.text_bytes is not None

    @property
    def row_count(self) -> int:
        return sum(self.rows.values())


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of a backup.

    `artifacts` and `artifact_bytes` are None if the backup contains only databases. `missing` lists the hashes of
    artifacts whose bytes could not be read. `secret_marks` are hashes of the secrets, newest first.
    """

    created_at: str
    version: str
    databases: dict[str, SavedDatabase]
    revision: int | None
    audit_head: str
    artifacts: int | None
    artifact_bytes: int | None
    missing: list[str]
    has_secrets: bool
    secret_marks: list[str] = field(default_factory=list)
    format: int = FORMAT


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, then the file with the hashes of all other files."""
    value = asdict(manifest)
    for database in value["databases"].values():
        if database["text_bytes"] is None:  # Older versions of the program do not know this field.
            del database["text_bytes"]
    text = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")
    sums = "".join(f"{digest}  {path.relative_to(folder)}\n" for path, digest in _digests(folder))
    (folder / SUMS).write_text(sums, encoding="utf-8")
    for name in (MANIFEST, SUMS):
        sync(folder / name)


def _digests(folder: Path) -> Iterator[tuple[Path, str]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != SUMS:
            # An artifact's file name is its hash, which was verified when the file was copied.
            yield path, path.name if ARTIFACTS in path.relative_to(folder).parts else digest_file(path)


def digest_file(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def read_manifest(folder: Path) -> Manifest:
    """Verify every file and return the manifest. Raise `BackupError` for an incomplete or damaged backup."""
    if not (folder / SUMS).is_file() or not (folder / MANIFEST).is_file():
        raise BackupError(f"{folder} is not a backup: {MANIFEST} or {SUMS} is missing.")
    lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    for name, digest in sums.items():
        path = folder / name
        if not path.is_file():
            raise BackupError(f"The backup is incomplete: {name} is missing.")
        if digest_file(path) != digest:
            raise BackupError(f"The backup is damaged: {name} has changed.")
    try:
        value = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if value["format"] not in (FORMAT, PACKED_FORMAT):
            raise BackupError(f"The backup has format {value['format']}, and this program reads up to {PACKED_FORMAT}.")
        databases = {alias: SavedDatabase(**fields) for alias, fields in value.pop("databases").items()}
        manifest = Manifest(**value, databases=databases)
    except (ValueError, KeyError, TypeError) as error:
        raise BackupError(f"{MANIFEST} cannot be read: {error}") from error
    # The loop above would accept a truncated SHA256SUMS file, so compare the files it lists with the manifest.
    artifact_count = sum(1 for name in sums if name.startswith(f"{ARTIFACTS}/"))
    if MANIFEST not in sums or artifact_count != (manifest.artifacts or 0):
        raise BackupError(f"The backup is incomplete: {SUMS} does not list everything that {MANIFEST} counts.")
    return manifest


# Cost parameters of the hash function scrypt.
COST, BLOCK_SIZE, PARALLEL = 2**14, 8, 1


def hash_secret(secret: str, salt: str = "") -> str:
    """Return the salted hash of a secret as `SALT:HASH`, in hexadecimal."""
    salt = salt or secrets.token_hex(16)
    digest = hashlib.scrypt(secret.encode(), salt=bytes.fromhex(salt), n=COST, r=BLOCK_SIZE, p=PARALLEL, dklen=32)
    return f"{salt}:{digest.hex()}"


def matches_hash(secret: str, mark: str) -> bool:
    salt, _, _ = mark.partition(":")
    return hmac.compare_digest(hash_secret(secret, salt), mark)
