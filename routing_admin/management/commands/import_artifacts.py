"""Store every file below a directory as an artifact."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from artifacts import library as actions
from artifacts.core.errors import ArtifactError, TooLargeError
from artifacts.core.filenames import clean_filename
from artifacts.core.store import BLOCK
from artifacts.library.queries import has_copy
from artifacts.storage.content import byte_store
from capabilities.actors import Actor
from capabilities.errors import ActionError
from capabilities.json_bodies import upload_limit
from routing_admin.configuration.agents.queries import agent_exists

if TYPE_CHECKING:
    from artifacts.models import Artifact

ACTOR = Actor("command", "import_artifacts")


class Command(BaseCommand):
    """Import files. A file is not stored again if an artifact with its name and bytes already exists."""

    requires_system_checks = ()
    help = "Store every file below a directory as an artifact. Running it again changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("directory", type=Path, metavar="DIR", help="the directory to read")
        parser.add_argument("--owner", default="", metavar="AGENT", help="id of the agent they belong to")

    def handle(self, *args: Any, directory: Path, owner: str, **options: Any) -> None:
        """Import the files, and print a line for each new artifact.

        Raise `CommandError` for an unknown directory or agent, or at the end with one line for each file that was not
        stored.
        """
        if not directory.is_dir():
            raise CommandError(f"{directory} is not a directory.")
        if owner and not agent_exists(owner):
            raise CommandError(f"There is no agent {owner}. Create it first, or leave out --owner.")
        problems = []
        for path in list_files(directory):
            try:
                row = keep(path, owner)
            except (OSError, ArtifactError, ActionError) as error:
                reason = error.strerror if isinstance(error, OSError) else error
                problems.append(f"{escape_path(path.relative_to(directory))}: {reason}")
            else:
                if row is not None:
                    self.stdout.write(f"{row.ref} {escape_path(path.relative_to(directory))}")
        if problems:
            raise CommandError("\n".join(problems))


def escape_path(path: Path) -> str:
    """Return the path as one printable line, in which unprintable characters are escaped."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in str(path))


def list_files(directory: Path) -> Iterator[Path]:
    # Do not follow symbolic links, so that nothing outside the directory is imported.
    for path in sorted(directory.rglob("*")):
        if not path.is_symlink() and path.is_file():
            yield path


def keep(path: Path, owner: str) -> Artifact | None:
    """Store a file; return its artifact, or None if an artifact with this name and these bytes already exists.

    Raise `TooLargeError` if the file exceeds the upload limit.
    """
    if path.stat().st_size > upload_limit():
        raise TooLargeError(upload_limit())
    with path.open("rb") as file:
        stored = byte_store().put(iter(lambda: file.read(BLOCK), b""), upload_limit())
    # Store the bytes first, because only their hash tells whether the artifact exists; equal bytes need no extra space.
    if has_copy(stored.sha256, clean_filename(path.name), owner):
        return None
    blocks = byte_store().open_blocks(stored.sha256)
    return actions.store_blocks(ACTOR, blocks, owner=owner, filename=path.name)
