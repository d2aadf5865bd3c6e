"""Probe services manually or from cron, in the same way as the server does every night."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from routing_admin.console.services.nightly import claim_all, find_live, probe_nightly
from routing_admin.console.services.probing import ProbeResult
from routing_admin.management import command


class Command(command.Command):
    help = "Ask the models of services what they read, and record the results. Run it daily if no server does."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("service", nargs="*", help="model services; default: those probed every night")

    def run(self, **options: Any) -> None:
        names: list[str] = options["service"]
        found = {name: find_live(name) for name in names}
        missing = [name for name, row in found.items() if row is None]
        if missing:
            raise CommandError(f"There is no enabled model service {', '.join(missing)}.")
        for row in found.values() if names else claim_all(timezone.now()):
            if row is not None:
                self.stdout.write(f"{row.service_id}: {describe(probe_nightly(row))}")


def describe(result: ProbeResult) -> str:
    if result.failed:
        return f"not probed: it does not answer plain text ({result.failed.fault})"
    parts = [
        ("reads ", [name for name, reads in result.answers.items() if reads]),
        ("does not read ", [name for name, reads in result.answers.items() if not reads]),
        ("unclear, left unchanged: ", result.unclear),
        ("declared otherwise, kept: ", result.contradicted),
        ("changed: ", list(result.changed)),
    ]
    return "; ".join(text + ", ".join(names) for text, names in parts if names)
