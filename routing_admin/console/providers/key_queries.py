"""How does each of a provider's keys do? Its rest from this process's memory, its last use and refusal from the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from routing_admin.configuration import snapshot
from routing_admin.configuration.keys import NamedKey
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.core.fallback.chain import PoolKey
from routing_admin.core.fallback.table import KEY_EFFECTS, Effect
from routing_admin.dispatch.receivers import KeyNote, note_of
from routing_admin.dispatch.send import process_run_context
from routing_admin.models import AttemptLog

MOST = 500
"""Newest attempts of a provider that are looked at."""


@dataclass(frozen=True, slots=True)
class KeyRefusal:
    """A key that rests since the provider refused it, and not only for a while; `fault` says how."""

    provider: str
    key: str
    fault: str
    until: datetime


@dataclass(frozen=True, slots=True)
class KeyHealth:
    """One of a provider's keys: where it comes from, and how it does in this process and by the log.

    `rests_until` is None where it does not rest; `rest` and `refusal` are faults: why it rests, and what the provider
    last said of it. `last_used` looks back over the provider's newest attempts only.
    """

    name: str
    note: KeyNote
    enabled: bool = True
    rests_until: datetime | None = None
    rest: str = ""
    last_used: datetime | None = None
    refused_at: datetime | None = None
    refusal: str = ""


def describe_keys(provider: str) -> Sequence[KeyHealth]:
    """Return every key of a provider, the first one first; none of a provider that is newer than the snapshot.

    The log is read (two queries) only where there are several.
    """
    pool = snapshot.current().provider_keys.get(provider)
    if pool is None:
        return []
    keys = pool.every
    tries = _read_tries(provider, keys[0].name) if len(keys) > 1 else {}
    return [_describe(provider, key, tries.get(key.name, _Tries())) for key in keys]


@dataclass(slots=True)
class _Tries:
    """What the log knows of a key: when it was used, and when it was refused, and how."""

    used: datetime | None = None
    refused_at: datetime | None = None
    refusal: str = ""


def _read_tries(provider: str, first: str) -> Mapping[str, _Tries]:
    """The newest of each key by its name; tries that name none were made with the `first`, before there were others."""
    found: dict[str, _Tries] = {}
    rows = AttemptLog.objects.filter(provider=provider).order_by("-at").values_list("at", "tries")
    for at, tries in rows[:MOST]:
        for one in reversed(tries):
            facts = found.setdefault(one.get("key") or first, _Tries())
            _note(facts, at, one)
    return found


def _note(facts: _Tries, at: datetime, one: Mapping[str, Any]) -> None:
    if facts.used is None:
        facts.used = at
    if facts.refused_at is None and one.get("outcome") in KEY_EFFECTS:
        facts.refused_at, facts.refusal = at, one["outcome"]


def _describe(provider: str, key: NamedKey, tries: _Tries) -> KeyHealth:
    cooling = process_run_context().pools.look(provider, PoolKey(key.name, key.mark)) if key.mark else None
    return KeyHealth(
        key.name,
        note_of(key.state),
        key.enabled,
        timezone.now() + timedelta(seconds=cooling.seconds) if cooling else None,
        cooling.failure.fault.value if cooling else "",
        tries.used,
        tries.refused_at,
        tries.refusal,
    )


def list_key_refusals(state: Snapshot) -> list[KeyRefusal]:
    """The keys of pools that the providers refuse, by this process's memory; no query is made."""
    pools, found = process_run_context().pools, []
    for provider, keys in state.provider_keys.items():
        for key in keys.pool:
            cooling = pools.look(provider, PoolKey(key.name, key.mark))
            if cooling is not None and KEY_EFFECTS.get(cooling.failure.fault) is Effect.LONG:
                until = timezone.now() + timedelta(seconds=cooling.seconds)
                found.append(KeyRefusal(provider, key.name, cooling.failure.fault.value, until))
    return found
