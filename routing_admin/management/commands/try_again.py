"""End the cooldowns of providers, so that the next request calls them again."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from routing_admin.console.dashboard.actions import reset_cooldowns
from routing_admin.management import command


class Command(command.Command):
    help = (
        "End the cooldown of providers and keys after failures, in every serving process, within a second. Use it "
        "once the cause is fixed, for example after topping up an account."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("provider", nargs="*", help="names of providers; default: all")

    def run(self, **options: Any) -> None:
        names = reset_cooldowns(command.command_actor(), options["provider"])
        self.stdout.write(f"Tried again with the next call: {', '.join(names) or 'none, there is no provider yet'}.")
