"""What would a change mean for those who ask now? Read from the newest snapshot, run-time agents included."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from capabilities.core.consequence import Consequence
from routing_admin.configuration import snapshot
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.core.configuration.removals import switch_off, without
from routing_admin.core.configuration.specs import AgentSpec, Configuration
from routing_admin.core.planning.consequences import consequences
from routing_admin.dispatch.decisions import unusable_of


def foresee(after: Configuration) -> tuple[Consequence, ...]:
    """Every consequence of putting this configuration in the place of the one in use; nothing is written."""
    state = snapshot.current()
    gone = {each.id for each in state.configuration.agents} - {each.id for each in after.agents}
    everybody = list_agents(state)
    before = replace(state.configuration, agents=everybody)
    left = tuple(each for each in everybody if each.id not in gone)
    return consequences(before, replace(after, agents=left), unusable_of(state))


def foresee_deletion(kind: str, names: Collection[str]) -> tuple[Consequence, ...]:
    """What deleting things of a kind (`service`, `agent` …) would mean."""
    return _foresee_change(lambda before: without(before, kind, names))


def foresee_disabling(kind: str, names: Collection[str]) -> tuple[Consequence, ...]:
    """What disabling providers, services or routes would mean."""
    return _foresee_change(lambda before: switch_off(before, kind, names))


def _foresee_change(change: Callable[[Configuration], Configuration]) -> tuple[Consequence, ...]:
    state = snapshot.current()
    before = replace(state.configuration, agents=list_agents(state))
    return consequences(before, change(before), unusable_of(state))


def list_agents(state: Snapshot) -> tuple[AgentSpec, ...]:
    """Every living agent, those that programs made at run time too, with the one service or route it uses."""
    return tuple(
        AgentSpec(each.id, each.name, "", None if each.task_type else each.service_id, each.task_type)
        for each in state.agents
    )
