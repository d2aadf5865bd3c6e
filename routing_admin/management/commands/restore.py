"""Restore an installation from a backup."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from capabilities.core.translatable import pluralize
from capabilities.quantities import size_text
from routing_admin.console.backups.manifest import BackupError
from routing_admin.console.backups.restoring import restore
from routing_admin.management import command


class Command(command.Command):
    help = (
        "Restore a backup after checking all of it. Stop the server first. --replace moves the existing "
        "installation aside; without it, nothing existing is changed."
    )
    # A backup replaces all rows, so it does not matter which version of the program wrote them.
    refuses_newer_schema = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="a folder created by backup")
        parser.add_argument(
            "--replace", action="store_true", help="move the existing installation aside and take its place"
        )

    def run(self, **options: Any) -> None:
        try:
            result = restore(command.command_actor(), options["folder"].absolute(), replace=options["replace"])
        except BackupError as refusal:
            raise CommandError(str(refusal)) from refusal
        found = result.manifest
        artifacts = (
            "artifacts unchanged"
            if found.artifacts is None
            else f"{pluralize(found.artifacts, 'artifact')} ({size_text(found.artifact_bytes or 0)})"
        )
        self.stdout.write(f"Restored the backup of {found.created_at}: revision {found.revision or 0}, {artifacts}.")
        for folder in result.moved_aside:
            self.stdout.write(f"The previous installation is in {folder}")
        for sentence in result.remarks:
            self.stderr.write(sentence)
        self.stdout.write("Check it: routing-admin doctor")
