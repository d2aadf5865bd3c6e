"""Carries out the retention that the settings page says; to be run daily."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from capabilities.templatetags.ui import size
from routing_admin.actions.pruning import prune
from routing_admin.management import command


class Command(command.Command):
    """The command."""

    help = "Remove requests, artifacts and sessions that are past their time, as the settings page says. Run it daily."

    def run(self, **options: Any) -> None:
        """One line: what went."""
        done = prune(command.command_actor(), timezone.now())
        self.stdout.write(
            f"Removed {done.requests} requests, {done.artifacts} artifacts ({size(done.bytes)}), {done.agents} agents, "
            f"{done.sessions} sessions, {done.leftovers} unfinished uploads, "
            f"{done.forgotten} forgotten files, {done.thumbnails} thumbnails."
        )
