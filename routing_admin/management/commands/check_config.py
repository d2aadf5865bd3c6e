"""Check the given configuration files, or the stored configuration if none are given."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from capabilities.core.translatable import pluralize
from routing_admin.configuration import rows, snapshot
from routing_admin.console.exchange.actions import preview_import
from routing_admin.core.configuration.checks import check, check_describers
from routing_admin.management import command


class Command(command.Command):
    help = "Check configuration files, or without FILE the stored configuration. Exit status 1 if there is an error."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", nargs="*", type=Path, metavar="FILE")

    def run(self, **options: Any) -> None:
        files = self.read(options["files"])
        stored = rows.read()
        problems = [*check(stored), *check_describers(stored, stored)]
        if files:
            problems = list(preview_import(files).imported.problems)
        for problem in problems:
            self.stderr.write(f"{problem.severity}: {problem.line}")
        if not files:
            # The snapshot knows which provider keys the stored configuration lacks, but not which ones the files lack.
            for state in snapshot.current().keys.values():
                if state.reason:
                    self.stderr.write(f"warning: {state.reason}")
        errors = sum(problem.severity == "error" for problem in problems)
        self.stdout.write("No errors." if not errors else f"{pluralize(errors, 'error')}.")
        if errors:
            sys.exit(1)
