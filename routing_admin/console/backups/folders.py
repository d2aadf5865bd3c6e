"""The folder of a backup: hidden and locked while it is written, named once it is whole, removed if its writer died."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from routing_admin.configuration import exports
from routing_admin.console.backups.databases import FILES, sync
from routing_admin.console.backups.manifest import ARTIFACTS, MANIFEST, SECRETS, SUMS, BackupError
from routing_admin.platform.server.process_mark import hold_unless_locked, try_lock

PART = ".part"
"""The end of the name of a folder that is being written. The name begins with a dot, so a shell's `*/` skips it."""
CONTENTS = (ARTIFACTS, MANIFEST, SUMS, SECRETS, "rows", *FILES.values(), *(f"{each}.json" for each in exports.FILES))
"""How the names of everything in a backup begin, finished or not."""


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """Yield an empty private folder that becomes `out` if the block succeeds, and is removed otherwise.

    Remove what killed backups left beside it. Raise `BackupError` if there is such a folder already.
    """
    if out.exists():
        raise BackupError(f"{out} already exists. A backup needs a new folder.")
    part = out.with_name(f".{out.name}{PART}")
    out.parent.mkdir(parents=True, exist_ok=True)
    remove_unfinished(out.parent)
    try:
        part.mkdir(mode=0o700)
    except FileExistsError:
        raise BackupError(f"{part} exists: another backup is running. If none is, remove it.") from None
    lock = os.open(part, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks: then nothing of it is removed unasked
            try_lock(lock)
        yield part
        os.rename(part, out)
        sync(out.parent)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    finally:
        os.close(lock)


def remove_unfinished(folder: Path) -> None:
    """Remove the unfinished backups in a folder whose process has ended; earlier versions did not hide theirs."""
    for part in folder.glob(f"*{PART}"):
        if part.is_dir() and all(each.name.startswith(CONTENTS) for each in part.iterdir()):
            with suppress(OSError), hold_unless_locked(part) as is_free:
                if is_free:
                    shutil.rmtree(part)
