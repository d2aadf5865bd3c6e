"""Reset cooldowns in all processes after an administrator has asked for an immediate retry of some providers.

A reset is an entry in the audit log. Like every change, it updates the installation's stamp, so processes read the log
only after the stamp has changed.
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
    for provider in providers:
        run_context.cooldowns.forget(provider)
        run_context.pools.forget(provider)


ProviderTargets = Mapping[str, tuple[str, ...]]
"""Maps each provider to its endpoint, proxy and key digests."""


@dataclass(slots=True)
class CooldownResets:
    """Applies the cooldown resets that the audit log contains.

    `stamp` is the installation's stamp at the last check, `number` the last audit entry that was checked.
    """

    stamp: int | None = None
    number: int = 0
    targets: ProviderTargets = field(default_factory=dict)

    def look(self) -> None:
        """Apply all resets that were requested since the last call."""
        state = snapshot.newest().fresh()
        if state is None or state.stamp == self.stamp:
            return
        head, targets = find_head(), provider_targets(state)
        # At the first call, this process has no failures to reset yet.
        if self.stamp is not None:
            requested = [
                name for details in list_details_since(FRESH_START, self.number) for name in details["providers"]
            ]
            # A provider whose key, URL or proxy has changed counts as a new provider, so its failures are forgotten
            # without a reset request.
            changed = [name for name, target in targets.items() if self.targets.get(name, target) != target]
            forget_failures(process_run_context(), dict.fromkeys((*requested, *changed)))
        self.stamp, self.number, self.targets = state.stamp, head.number if head else 0, targets


def provider_targets(state: Snapshot) -> ProviderTargets:
    return {
        spec.name: (spec.endpoint, spec.proxy, *(key.mark for key in state.provider_keys[spec.name].every))
        for spec in state.configuration.providers
    }


cooldown_resets = owned(CooldownResets)
