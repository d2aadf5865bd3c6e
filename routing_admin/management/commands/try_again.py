"""Has providers tried again at once that are left alone after failures."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from routing_admin.console.dashboard.actions import try_again
from routing_admin.management import command


class Command(command.Command):
    """The command."""

    help = (
        "End the cooldown of providers and keys after failures, in every serving process, within a second. Use it "
        "once the cause is fixed, for example after topping up an account."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Which ones."""
        parser.add_argument("provider", nargs="*", help="names of providers; default: all")

    def run(self, **options: Any) -> None:
        """One line: who is tried again. Raises `NotFoundError` for a name that no provider has."""
        names = try_again(command.command_actor(), options["provider"])
        self.stdout.write(f"Tried again with the next call: {', '.join(names) or 'none, there is no provider yet'}.")
