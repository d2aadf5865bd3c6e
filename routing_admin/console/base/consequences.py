"""Find the consequences of a configuration change for callers, from the newest snapshot and run-time agents."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import ngettext_lazy

from capabilities.core.consequence import Consequence, Gravity
from capabilities.core.translatable import translatable
from capabilities.errors import InUseError
from capabilities.sentences import shorten_names
from routing_admin.configuration import snapshot
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.core.configuration.removals import keep_agents, switch_off, without_items
from routing_admin.core.configuration.specs import AgentSpec, Configuration
from routing_admin.core.planning.consequences import consequences
from routing_admin.dispatch.decisions import unusable_providers


def find_consequences(planned: Configuration) -> tuple[Consequence, ...]:
    """Return the consequences of replacing the configuration in use with `planned`."""
    state = snapshot.current()
    return consequences(
        with_runtime_agents(state, state.configuration), with_runtime_agents(state, planned), unusable_providers(state)
    )


def find_restore_consequences(restored: Configuration) -> tuple[Consequence, ...]:
    """Return the consequences of restoring an older revision, including those for agents and their keys."""
    current = snapshot.current().configuration
    before, after = {agent.id for agent in current.agents}, {agent.id for agent in restored.agents}
    made, gone = sorted(before - after), sorted(after - before)
    notices = (
        (made, translatable("Agents made since stay, with their keys: %(agents)s.", agents=shorten_names(made))),
        (gone, translatable("Agents come back without keys, issue new ones: %(agents)s.", agents=shorten_names(gone))),
    )
    agent_notices = (Consequence(Gravity.CHANGES, sentence, "agent") for names, sentence in notices if names)
    return (*find_consequences(keep_agents(restored, current)), *agent_notices)


def find_deletion_consequences(kind: str, names: Collection[str]) -> tuple[Consequence, ...]:
    return _find_change_consequences(lambda before: without_items(before, kind, names))


USER_SENTENCES: Mapping[str, tuple[str, Any]] = {
    "route": ("routes", ngettext_lazy("%(count)s task route uses it.", "%(count)s task routes use it.", "count")),
    "service": (
        "services",
        ngettext_lazy("%(count)s model service belongs to it.", "%(count)s model services belong to it.", "count"),
    ),
    "agent": ("agents", ngettext_lazy("%(count)s agent uses it.", "%(count)s agents use it.", "count")),
    "alias": ("alias", ngettext_lazy("%(count)s alias leads to it.", "%(count)s aliases lead to it.", "count")),
    "made": (
        "agents",
        ngettext_lazy("%(count)s agent was created by it.", "%(count)s agents were created by it.", "count"),
    ),
}
"""Maps each kind of user of an entry (`InUseError.kind`) to the URL name of its list and a sentence with the number of
users.
"""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A reason why an entry cannot be deleted.

    `url` is the page on which a user can remove the reason, or empty if there is none.
    """

    sentence: str
    url: str = ""


def find_obstacle(check: Callable[[Any], None], row: Any, search: str) -> Obstacle | None:
    """Return why `check` forbids deleting the row, or None if it allows the deletion.

    `search` is a search text with which the list of routes, agents or aliases shows those that use the row.
    """
    try:
        check(row)
    except InUseError as refusal:
        if not refusal.kind:
            return Obstacle(str(refusal))
        name, sentence = USER_SENTENCES[refusal.kind]
        return Obstacle(sentence % {"count": refusal.count}, f"{reverse(name)}?{urlencode({'q': search})}")
    return None


def find_disabling_consequences(kind: str, names: Collection[str]) -> tuple[Consequence, ...]:
    """Return the consequences of disabling providers, services or routes."""
    return _find_change_consequences(lambda before: switch_off(before, kind, names))


def _find_change_consequences(change: Callable[[Configuration], Configuration]) -> tuple[Consequence, ...]:
    state = snapshot.current()
    before = with_runtime_agents(state, state.configuration)
    return consequences(before, change(before), unusable_providers(state))


def with_runtime_agents(state: Snapshot, configuration: Configuration) -> Configuration:
    """Return the configuration with run-time agents added; files and revisions do not contain these."""
    runtime_agents = tuple(
        AgentSpec(agent.id, agent.name, "", None if agent.task_type else agent.service_id, agent.task_type)
        for agent in state.agents
        if not agent.is_configured
    )
    return replace(configuration, agents=(*configuration.agents, *runtime_agents)) if runtime_agents else configuration


# If saving a form would disable an entry, the page first shows the consequences, which the user must confirm.

CONFIRMED = "confirmed"
"""Name of the form field with which the user confirms the consequences."""


def find_unconfirmed(request: HttpRequest, form: forms.BaseForm, kind: str, name: str) -> Sequence[Consequence]:
    """If the valid form disables an entry, return the consequences, unless the request confirms them."""
    if "enabled" not in form.changed_data or form.cleaned_data["enabled"]:
        return ()
    return find_unconfirmed_disabling(request, kind, [name])


def find_unconfirmed_disabling(request: HttpRequest, kind: str, names: Sequence[str]) -> Sequence[Consequence]:
    """Return the consequences of disabling these entries, or an empty sequence if the request confirms them."""
    return () if CONFIRMED in request.POST else find_disabling_consequences(kind, names)


def consequence_json(consequence: Consequence) -> dict[str, str]:
    """Return a consequence as JSON. `gravity` is `stops`, `degrades` or `changes`."""
    return {
        "gravity": consequence.gravity.name.lower(),
        "kind": consequence.kind,
        "name": consequence.name,
        "text": consequence.sentence,
    }
