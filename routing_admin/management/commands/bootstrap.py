"""Prepare an installation: create the tables, the administrator, and a configuration if the database is empty.

The command can be run repeatedly, because it does not change what already exists.
"""

from __future__ import annotations

import logging
import os
import secrets
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from artifacts.core.errors import StoreUnavailableError
from artifacts.storage.content import byte_store
from capabilities.actors import SYSTEM
from routing_admin.configuration import snapshot
from routing_admin.configuration.agents.queries import list_agent_ids
from routing_admin.configuration.history import newest_number
from routing_admin.configuration.integrity import restrict_permissions
from routing_admin.console.backups.manifest import BackupError
from routing_admin.console.backups.saving import audit_backup, back_up_before_migrating
from routing_admin.console.demo import load as demo
from routing_admin.console.demo.day import load_day
from routing_admin.console.demo.load import record_demo_request
from routing_admin.console.exchange.actions import import_configuration
from routing_admin.console.people.actions import create_first_administrator
from routing_admin.console.settings.actions import create_installation
from routing_admin.management import command
from routing_admin.platform.databases.postgresql.partitions import make_days
from routing_admin.platform.databases.schema import migrate


class Command(command.Command):
    help = (
        "Migrate, create the administrator, and load the demo into an empty database. Running it again changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--demo", dest="demo", action="store_true", default=True, help="load the demo (default)")
        parser.add_argument("--no-demo", dest="demo", action="store_false", help="start with an empty configuration")
        parser.add_argument(
            "--no-traffic", dest="traffic", action="store_false", help="load the demo without its day of requests"
        )
        parser.add_argument(
            "--no-backup", dest="backup", action="store_false", help="migrate without backing up the databases first"
        )

    def run(self, **options: Any) -> None:
        """Migrate, create what is missing, and print how to sign in.

        Raise `CommandError` if the disk has too little space for the backup that is made before pending migrations.
        """
        saved = self.backup() if options["backup"] else None
        migrate()
        # On PostgreSQL the request log has one partition per day, and today's partition must exist before the first
        # request.
        make_days(timezone.now())
        if saved:
            audit_backup(SYSTEM, saved)
            self.stdout.write(f"  backup of both databases before the migrations: {saved}")
        for path in restrict_permissions():
            self.stdout.write(f"  {path} was readable by others on this machine; now only by its owner")
        create_installation()
        self.check_store()
        password = self.administrator()
        key = self.configuration(demo_wanted=options["demo"], traffic=options["traffic"])
        self.stdout.write(f"routing_admin: {settings.PUBLIC_URL}")
        if password:
            self.stdout.write(f"  user       {settings.ADMIN_USER}\n  password   {password}   (shown this once)")
            self.stdout.write(f"  data       {settings.DATA_DIR}")
        if key:
            self.stdout.write(f"  agent key  {key}   (of {demo.KEYED_AGENT}, shown this once)")
        else:
            self.stdout.write(f"  {self.find_key_command()}")

    def check_store(self) -> None:
        """Report problems with the artifact store; on an installation's first start, raise `StoreUnavailableError`."""
        try:
            byte_store().check()
        except StoreUnavailableError as failure:
            # An existing installation can run without its artifact store for a while, but a new one would be
            # incomplete.
            if newest_number() is None:
                raise
            self.stderr.write(f"  {failure.details}")

    def backup(self) -> Path | None:
        try:
            return back_up_before_migrating(self.stdout.write)
        except BackupError as refusal:
            raise CommandError(str(refusal)) from refusal

    def find_key_command(self) -> str:
        """Return a line with the command that issues an agent key, for an existing agent if possible."""
        agents = list_agent_ids()
        if not agents:
            return "An agent and its key: routing-admin create-agent NAME --key"
        named = demo.KEYED_AGENT if demo.KEYED_AGENT in agents else agents[0]
        return f"An agent key: routing-admin issue-key {named}"

    def administrator(self) -> str:
        """Create the first administrator; return the password to print, or "" if an administrator already exists."""
        password = settings.ADMIN_PASSWORD or secrets.token_urlsafe(12)
        if not create_first_administrator(settings.ADMIN_USER, password):
            return ""
        return "as set in ROUTING_ADMIN_ADMIN_PASSWORD" if settings.ADMIN_PASSWORD else password

    def configuration(self, *, demo_wanted: bool, traffic: bool) -> str:
        """Load the first configuration into an empty database; return the demo agent's key if one was issued."""
        if newest_number() is not None:
            return ""
        files = [
            Path(os.environ[name]) for name in ("LLM_ROUTING_CONFIG", "LLM_SERVICES_CONFIG") if os.environ.get(name)
        ]
        if files:
            import_configuration(SYSTEM, self.read(files))
            snapshot.refresh()
            return ""
        if os.environ.get("LLM_API_KEY"):
            demo.load_single(os.environ, demo_too=demo_wanted, budget=traffic)
        elif demo_wanted:
            demo.load(budget=traffic)
        if not demo_wanted:
            return ""
        demo.load_files()
        if traffic:
            load_day()
        # The demo request deliberately fails with some candidates, so suppress the warnings about this on a first
        # start.
        logging.getLogger("routing_admin.routing").setLevel(logging.ERROR)
        record_demo_request()
        return demo.issue_demo_key()
