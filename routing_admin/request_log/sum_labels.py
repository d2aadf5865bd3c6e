"""Under which labels a request is summed up: callers make up names, so only so many of them have sums of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils import timezone

from capabilities.runtime import owned
from routing_admin.models import UsageSum

OTHERS = "(other)"
"""What stands for all further names."""
MAX_USERS = 1000
"""So many end users of an agent have sums of their own on a day: whoever comes later counts under `OTHERS`."""
MAX_TEAMS = 200
"""The same for pairs of team and project."""
DAYS = 3
"""Of so many days the names are remembered; the journal may write late."""
LabelNames = tuple[str, str, str]
NONE: LabelNames = ("", "", "")


@dataclass(slots=True)
class _Names:
    """What was summed up of one agent on one day: whole sets of labels, and the pairs of team and project in them."""

    whole: set[LabelNames]
    pairs: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.pairs |= {names[:2] for names in self.whole}

    def bounded(self, names: LabelNames) -> LabelNames:
        if names in self.whole:
            return names
        team, project, user = names
        if (team, project) not in self.pairs and len(self.pairs) >= MAX_TEAMS:
            team = project = OTHERS
        if user and (team, project, user) not in self.whole and len(self.whole) >= MAX_USERS:
            user = OTHERS
        self.whole.add((team, project, user))
        self.pairs.add((team, project))
        return team, project, user


class SumLabels:
    """The names that were summed up, by day and agent; what an earlier process summed up is read once."""

    def __init__(self) -> None:
        self._days: dict[datetime, dict[str, _Names]] = {}

    def bounded(self, request: Mapping[str, Any]) -> LabelNames:
        """The team, project and end user that a row of the log is summed up under. Queries rows once an agent's day."""
        names = request["team"] or "", request["project"] or "", request["end_user"] or ""
        return NONE if names == NONE else self._find(day_of(request["started_at"]), request["agent"]).bounded(names)

    def _find(self, day: datetime, agent: str) -> _Names:
        agents = self._days.get(day)
        if agents is None:
            agents = self._days[day] = {}
            for old in sorted(self._days)[:-DAYS]:
                self._days.pop(old)
        if agent not in agents:
            rows = UsageSum.objects.filter(span=UsageSum.DAY, start=day, agent=agent)
            labelled = rows.exclude(team="", project="", end_user="").order_by()
            agents[agent] = _Names(set(labelled.values_list("team", "project", "end_user").distinct()))
        return agents[agent]


def day_of(moment: datetime) -> datetime:
    """When its day began in the installation's time zone."""
    return timezone.localtime(moment).replace(hour=0, minute=0, second=0, microsecond=0)


sum_labels = owned(SumLabels)
