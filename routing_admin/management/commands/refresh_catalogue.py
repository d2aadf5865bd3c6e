"""Refresh the model catalogue from a file or from a provider's own model list, and print what changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from capabilities.core.providers.catalogue.refreshing import MAX_CATALOGUE_BYTES
from routing_admin.console.catalogue import actions as editions
from routing_admin.console.catalogue.queries import find_called_provider
from routing_admin.dispatch.provider_checks import ProviderChecker
from routing_admin.management import command


class Command(command.Command):
    help = (
        "Refresh the catalogue of models from a build's models.json.gz, models.dev's api.json, LiteLLM's map, or "
        "a provider's own list."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, metavar="FILE")
        parser.add_argument("--provider", help="fetch the model list of this provider instead")
        parser.add_argument("--dry-run", action="store_true", help="show what would change without changing anything")
        parser.add_argument("--drop", action="store_true", help="go back to the shipped catalogue")

    def run(self, **options: Any) -> None:
        choices = [options["file"], options["provider"], options["drop"] or None]
        if sum(choice is not None for choice in choices) != 1:
            raise CommandError("Give a file, --provider NAME or --drop.")
        if options["drop"]:
            self.show_revision(editions.use_shipped_edition(command.command_actor()).revision)
            return
        pk = self.read_file(options["file"]) if options["file"] else self.ask(options["provider"])
        self.show_preview(editions.preview_edition(pk))
        if options["dry_run"]:
            self.stdout.write("Nothing was changed (dry run).")
            return
        self.show_revision(editions.use_edition(command.command_actor(), pk).revision)

    def read_file(self, path: Path) -> int:
        """Store the catalogue version that a file contains, and return its number.

        Raise `CommandError` if the file is too large.
        """
        if path.stat().st_size > MAX_CATALOGUE_BYTES:
            raise CommandError(f"{path}: the file is too large to be a catalogue.")
        return editions.store_edition_file(path.read_bytes())

    def ask(self, name: str) -> int:
        """Store a catalogue version made from a provider's model list, and return its number.

        Raise `CommandError` if there is no such enabled provider, or if it returns no list.
        """
        row = find_called_provider(name)
        if row is None:
            raise CommandError(f"There is no enabled provider {name} that can be called.")
        answer = ProviderChecker().models(name)
        if answer.fault:
            raise CommandError(f"{name} returned no list of models: {answer.fault} {answer.message}".rstrip())
        return editions.store_provider_list(row, answer.entries)

    def show_preview(self, preview: editions.EditionPreview) -> None:
        change = preview.change
        counts = f"{len(change.added)} added, {len(change.removed)} removed, {len(change.changed)}"
        self.stdout.write(preview.name)
        self.stdout.write(f"models: {counts} with other capabilities")
        # List changed capabilities of configured services one by one; the many models in the catalogue are only
        # counted.
        for cell in preview.cells:
            value = "yes" if cell.on else "no"
            self.stdout.write(f"{cell.service_id}: {cell.side} {cell.name} {value} ({cell.source.value})")

    def show_revision(self, number: int | None) -> None:
        self.stdout.write(f"Applied as revision {number}." if number else "Nothing changed.")
