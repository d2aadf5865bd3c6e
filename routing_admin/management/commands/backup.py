"""Back up the installation into a new folder while the server is running."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from capabilities.core.translatable import pluralize
from capabilities.quantities import size_text
from routing_admin.console.backups.manifest import BackupError
from routing_admin.console.backups.saving import back_up, record_backup
from routing_admin.management import command


class Command(command.Command):
    help = (
        "Save databases, artifacts and configuration, as of one moment, to a new folder. The server can keep "
        "running. Secrets are not included: save secret_key and keys from the data directory elsewhere, or use "
        "--with-secrets."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("out", type=Path, nargs="?", help="the folder to write; it must not exist yet")
        parser.add_argument(
            "--record",
            action="store_true",
            help="save nothing: note that another tool (pg_dump) has just made a complete backup",
        )
        parser.add_argument(
            "--with-secrets",
            action="store_true",
            help="include the secrets; anyone with the backup then has every key",
        )

    def run(self, **options: Any) -> None:
        if options["record"]:
            record_backup(command.command_actor(), {"record": True})
            self.stdout.write("Noted: another tool has made a backup.")
            return
        if options["out"] is None:
            raise CommandError("Name the folder to write, or use --record after another tool's backup.")
        out: Path = options["out"].absolute()
        try:
            result = back_up(command.command_actor(), out, with_secrets=options["with_secrets"])
        except BackupError as refusal:
            raise CommandError(str(refusal)) from refusal
        for sha256 in result.missing:
            self.stderr.write(f"The file {sha256} is missing or damaged, and not in the backup. Run: doctor")
        self.stdout.write(
            f"Saved to {out}: revision {result.revision or 0}, "
            f"{pluralize(result.artifacts or 0, 'artifact')} ({size_text(result.artifact_bytes or 0)})."
        )
        if result.audit_head:
            self.stdout.write(f"Audit log up to {result.audit_head}")
        self.stdout.write(
            "Secrets are included. Protect the backup like the keys themselves."
            if result.has_secrets
            else "Secrets are not included. Without the saved secret_key and keys, every key must be entered again."
        )
