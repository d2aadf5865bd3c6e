"""Set a provider's key from the command line."""

from __future__ import annotations

import sys
from getpass import getpass
from typing import Any

from django.core.management.base import CommandError, CommandParser

from capabilities.errors import NotFoundError
from routing_admin.configuration import snapshot
from routing_admin.console.providers.actions import KeyAct, KeyChange, save_provider
from routing_admin.console.providers.queries import find_provider, list_provider_names
from routing_admin.management import command


class Command(command.Command):
    help = (
        "Set a provider's key (the first, if it has several). It is read from standard input and never printed. "
        "Calls use it within a second. Then revoke the old key at the vendor."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("provider", help="the provider's name")

    def run(self, **options: Any) -> None:
        name = options["provider"]
        row = find_provider(name)
        if row is None:
            raise NotFoundError(f"There is no provider {name}. There are: {', '.join(list_provider_names())}.")
        # The key is not an argument, because arguments are visible to all processes on the machine.
        text = (getpass("Key: ") if sys.stdin.isatty() else sys.stdin.read()).strip()
        if not text:
            raise CommandError("No key on standard input. Nothing was changed.")
        save_provider(command.command_actor(), row, key=KeyChange(KeyAct.SET, text), expected=row.version)
        found = snapshot.current().keys[name]
        if found.variable and found.source == "override":
            self.stderr.write(f"{found.variable} in the environment overrides it. Change it there and restart.")
        self.stdout.write(f"{name} is now called with the key …{found.last_four}.")
