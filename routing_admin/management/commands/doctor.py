"""Says whether the installation is whole."""

from __future__ import annotations

import sys
from typing import Any

from django.conf import settings
from django.db import DatabaseError

from artifacts import sniffer
from routing_admin.configuration import integrity
from routing_admin.management import command


class Command(command.Command):
    """The examination."""

    help = "Check databases, configuration, history, keys and every artifact's bytes. Exit status 1 when one is not ok."

    def run(self, **options: Any) -> None:
        """A line per check, a line per problem; changes nothing."""
        bad = 0
        for name, check in integrity.CHECKS.items():
            try:
                problems = check()
            except DatabaseError as failure:
                problems = [f"cannot be checked: {failure}"]
            self.stdout.write(f"{'bad' if problems else 'ok ':<4} {name}")
            for problem in problems:
                self.stderr.write(f"     {name}: {problem}")
            bad += bool(problems)
        self.stdout.write(f"ok   file types: {sniffer.describe_sniffer()}")
        self.stdout.write(f"ok   pages of other origins: {', '.join(settings.CORS_ORIGINS) or 'none may call'}")
        if bad:
            self.stderr.write(f"{bad} of {len(integrity.CHECKS)} checks failed.")
            sys.exit(1)
