"""Base class of the management commands.

A command that fails prints what is wrong on stderr and exits with status 1.
"""

from __future__ import annotations

import getpass
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, InterfaceError, connection
from django.utils.translation import override

from artifacts.core.errors import ArtifactError, StoreUnavailableError
from capabilities.actors import Actor
from capabilities.core.services.registry import document_path
from capabilities.errors import ActionError, InvalidError
from routing_admin.platform.databases.explaining import explain_failure
from routing_admin.platform.databases.progress import progress_output
from routing_admin.platform.databases.router import POSTGRESQL
from routing_admin.platform.databases.schema import NewerSchemaError, refuse_newer_schema


def command_actor() -> Actor:
    """Return the user at the terminal as the audit log's actor."""
    try:
        return Actor("command", getpass.getuser())
    except (KeyError, OSError):
        return Actor("command", "unknown")


SERVICES_FILE = "llmservices.json"


class Command(BaseCommand):
    requires_system_checks = ()  # Django's system checks import every page, so only `make lint` runs them.
    requires_migrations_checks = False
    suppressed_base_arguments = {"--version", "--settings", "--pythonpath", "--traceback", "--force-color"}
    refuses_newer_schema = True
    """Whether the command refuses to run if a newer version of the program has migrated the database."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command in English; raise `CommandError` with one line per problem if the command fails."""
        try:
            with override("en"), progress_output(self.stdout):
                if connection.vendor == POSTGRESQL:
                    connection.ensure_connection()  # Fail before any work is done if PostgreSQL is unavailable.
                if self.refuses_newer_schema:
                    refuse_newer_schema()
                self.run(**options)
        except NewerSchemaError as refusal:
            raise CommandError(str(refusal)) from refusal
        except InvalidError as refusal:
            raise CommandError("\n".join(problem.line for problem in refusal.problems)) from refusal
        except ActionError as refusal:
            raise CommandError(str(refusal)) from refusal
        except StoreUnavailableError as problem:
            raise CommandError(problem.details) from None
        except ArtifactError as problem:
            raise CommandError(str(problem)) from problem
        except (DatabaseError, InterfaceError) as problem:
            line = explain_failure(problem)
            if line is None:
                raise
            raise CommandError(line) from problem
        except OSError as problem:
            prefix = f"{problem.filename}: " if problem.filename else ""
            raise CommandError(f"{prefix}{problem.strerror or problem}") from problem

    def read(self, paths: Iterable[Path]) -> list[bytes]:
        """Return the content of these files; instead of `llmservices.json`, read its local variant if there is one."""
        requested = list(paths)
        read = [document_path(path) if path.name == SERVICES_FILE else path for path in requested]
        for path, actual in zip(requested, read, strict=True):
            if actual != path:
                self.stderr.write(f"Reading {actual} instead of {path}.")
        # Two of the paths may lead to the same local file, which is read only once.
        return [path.read_bytes() for path in dict.fromkeys(read)]

    def run(self, **options: Any) -> None:
        raise CommandError("This command does nothing.")
