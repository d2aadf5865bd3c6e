"""Changes the secrets of the installation: the keys that encrypt provider keys, and the secret that signs."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from capabilities import actions
from capabilities.actions.stored_keys import (
    SecretElsewhereError,
    add_secrets,
    agents_behind,
    check_files,
    drop_secrets,
)
from capabilities.secrets import KeyUnreadableError
from routing_admin.management import command
from routing_admin.queries.tokens import tokens_behind


class Command(command.Command):
    """The command."""

    help = (
        "Re-encrypt every stored provider key with the first of ROUTING_ADMIN_KEYS. --new first creates successors "
        "to both secrets of the data directory; older ones stay valid until --drop-old. The server can keep running."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """A new pair of secrets, or the end of the old ones."""
        parser.add_argument("--new", action="store_true", help="make new secrets of both kinds first")
        parser.add_argument("--drop-old", action="store_true", help="leave only the newest secret of each kind")
        parser.add_argument(
            "--force",
            action="store_true",
            help="drop old ones though keys of agents, or tokens, end with them: these need new ones",
        )

    def run(self, **options: Any) -> None:
        """What was encrypted anew, and what still needs an older secret. Raises `CommandError` for what cannot be."""
        actor = command.command_actor()
        try:
            if options["new"]:
                add_secrets(actor)
            elif options["drop_old"]:
                check_files()
            count = actions.rotate_stored_keys(actor)
        except SecretElsewhereError as refusal:
            raise CommandError(str(refusal)) from refusal
        except KeyUnreadableError as problem:
            raise CommandError(
                "A stored key was encrypted with a key that ROUTING_ADMIN_KEYS does not have. Nothing was changed: "
                "add that key, or have the provider's key entered again."
            ) from problem
        self.stdout.write(
            f"Stored provider keys encrypted anew: {count}. Only the first of ROUTING_ADMIN_KEYS is needed."
        )
        behind = [*agents_behind(), *tokens_behind()]
        if options["drop_old"]:
            if behind and not options["force"]:
                raise CommandError(
                    "Keys of these agents, links to their pages, or tokens, did not come in since the secret was "
                    f"changed: {', '.join(behind)}. Wait until they were used, issue new ones, or end them with "
                    "--force."
                )
            drop_secrets(actor)
            self.stdout.write("Older secrets are gone; sessions that they signed end with the next start.")
        elif behind:
            self.stdout.write(
                f"An older ROUTING_ADMIN_SECRET_KEY is still needed by keys or links of: {', '.join(behind)}. A key is "
                "signed anew when it comes in; then: rotate_keys --drop-old."
            )
