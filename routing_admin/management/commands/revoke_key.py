"""Revoke an agent key, an administrator's token or a page link, given the whole text or only its public part."""

from __future__ import annotations

import re
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError, CommandParser

from capabilities.errors import NotFoundError
from routing_admin.configuration.agents.actions import revoke_key as act_revoke_key
from routing_admin.configuration.agents.actions import roll_key
from routing_admin.configuration.agents.queries import find_key_by_public_id
from routing_admin.console.agents.actions import revoke_link as act_revoke_link
from routing_admin.console.agents.queries import find_link_by_public_id
from routing_admin.console.people.actions import revoke_token
from routing_admin.console.people.queries import find_token
from routing_admin.management import command

if TYPE_CHECKING:
    from capabilities.models import AgentKey

KEY = re.compile(r"\b(ra|rat|rap)_([0-9a-z]{8})(?:_[A-Za-z0-9_-]+)?")
"""Pattern that finds a key, token or link in any text. Only the public part is required."""


class Command(command.Command):
    help = (
        "Revoke a leaked agent key (ra_…), administrator's token (rat_…) or link to an agent's page (rap_…). The "
        "first part, as shown on pages and in the audit log, is enough. Servers refuse it within a second."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("key", help="the key or its first part, ra_xxxxxxxx; - reads it from standard input")
        parser.add_argument(
            "--replace",
            action="store_true",
            help="print only a replacement key on standard output: same agent, scopes, limits and labels",
        )

    def run(self, **options: Any) -> None:
        text = sys.stdin.read() if options["key"] == "-" else options["key"]
        found = KEY.search(text)
        if found is None:
            raise CommandError(
                "That is not a key. Keys begin with ra_ (agent), rat_ (administrator's token) or rap_ (link)."
            )
        kind, public = found[1], found[2]
        if kind == "rat":
            self.revoke_token(public, replace=options["replace"])
        elif kind == "rap":
            self.revoke_link(public, replace=options["replace"])
        else:
            self.revoke_key(public, replace=options["replace"])

    def revoke_key(self, public: str, *, replace: bool) -> None:
        row = find_key_by_public_id(public)
        if row is None:
            raise NotFoundError(f"There is no key ra_{public}. Each agent's page lists its keys.")
        if row.revoked_at is not None:
            self.stderr.write(f"The key ra_{public} of {row.agent.agent_id} was already revoked.")
            return
        successor = self.replace_key(row) if replace else ""
        act_revoke_key(command.command_actor(), row)
        self.stderr.write(f"The key ra_{public} of {row.agent.agent_id} is revoked.")
        if successor:
            self.stdout.write(successor)

    def replace_key(self, row: AgentKey) -> str:
        # End the old key immediately, because a leaked key must not stay valid.
        key, _row = roll_key(command.command_actor(), row, overlap=timedelta(0))
        return key

    def revoke_token(self, public: str, *, replace: bool) -> None:
        if replace:
            raise CommandError("Tokens are only created on the page Users → Tokens for scripts. Leave out --replace.")
        row = find_token(public)
        if row is None:
            raise NotFoundError(f"There is no token rat_{public}. The page Users → Tokens for scripts lists them.")
        before = row.revoked_at is not None
        revoke_token(command.command_actor(), row)
        sentence = "was already revoked" if before else "is revoked"
        self.stderr.write(f"The token {row.name} of {row.owner.get_username()} (rat_{public}) {sentence}.")

    def revoke_link(self, public: str, *, replace: bool) -> None:
        if replace:
            raise CommandError("Links can only be created on the agent's page. Leave out --replace.")
        row = find_link_by_public_id(public)
        if row is None:
            raise NotFoundError(f"There is no link rap_{public}. Each agent's page lists its links.")
        before = row.revoked_at is not None
        act_revoke_link(command.command_actor(), row)
        sentence = "was already revoked" if before else "is revoked"
        self.stderr.write(f"The link for {row.name} to the page of {row.agent.agent_id} (rap_{public}) {sentence}.")
