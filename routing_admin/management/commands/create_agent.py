"""Create an agent; with `--key`, issue its first key, and print only the key on stdout."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from capabilities.core.problems import Problem
from capabilities.errors import ConflictError, InvalidError
from routing_admin.configuration.agents.actions import find_service, issue_key, save_agent
from routing_admin.configuration.agents.queries import agent_exists
from routing_admin.console.agents.forms import AgentForm
from routing_admin.management import command


class Command(command.Command):
    help = "Create an agent. --key also prints its key, once. For another key: issue-key."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="the agent's id")
        uses = parser.add_mutually_exclusive_group()
        uses.add_argument("--service", metavar="ID", help="the model service it uses")
        uses.add_argument("--route", metavar="TASK", help="the task route it uses instead of a service")
        parser.add_argument("--key", action="store_true", help="also issue a key with the default scopes")

    def run(self, **options: Any) -> None:
        name = options["name"]
        if agent_exists(name):
            raise ConflictError(f"The agent {name} already exists. For another key: routing-admin issue-key {name}")
        actor = command.command_actor()
        row = read_form(name, options["service"]).save(commit=False)
        # Set the route directly, because the form offers only existing routes; the action reports a route that does not
        # exist.
        row.task_type = options["route"] or ""
        save_agent(actor, row)
        if not options["key"]:
            self.stdout.write(f"Created the agent {name}. For a key: routing-admin issue-key {name}")
            return
        key, _row = issue_key(actor, row, label="command")
        self.stdout.write(key)


def read_form(name: str, service_id: str | None) -> AgentForm:
    """Return the validated form of a new agent; raise `InvalidError` for a malformed id or an unknown service."""
    service = find_service(service_id)
    form = AgentForm({"agent_id": name, "service": service.service_id if service else ""})
    if not form.is_valid():
        raise InvalidError([Problem(name, str(error), "range") for errors in form.errors.values() for error in errors])
    return form
