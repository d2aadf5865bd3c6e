"""Which models in use are about to go, or gone? By the catalogue's days, of the newest snapshot."""

from __future__ import annotations

from datetime import date
from functools import lru_cache

from django.utils import timezone

from routing_admin.configuration import snapshot
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.core.planning.endings import ModelEnding, foresee_endings
from routing_admin.dispatch.decisions import unusable_of
from routing_admin.queries.consequences import with_runtime_agents


def list_endings() -> tuple[ModelEnding, ...]:
    """The models of the snapshot in use whose end changes something for a route or an agent, the earliest first."""
    return _list_endings(snapshot.current(), timezone.localdate())


@lru_cache(maxsize=2)
def _list_endings(state: Snapshot, today: date) -> tuple[ModelEnding, ...]:
    configuration = with_runtime_agents(state, state.configuration)
    return foresee_endings(configuration, today, unusable_of(state), state.catalogue)
