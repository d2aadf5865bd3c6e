"""Whose budgets hold for a call by its labels: its team's, its project's, and its end user's own of the agent's."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from django.utils import timezone

from capabilities.core.services.labels import NO_LABELS, LabelKind, Labels
from capabilities.core.services.limit_holders import LimitHolder, label_holder, user_holder
from capabilities.runtime import owned
from routing_admin.core.configuration.specs import Configuration

MAX_USERS = 10_000
"""So many end users of an agent are counted each for themselves in a day; those who come later share one budget."""
OTHERS = "(other)"


class CountedUsers:
    """The end users that this process counts today; what callers make up must not fill memory and ledger."""

    def __init__(self) -> None:
        self._day = date.min
        self._agents: dict[str, set[str]] = {}

    def name_of(self, agent: str, user: str) -> str:
        """Under which name an end user is counted."""
        today = timezone.localdate()
        if today != self._day:
            self._day, self._agents = today, {}
        known = self._agents.setdefault(agent, set())
        if user not in known:
            if len(known) >= MAX_USERS:
                return OTHERS
            known.add(user)
        return user


counted_users = owned(CountedUsers)


def list_label_holders(configuration: Configuration, agent: str, labels: Labels) -> tuple[LimitHolder, ...]:
    """Whose limits hold for a call with these labels by a key of that agent, beside the agent's and the key's."""
    if labels is NO_LABELS or not configuration.label_budgets:
        return ()
    return tuple(_find_holders(configuration, agent, labels))


def _find_holders(configuration: Configuration, agent: str, labels: Labels) -> Iterator[LimitHolder]:
    budgets = configuration.limits_by_label
    for kind in (LabelKind.TEAM, LabelKind.PROJECT):
        name = labels.of(kind)
        holder = label_holder(kind, name, budgets.get(f"{kind}:{name}")) if name else None
        if holder is not None:
            yield holder
    limits = budgets.get(f"{LabelKind.USER}:{agent}") if labels.user else None
    if limits is not None:
        found = user_holder(agent, counted_users().name_of(agent, labels.user), limits)
        if found is not None:
            yield found
