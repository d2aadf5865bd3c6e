"""An agent's keys as its page lists them: what each may use, how its calls are labelled, what it used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.forms import Form
from django.utils.functional import Promise
from django.utils.translation import gettext as _

from capabilities.core.services.agent_limits import AgentLimits, limits_of
from capabilities.core.services.key_terms import KeyTerms, terms_of
from capabilities.core.services.limit_holders import id_of_agent, id_of_key
from routing_admin.console.agents.key_forms import KeyTermsForm
from routing_admin.console.base.limit_forms import LIMITS
from routing_admin.request_log.limit_uses import LimitUse, find_limit_uses

if TYPE_CHECKING:
    from capabilities.models import Agent, AgentKey

NamedUse = tuple[str | Promise, LimitUse]


@dataclass(frozen=True, slots=True)
class KeyLine:
    """One key of an agent: its terms, how they are changed, and what is used of each of its limits."""

    row: AgentKey
    terms: KeyTerms
    form: KeyTermsForm
    uses: Sequence[NamedUse]

    @property
    def labels(self) -> list[tuple[str, str]]:
        """The labels that there are, each under what it is called."""
        found = ((_("Team"), self.terms.labels.team), (_("Project"), self.terms.labels.project))
        return [(name, label) for name, label in found if label]


def list_key_limits(keys: Sequence[AgentKey]) -> dict[str, AgentLimits | None]:
    """The limits of each key under the name that its counts have."""
    return {id_of_key(key.public_id): terms_of(key.terms).limits for key in keys}


def find_key_uses(agent: Agent, keys: Sequence[AgentKey]) -> Mapping[str, Sequence[LimitUse]]:
    """What is used of the limits of the agent and of each key, by the name of its counts. One query at most."""
    return find_limit_uses({id_of_agent(agent.agent_id): limits_of(agent.limits), **list_key_limits(keys)})


def list_key_lines(
    keys: Sequence[AgentKey], uses: Mapping[str, Sequence[LimitUse]], bound: Form | None
) -> list[KeyLine]:
    """The keys as the page writes them; `bound` is the form of one that was refused."""
    return [
        KeyLine(key, terms_of(key.terms), find_terms_form(key, bound), name_uses(uses[id_of_key(key.public_id)]))
        for key in keys
    ]


def find_terms_form(key: AgentKey, bound: Form | None) -> KeyTermsForm:
    """The form of a key's terms."""
    if isinstance(bound, KeyTermsForm) and bound.prefix == key.public_id:
        return bound
    return KeyTermsForm(prefix=key.public_id, initial={"label": key.label}, terms=key.terms)


def name_uses(uses: Sequence[LimitUse]) -> list[NamedUse]:
    """What is used of each limit, under the limit's name."""
    return [(LIMITS[use.meter][0], use) for use in uses]
