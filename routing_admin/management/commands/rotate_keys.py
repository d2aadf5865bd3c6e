"""Rotate the installation's secrets: the encryption keys for provider keys, and the signing secret."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from capabilities.secrets import KeyUnreadableError
from routing_admin.console.people.queries import list_outdated_tokens
from routing_admin.console.providers.stored_keys import (
    SecretElsewhereError,
    add_secrets,
    check_files,
    drop_secrets,
    list_outdated_agents,
    rotate_stored_keys,
)
from routing_admin.management import command


class Command(command.Command):
    help = (
        "Re-encrypt every stored provider key with the first of ROUTING_ADMIN_KEYS. --new first creates new "
        "versions of both secrets in the data directory; older ones stay valid until --drop-old. The server can keep "
        "running."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--new", action="store_true", help="create new secrets of both kinds first")
        parser.add_argument("--drop-old", action="store_true", help="keep only the newest secret of each kind")
        parser.add_argument(
            "--force",
            action="store_true",
            help="drop old ones even if agent keys or tokens stop working and must be replaced",
        )

    def run(self, **options: Any) -> None:
        actor = command.command_actor()
        try:
            if options["new"]:
                add_secrets(actor)
            # Check the key files before anything is re-encrypted.
            elif options["drop_old"]:
                check_files()
            count = rotate_stored_keys(actor)
        except SecretElsewhereError as refusal:
            raise CommandError(str(refusal)) from refusal
        except KeyUnreadableError as problem:
            raise CommandError(
                "A stored key was encrypted with a key that ROUTING_ADMIN_KEYS does not have. Nothing was changed: "
                "add that key, or enter the provider's key again."
            ) from problem
        self.stdout.write(
            f"Stored provider keys re-encrypted: {count}. Only the first of ROUTING_ADMIN_KEYS is needed now."
        )
        outdated = [*list_outdated_agents(), *list_outdated_tokens()]
        if options["drop_old"]:
            # The outdated keys, links and tokens are signed with a secret that is about to be removed, so they would
            # then stop working.
            if outdated and not options["force"]:
                raise CommandError(
                    "Some agent keys, page links or tokens were not used since the secret changed. They belong to: "
                    f"{', '.join(outdated)}. Wait until they are used, issue new ones, or use --force to end them."
                )
            drop_secrets(actor)
            self.stdout.write("Old secrets removed. Sessions signed with them end at the next start.")
        elif outdated:
            self.stdout.write(
                f"Keys or links of these still need an older ROUTING_ADMIN_SECRET_KEY: {', '.join(outdated)}. Each is "
                "signed again when it is used. Then run: routing-admin rotate-keys --drop-old."
            )
