"""Which quotas of stored bytes are nearly used up?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Sum

from artifacts.library import count_used_bytes
from artifacts.models import Artifact
from routing_admin.configuration.installation import Keeping, read_retention_settings

NEAR = 0.9
"""From this part of a quota on it is told of."""
MOST = 5
"""So many agents are named."""


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """How many bytes of a quota are used, by an agent or, with an empty name, by all together."""

    agent: str
    used: int
    quota: int


def list_low_quotas() -> list[QuotaUse]:
    """The installation's quota first, then agents', where nine tenths are used; one query where there is none."""
    keeping = read_retention_settings()
    return [*_of_all(keeping), *_of_agents(keeping)]


def _of_all(keeping: Keeping) -> Iterator[QuotaUse]:
    quota = keeping.quota_bytes
    if quota is not None and (used := count_used_bytes()) >= quota * NEAR:
        yield QuotaUse("", used, quota)


def _of_agents(keeping: Keeping) -> Iterator[QuotaUse]:
    """Agents by the sum of their files, then exactly: equal ones count once."""
    quota = keeping.agent_quota_bytes
    if quota is None:
        return
    sums = Artifact.objects.exclude(owner="").order_by().values("owner").annotate(total=Sum("size"))
    for row in sums.filter(total__gte=quota * NEAR).order_by("-total")[:MOST]:
        if (used := count_used_bytes(row["owner"])) >= quota * NEAR:
            yield QuotaUse(row["owner"], used, quota)
