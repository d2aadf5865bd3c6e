"""Issue an agent key, and print only the key on stdout."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from capabilities.core.permissions import DEFAULT_SCOPES, SCOPES
from capabilities.errors import NotFoundError
from routing_admin.configuration.agents.actions import issue_key
from routing_admin.configuration.agents.queries import find_agent, list_agent_ids
from routing_admin.management import command


class Command(command.Command):
    help = "Issue a key for an agent. It is shown only once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("agent", help="the agent's id")
        parser.add_argument(
            "--scope",
            action="append",
            metavar="SCOPE",
            help=f"can be repeated; default: {' '.join(DEFAULT_SCOPES)}; available: {' '.join(SCOPES)}",
        )
        parser.add_argument(
            "--expires", type=float, metavar="DAYS", help=("days until the key expires; default: never")
        )

    def run(self, **options: Any) -> None:
        agent = find_agent(options["agent"])
        if agent is None:
            known = ", ".join(list_agent_ids()) or "none yet"
            raise NotFoundError(f"There is no agent {options['agent']}. There are: {known}.")
        expires = timezone.now() + timedelta(days=options["expires"]) if options["expires"] else None
        key, _row = issue_key(
            command.command_actor(),
            agent,
            scopes=options["scope"] or DEFAULT_SCOPES,
            label="command",
            expires_at=expires,
        )
        self.stdout.write(key)
