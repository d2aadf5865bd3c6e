"""Queries for an agent's links, calls, and keys with their limits and usage.

Calls from before the agent was created are ignored, because they belong to a deleted agent with the same id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django.forms import Form
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _

from capabilities.access import list_creators
from capabilities.core.services.agent_limits import AgentLimits, parse_limits
from capabilities.core.services.agents import LINK_KIND, KeyTerms, find_public_id, find_secret, parse_terms
from capabilities.core.services.limit_holders import agent_holder_id, key_holder_id
from capabilities.models import Agent, AgentLink
from capabilities.signing import is_signed
from routing_admin.console.agents.forms import KeyTermsForm
from routing_admin.console.base.form_fields import LIMITS
from routing_admin.models import RequestLog
from routing_admin.request_log.limit_uses import LimitUse, find_limit_uses
from routing_admin.request_log.search import LoggedRequest, find_logged_request, read_cursor, write_cursor

if TYPE_CHECKING:
    from capabilities.models import Agent, AgentKey


def list_links(agent: Agent) -> list[AgentLink]:
    """Return the links to the agent's own page, with revoked links last."""
    # The sort is stable, so the links in each group remain ordered newest first.
    return sorted(agent.links.all(), key=lambda row: row.revoked_at is not None)


def find_link(agent_id: str, public_id: str) -> AgentLink | None:
    """Return the agent's link with this public part, or None. The prefix `rap_` is optional."""
    public = public_id.removeprefix(f"{LINK_KIND}_")
    return AgentLink.objects.select_related("agent").filter(agent__agent_id=agent_id, public_id=public).first()


def find_link_by_public_id(public_id: str) -> AgentLink | None:
    return AgentLink.objects.select_related("agent").filter(public_id=public_id).first()


def open_link(text: str) -> AgentLink | None:
    """Return the link with this secret text, and its agent. Return None if the link is unknown, revoked or expired.

    This takes one query, and one more for each further creator if the agent's creator was itself created by an agent.
    """
    public, now = find_public_id(text), timezone.now()
    rows = AgentLink.objects.select_related("agent__service", "agent__owner")
    row = rows.filter(public_id=public).first() if public else None
    # For an unknown link, compare with an empty digest, so that it takes as long as a link with a wrong secret.
    if (
        not is_signed(find_secret(text).encode(), row.digest if row else "")
        or row is None
        or row.revoked_at is not None
    ):
        return None
    # A link expires together with its agent, and a run-time agent expires together with its creators.
    end_times = (row.expires_at, row.agent.expires_at, *(maker.expires_at for maker in list_creators(row.agent)))
    return None if any(end is not None and end <= now for end in end_times) else row


NamedUse = tuple[str | Promise, LimitUse]


@dataclass(frozen=True, slots=True)
class KeyLine:
    """An agent's key with its labels and limits, the form that edits them, and how much of each limit is used."""

    row: AgentKey
    terms: KeyTerms
    form: KeyTermsForm
    uses: Sequence[NamedUse]

    @property
    def labels(self) -> list[tuple[str, str]]:
        labels = ((_("Team"), self.terms.labels.team), (_("Project"), self.terms.labels.project))
        return [(name, label) for name, label in labels if label]


def list_key_limits(keys: Sequence[AgentKey]) -> dict[str, AgentLimits | None]:
    return {key_holder_id(key.public_id): parse_terms(key.terms).limits for key in keys}


def find_key_uses(agent: Agent, keys: Sequence[AgentKey]) -> Mapping[str, Sequence[LimitUse]]:
    """Return how much of each limit of the agent and of its keys is used, by counter id.

    This takes at most one query.
    """
    return find_limit_uses({agent_holder_id(agent.agent_id): parse_limits(agent.limits), **list_key_limits(keys)})


def list_key_lines(
    keys: Sequence[AgentKey], uses: Mapping[str, Sequence[LimitUse]], bound: Form | None
) -> list[KeyLine]:
    """Return the agent's keys as its page shows them. `bound` is a submitted form with errors, if there is one."""
    return [
        KeyLine(key, parse_terms(key.terms), find_terms_form(key, bound), name_uses(uses[key_holder_id(key.public_id)]))
        for key in keys
    ]


def find_terms_form(key: AgentKey, bound: Form | None) -> KeyTermsForm:
    if isinstance(bound, KeyTermsForm) and bound.prefix == key.public_id:
        return bound
    return KeyTermsForm(prefix=key.public_id, initial={"label": key.label}, terms=key.terms)


def name_uses(uses: Sequence[LimitUse]) -> list[NamedUse]:
    return [(LIMITS[use.meter][0], use) for use in uses]


CALLS_PER_PAGE = 20


@dataclass(frozen=True, slots=True)
class CallsPage:
    """A page of an agent's calls, newest first. `older` is the cursor of the next page, or empty on the last page."""

    rows: tuple[RequestLog, ...]
    older: str = ""


def list_calls(agent: str, since: datetime, before: str = "") -> CallsPage:
    """Return a page of the agent's calls from `since` on, starting after the cursor if there is one.

    This takes one query.
    """
    # The list does not show bodies or providers' messages, so these columns are not read.
    rows = RequestLog.objects.defer("body", "error", "sentence", "token_details", "answer", "prefix")
    rows = rows.filter(agent=agent, started_at__gte=since)
    position = read_cursor(before)
    # The rows are ordered by (started_at, pk), so the cursor also works for calls that started at the same time.
    if position is not None:
        rows = rows.filter(started_at__lte=position[0]).exclude(started_at=position[0], pk__gte=position[1])
    found = list(rows.order_by("-started_at", "-pk")[: CALLS_PER_PAGE + 1])
    return CallsPage(
        tuple(found[:CALLS_PER_PAGE]), write_cursor(found[CALLS_PER_PAGE - 1]) if len(found) > CALLS_PER_PAGE else ""
    )


def find_call(agent: str, since: datetime, key: str, *, body: bool = False) -> LoggedRequest | None:
    """Return one of the agent's calls with its attempts, or None for another agent's call. This takes two queries."""
    call = find_logged_request(key, body=body)
    is_own = call is not None and call.row.agent == agent and call.row.started_at >= since
    return call if is_own else None
