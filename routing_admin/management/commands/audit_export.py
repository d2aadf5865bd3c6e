"""Write the audit log, or a part of it, as JSON lines or CSV."""

from __future__ import annotations

import argparse
import os
import sys
from datetime import date
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from routing_admin.console.base.readings import record_audit_export
from routing_admin.console.history.queries import AuditFilter, AuditForm, export_audit
from routing_admin.management import command

NARROWING = ("action", "actor", "object", "since", "until")


class Command(command.Command):
    help = "Write the audit log, oldest first. JSON lines contain everything that the hash chain covers."

    def add_arguments(self, parser: CommandParser) -> None:
        forms = [form.value for form in AuditForm]
        parser.add_argument("--form", choices=forms, default=AuditForm.JSON_LINES.value, help="default: jsonl")
        parser.add_argument("--action", default="", help="only this act, such as key.issue")
        parser.add_argument("--actor", default="", help="part of the name of the person or program")
        parser.add_argument("--object", default="", help="part of the name of the object")
        parser.add_argument("--since", type=_day, metavar="DAY", help="the first day, such as 2026-11-01")
        parser.add_argument("--until", type=_day, metavar="DAY", help="the last day")
        parser.add_argument("--output", type=Path, help="write to this file, which must not exist, instead of stdout")

    def run(self, **options: Any) -> None:
        filters = {name: options[name] for name in NARROWING if options[name]}
        # Record the export before reading the log, so that the export's newest entry is the export itself.
        record_audit_export(
            command.command_actor(), {"form": options["form"], **{name: str(value) for name, value in filters.items()}}
        )
        lines = export_audit(AuditFilter(**filters), AuditForm(options["form"]))
        if options["output"] is None:
            for line in lines:
                self.stdout.write(line, ending="")
            return
        # The file must be new, and readable only by its owner, because the log contains user names and IP addresses.
        with open(os.open(options["output"], os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", newline="") as file:
            file.writelines(lines)
        sys.stderr.write(f"Saved to {options['output']}\n")


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is no day; write it as 2026-11-01") from None
