"""Use the audit log's hash chain to verify that no entry has been changed, removed or inserted."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import CommandError, CommandParser

from capabilities.core.translatable import pluralize
from routing_admin.configuration.audit import read_head, record_head, verify_audit
from routing_admin.core.audit import AuditHead
from routing_admin.management import command


class Command(command.Command):
    help = (
        "Check the audit log's hash chain. The newest head is saved in the data directory and printed. Keep a copy "
        "elsewhere and pass it with --head to detect removed lines at the end. Exit status 1 if the log is damaged."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--head",
            action="append",
            default=[],
            metavar="NUMBER:HASH",
            help="a head saved earlier, for example by backup",
        )

    def run(self, **options: Any) -> None:
        verdict = verify_audit([self._head(text) for text in options["head"]])
        for problem in verdict.problems:
            self.stderr.write(problem)
        if verdict.problems:
            sys.exit(1)
        if verdict.head is None:
            self.stdout.write("The audit log is empty.")
            return
        record_head(verdict.head)
        self.stdout.write(f"The audit log is intact: {pluralize(verdict.count, 'line')}. Newest: {verdict.head}")

    def _head(self, text: str) -> AuditHead:
        head = read_head(text)
        if head is None:
            raise CommandError(
                f"--head {text}: a head is a number, a colon and 64 hexadecimal digits, as printed here."
            )
        return head
