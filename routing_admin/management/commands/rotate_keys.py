"""Encrypts every stored provider key anew with the newest of ROUTING_ADMIN_KEYS, so that older ones can go."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError

from capabilities import actions
from capabilities.secrets import KeyUnreadableError
from routing_admin.management import command


class Command(command.Command):
    """The command."""

    help = (
        "Encrypt every stored provider key anew with the first of ROUTING_ADMIN_KEYS; older ones are not needed then."
    )

    def run(self, **options: Any) -> None:
        """One line: how many. Raises `CommandError` where one cannot be opened, and nothing was changed."""
        try:
            count = actions.rotate_stored_keys(command.command_actor())
        except KeyUnreadableError as problem:
            raise CommandError(
                "A stored key was encrypted with a key that ROUTING_ADMIN_KEYS does not have. Nothing was changed: "
                "add that key, or have the provider's key entered again."
            ) from problem
        self.stdout.write(
            f"Stored provider keys encrypted anew: {count}. Only the first of ROUTING_ADMIN_KEYS is needed."
        )
