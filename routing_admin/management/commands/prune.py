"""Remove data that is older than the settings allow; to be run daily."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from capabilities.core.translatable import pluralize
from capabilities.quantities import size_text
from routing_admin.console.settings.pruning import UNDO_WINDOW, prune
from routing_admin.management import command


class Command(command.Command):
    help = (
        "Remove expired requests, artifacts and sessions, as set on the settings page. Run it daily. If the disk is "
        "full, the options free more space."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--deleted",
            action="store_true",
            help="also artifacts deleted within the last day; this cannot be undone",
        )
        parser.add_argument(
            "--requests",
            type=float,
            metavar="DAYS",
            help="keep requests for only this many days, whatever the settings say",
        )

    def run(self, **options: Any) -> None:
        undo = timedelta(0) if options["deleted"] else UNDO_WINDOW
        result = prune(command.command_actor(), timezone.now(), request_days=options["requests"], undo=undo)
        self.stdout.write(
            f"Removed {pluralize(result.requests, 'request')}, "
            f"{pluralize(result.artifacts, 'artifact')} ({size_text(result.bytes)}), "
            f"{pluralize(result.agents, 'agent')}, {pluralize(result.sessions, 'session')}, "
            f"{pluralize(result.leftovers, 'unfinished upload')}, {pluralize(result.forgotten, 'orphaned file')}, "
            f"{pluralize(result.thumbnails, 'thumbnail')}."
        )
