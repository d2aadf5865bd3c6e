"""Providers that somebody wants to be tried again at once: each process hears of it and forgets why it left them alone.

The act stands in the audit log and moves the installation's stamp, so that a process looks there only after a change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from capabilities.runtime import owned
from routing_admin.configuration import snapshot
from routing_admin.configuration.audit import find_head, list_details_since
from routing_admin.configuration.revisions import FRESH_START
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.core.fallback.context import RunContext
from routing_admin.dispatch.send import process_run_context


def forget_failures(run_context: RunContext, providers: Iterable[str]) -> None:
    """Lets these providers, their models and their keys be called as if they had never failed."""
    for provider in providers:
        run_context.cooldowns.forget(provider)
        run_context.pools.forget(provider)


Places = Mapping[str, tuple[str, ...]]
"""Where each provider is called, and with which keys: their marks, which tell no key."""


@dataclass(slots=True)
class CooldownResets:
    """Up to which change of the installation, and which line of the audit log, this process has heard of them."""

    stamp: int | None = None
    number: int = 0
    places: Places = field(default_factory=dict)

    def look(self) -> None:
        """Takes up what is new; of what lies before the first look nothing is remembered here anyway.

        A provider with another key or address is another one, so that whoever mends it need not say so.
        """
        state = snapshot.newest().fresh()
        if state is None or state.stamp == self.stamp:
            return
        head, places = find_head(), places_of(state)
        if self.stamp is not None:
            wanted = [name for each in list_details_since(FRESH_START, self.number) for name in each["providers"]]
            moved = [name for name, place in places.items() if self.places.get(name, place) != place]
            forget_failures(process_run_context(), dict.fromkeys((*wanted, *moved)))
        self.stamp, self.number, self.places = state.stamp, head.number if head else 0, places


def places_of(state: Snapshot) -> Places:
    """Where and with which keys the providers of a snapshot are called."""
    return {
        spec.name: (spec.endpoint, spec.proxy, *(key.mark for key in state.provider_keys[spec.name].every))
        for spec in state.configuration.providers
    }


cooldown_resets = owned(CooldownResets)
