"""The tiles of providers on the dashboard: the worst first, so that trouble is seen without looking for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from capabilities.sentences import translate_sentence
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.core.configuration.specs import Configuration
from routing_admin.dispatch.send import process_run_context
from routing_admin.request_log.health import Health

SHOWN = 12
"""Tiles on the page; the others are those that do best, and the providers' own page has all."""

WORST_FIRST = ("down", "cooling", "slow", "no_key", "ok", "unknown", "unneeded", "disabled")
"""The statuses in the order of the tiles. `unneeded` is a provider without a key that no enabled route leads to."""


@dataclass(frozen=True, slots=True)
class Tile:
    """One provider: its health, whether it can be called, for how many seconds it is left alone, whether a route
    leads to it.
    """

    name: str
    label: str
    health: Health
    reason: str
    cooling: int | None
    is_enabled: bool
    is_used: bool = True

    @property
    def status(self) -> str:
        """The badge: what stands in the way first, then how it did."""
        if not self.is_enabled:
            return "disabled"
        return "no_key" if self.reason else "cooling" if self.cooling is not None else self.health.status

    @property
    def rank(self) -> int:
        """Its place among the tiles; those of one rank stay in the configuration's order."""
        unneeded = self.status == "no_key" and not self.is_used
        return WORST_FIRST.index("unneeded" if unneeded else self.status)


def tiles_of(state: Snapshot, health: Mapping[str, Health]) -> tuple[Tile, ...]:
    """Every provider of the configuration, the worst first."""
    cooldowns = process_run_context().cooldowns
    used = {each.provider for route in state.configuration.routes if route.enabled for each in route.candidates}
    tiles = []
    for spec in state.configuration.providers:
        cooling = cooldowns.look(spec.name, spec.default_model)
        seconds = round(cooling.seconds) if cooling else None
        reason = translate_sentence(state.keys[spec.name].reason)
        label, own = spec.display_name or spec.name, health.get(spec.name, Health())
        tiles.append(Tile(spec.name, label, own, reason, seconds, spec.enabled, spec.name in used))
    return tuple(sorted(tiles, key=lambda tile: tile.rank))


def configured_models(configuration: Configuration) -> frozenset[tuple[str, str]]:
    """Every model that the configuration names, with its provider: defaults, services and candidates."""
    defaults = {spec.name: spec.default_model for spec in configuration.providers}
    services = {(spec.provider, spec.model) for spec in configuration.services}
    chains = (each for route in configuration.routes for each in route.candidates)
    candidates = {(each.provider, each.model or defaults.get(each.provider, "")) for each in chains}
    return frozenset({*defaults.items(), *services, *candidates})
