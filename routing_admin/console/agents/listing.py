"""The page that lists agents: model, capabilities, keys, requests in the last day, and state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from capabilities.core.validity import Validity
from capabilities.labels import CAPABILITY_LABELS
from capabilities.models import Agent
from routing_admin.configuration import snapshot
from routing_admin.configuration.agents.queries import READABLE, AgentLine, list_agents
from routing_admin.console.base.lists import Choice, Column, arrange, choose_state, natural_key, page_size
from routing_admin.console.base.page_responses import wants_fragment
from routing_admin.request_log.search_words import search_last_day
from routing_admin.request_log.time_ranges import window_start
from routing_admin.request_log.usage import count_requests

NO_KEY, READY, RUNTIME = "no_key", "ready", "runtime"
STATES: Mapping[str, Promise] = {
    NO_KEY: gettext_lazy("No key"),
    Validity.REVOKED: gettext_lazy("Key revoked"),
    Validity.EXPIRED: gettext_lazy("Key expired"),
    Validity.ENDING: gettext_lazy("Key expiring"),
    Validity.UNUSED: gettext_lazy("Key unused"),
    READY: gettext_lazy("Ready"),
    RUNTIME: gettext_lazy("Made at run time"),
}
"""The states of agents. An agent with several keys has the state of its best key.

An agent created at run time has no keys but uses its creator's, so it has the state `RUNTIME` instead.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRow:
    """An agent in the list, with its requests in the last day and whether its task type has a route."""

    line: AgentLine
    requests: int
    has_route: bool

    @property
    def agent(self) -> Agent:
        return self.line.row

    @property
    def state(self) -> str:
        if self.agent.origin == Agent.Origin.RUNTIME:
            return RUNTIME
        return READY if self.line.validity is Validity.WORKING else self.line.validity or NO_KEY

    @property
    def states(self) -> set[str]:
        """Return the options of the state filter that match this agent: its own state, and "ready" or "no key"."""
        if self.agent.origin == Agent.Origin.RUNTIME:
            return {RUNTIME}
        return {self.state, READY if self.line.keys else NO_KEY}

    @property
    def badge(self) -> str:
        """Return the key of the agent's state in `labels.BADGES`."""
        return "ok" if self.state == READY else self.state

    @property
    def label(self) -> Promise:
        return STATES[self.state]

    @property
    def uses(self) -> str:
        """Return what the agent calls: a service's id, `task:` followed by a task type, or an empty string."""
        if self.agent.service:
            return self.agent.service.service_id
        return f"task:{self.agent.task_type}" if self.agent.task_type else ""

    @property
    def search(self) -> str:
        """Return the search text with which the request log lists the agent's requests from the last day."""
        return search_last_day("agent", self.agent.agent_id).to_text()


COLUMNS: Mapping[str, Column[AgentRow]] = {
    "name": Column(lambda row: natural_key(row.agent.agent_id)),
    "uses": Column(lambda row: (not row.uses, natural_key(row.uses))),
    "keys": Column(lambda row: row.line.keys, falling=True),
    "requests": Column(lambda row: row.requests, falling=True),
    "state": Column(lambda row: (list(STATES).index(row.state), natural_key(row.agent.agent_id))),
}


CHOICES: Sequence[Choice[AgentRow]] = (
    Choice(
        name="reads",
        label=gettext_lazy("Reads"),
        everything=gettext_lazy("Reads anything"),
        values={name: CAPABILITY_LABELS[name] for name in READABLE},
        values_of=lambda row: row.line.reads,
    ),
    choose_state(STATES, lambda row: row.states),
)


def _texts(row: AgentRow) -> Iterator[str]:
    yield from (row.agent.agent_id, row.agent.name, row.agent.description, row.uses)
    if row.agent.owner:
        yield row.agent.owner.agent_id


def list_rows() -> list[AgentRow]:
    """Return all agents with their requests in the last day. This takes three queries."""
    requests = count_requests("agent", window_start(timezone.now()))
    routes = {route.task_type for route in snapshot.current().configuration.routes}
    return [
        AgentRow(line=line, requests=requests.get(line.row.agent_id, 0), has_route=line.row.task_type in routes)
        for line in list_agents()
    ]


def agents(request: HttpRequest) -> HttpResponse:
    rows = list_rows()
    listing = arrange(
        rows,
        request.GET,
        texts=_texts,
        columns=COLUMNS,
        choices=CHOICES,
        sort="state",  # Agents that cannot call any model are listed first.
        per_page=page_size(request),
    )
    locked_out = sum(NO_KEY in row.states for row in rows)
    context = {
        "listing": listing,
        "sentence": summarize(locked_out, len(rows)),
        "locked_out": f"?state={NO_KEY}" if locked_out else "",
    }
    # While the user types a search, htmx requests only the table rows.
    template = "capabilities/agents.html#rows" if wants_fragment(request) else "capabilities/agents.html"
    return render(request, template, context)


def summarize(locked_out: int, count: int) -> str:
    """Return a sentence that says how many agents have no working key."""
    if not count:
        return _("No agent yet.")
    if not locked_out:
        text = ngettext("%(count)s agent can call models.", "%(count)s agents can call models.", count)
        return text % {"count": count}
    text = ngettext(
        "%(count)s of %(all)s agents cannot call models: it has no working key.",
        "%(count)s of %(all)s agents cannot call models: they have no working key.",
        locked_out,
    )
    return text % {"count": locked_out, "all": count}
