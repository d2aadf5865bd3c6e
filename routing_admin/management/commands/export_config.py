"""Export the configuration as `llm-routing.json` or `llmservices.json`, without API keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from routing_admin.configuration import exports
from routing_admin.configuration.publishing import replace_file
from routing_admin.console.base.readings import record_configuration_export
from routing_admin.core.files.exporting import Mode
from routing_admin.core.files.importing import FileFormat
from routing_admin.management import command


class Command(command.Command):
    help = "Write llm-routing.json or llmservices.json. Provider keys appear only as ${LLM_PROVIDER_{NAME}_API_KEY}."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", choices=[name.value for name in FileFormat])
        parser.add_argument(
            "--for",
            dest="mode",
            choices=[mode.value for mode in Mode],
            default=Mode.FULL.value,
            help="full: everything (default); seed: the original format only; gateway: pointing at this installation",
        )
        parser.add_argument("--output", type=Path, help="write to this file instead of standard output")

    def run(self, **options: Any) -> None:
        made = exports.export(FileFormat(options["file"]), Mode(options["mode"]))
        record_configuration_export(command.command_actor(), options["file"], options["mode"])
        for sentence in made.left_out:
            self.stderr.write(sentence)
        if options["output"]:
            replace_file(options["output"], made.text)
        else:
            self.stdout.write(made.text, ending="")
