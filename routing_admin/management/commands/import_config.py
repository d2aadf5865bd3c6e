"""Import `llm-routing.json` and `llmservices.json`, and print what changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from capabilities.errors import InvalidError
from routing_admin.console.exchange.actions import ImportPreview, import_configuration, preview_import
from routing_admin.core.configuration.diff import sentence
from routing_admin.management import command


class Command(command.Command):
    help = (
        "Import llm-routing.json and/or llmservices.json. A file with errors changes nothing; all problems are listed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
        parser.add_argument("--dry-run", action="store_true", help="show what would change without changing anything")
        parser.add_argument("--prune", action="store_true", help="remove what the files do not mention")

    def run(self, **options: Any) -> None:
        texts = self.read(options["files"])
        if options["dry_run"]:
            preview = preview_import(texts, prune=options["prune"])
            if not preview.imported.accepted:
                raise InvalidError(problem for problem in preview.imported.problems if problem.severity == "error")
            self.show_preview(preview)
            self.stdout.write("Nothing was changed (dry run).")
            return
        applied = import_configuration(command.command_actor(), texts, prune=options["prune"])
        self.show_preview(applied.preview)
        made = f"Imported as revision {applied.revision}." if applied.revision else "Nothing changed."
        self.stdout.write(made)

    def show_preview(self, preview: ImportPreview) -> None:
        for problem in preview.imported.problems:
            self.stderr.write(f"warning: {problem.line}")
        for change in preview.changes:
            self.stdout.write(sentence(change))
        for path in preview.imported.kept_unknown:
            self.stdout.write(f"Unknown, kept: {path}")
