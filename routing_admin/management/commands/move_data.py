"""Copy the installation to another database and another artifact store, without changing the source."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError, InterfaceError

from artifacts.core.store import ByteStore
from capabilities.core.translatable import pluralize
from routing_admin.console.backups.data_transfer.copying import (
    FILES,
    check_store,
    copy_files,
    copy_rows,
    open_target_store,
    verify_files,
    verify_rows,
)
from routing_admin.console.backups.data_transfer.rows import count_all
from routing_admin.console.backups.data_transfer.serving import exclude_writers, is_in_use
from routing_admin.console.backups.data_transfer.streams import TextDigest
from routing_admin.console.backups.data_transfer.tables import Table, list_tables
from routing_admin.console.backups.data_transfer.target import ALIASES, Destination, MoveError
from routing_admin.management import command
from routing_admin.platform.databases.progress import show_progress

IN_USE = "This installation's database is in use. Stop `routing-admin serve` and other commands, then try again."
INTERRUPTED = "The move was interrupted. Run it again to continue where it stopped. The database says:"


class Command(command.Command):
    help = (
        "Copy every row, and with --artifacts every file, to another database and store. The source does not change. "
        "Run it again to continue an interrupted move."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--to", required=True, metavar="DATABASE_URL", help="postgres://… or sqlite:////path")
        parser.add_argument(
            "--artifacts", default="", metavar="URL", help="s3://bucket/prefix?…, or files; without it they stay"
        )

    def run(self, **options: Any) -> None:
        if is_in_use():
            raise CommandError(IN_USE)
        target = Destination(options["to"])
        try:
            store = open_target_store(options["artifacts"]) if options["artifacts"] else None
            tables = list_tables()
            with exclude_writers(tables):
                self.move(tables, target, store)
        except MoveError as problem:
            raise CommandError(str(problem)) from None
        except (DatabaseError, InterfaceError) as problem:
            raise CommandError(f"{INTERRUPTED} {str(problem).splitlines()[0]}") from None
        finally:
            target.close()
        self.show_settings(options["to"], options["artifacts"])

    def move(self, tables: list[Table], target: Destination, store: ByteStore | None) -> None:
        """Copy everything and verify the copy; raise `MoveError` if this fails."""
        target.open()
        if target.check(tables):
            self.stdout.write("Continuing an interrupted move to this target.")
        else:
            if store is not None:
                check_store(store)
            # Mark the target, so that a later run can continue this move.
            target.claim()
        target.prepare(tables)
        # Copy files before rows, so that no row refers to a file that does not exist yet.
        self.move_files(store)
        databases = {alias: alias for alias in ALIASES}
        total = count_all(tables, databases)
        digests: dict[Table, TextDigest | None] = dict.fromkeys(tables)
        if not target.is_done:
            with show_progress("Rows copied", total) as counter:
                digests = {table: copy_rows(target, table, counter) for table in tables}
        # This run has no digests of tables that an earlier run copied, so their rows are read again to compare them.
        unverified = count_all([table for table, digest in digests.items() if digest is None], databases)
        with show_progress("Rows verified", total + unverified) as counter:
            count = sum(verify_rows(table, digest, counter) for table, digest in digests.items())
        target.finish(tables)
        self.stdout.write(
            f"Same on both sides, counted and hashed: {pluralize(count, 'row')} in {pluralize(len(tables), 'table')}."
        )

    def move_files(self, store: ByteStore | None) -> None:
        if store is None:
            return
        with show_progress("Files copied") as counter:
            lost = copy_files(store, lambda _: counter.advance())
        self.stdout.write(
            f"Read back and verified by SHA-256: {pluralize(verify_files(store, lost), 'artifact file')}."
        )
        for sha256 in lost:
            self.stderr.write(f"The file with SHA-256 {sha256} is also missing or damaged here. Run: doctor")

    def show_settings(self, url: str, artifacts: str) -> None:
        password = urlsplit(url).password
        self.stdout.write("\nThe source has not changed. Set these and start:")
        # Omit the password from the printed URL.
        self.stdout.write(f"  DATABASE_URL={url.replace(f':{password}@', ':…@', 1) if password else url}")
        if artifacts == FILES:
            self.stdout.write("  ROUTING_ADMIN_ARTIFACTS_URL unset")
        elif artifacts:
            self.stdout.write(f"  ROUTING_ADMIN_ARTIFACTS_URL={artifacts}")
        self.stdout.write(
            f"The secrets stay where they are: secret_key and keys in {settings.DATA_DIR}, or ROUTING_ADMIN_SECRET_KEY "
            "and ROUTING_ADMIN_KEYS. Every machine needs the same ones."
        )
