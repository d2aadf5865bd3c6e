"""What the providers' pages show: each with its key and with what uses it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import Q, QuerySet, prefetch_related_objects
from django.utils import timezone
from django.utils.translation import gettext as _

from capabilities.core.providers.presets import HostPreset, preset_for_endpoint
from capabilities.models import KeyTest, Provider, ProviderTest
from capabilities.sentences import translate_sentence
from routing_admin.configuration import snapshot
from routing_admin.configuration.keys import NamedKey
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.console.providers.key_forms import KeyNameForm
from routing_admin.core.fallback.chain import PoolKey
from routing_admin.core.fallback.table import TABLE, Effect, is_of_key
from routing_admin.dispatch.model_endpoints import KeyNote, list_key_notes, note_of
from routing_admin.dispatch.send import process_run_context
from routing_admin.models import AttemptLog

if TYPE_CHECKING:
    from capabilities.models import KeyTest, Provider

UNKNOWN_KEY = KeyNote("missing", reason="")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderLine:
    """One provider of the list: its row, its key, and what uses it."""

    row: Provider
    key: KeyNote
    services: tuple[str, ...]
    routes: tuple[str, ...]
    test: ProviderTest | None = None

    @property
    def state(self) -> str:
        """usable, disabled or stopped."""
        if not self.row.enabled:
            return "disabled"
        return "stopped" if self.key.reason else "usable"

    @property
    def rank(self) -> int:
        """Its place in a list that begins with the worst: what cannot be called, what failed, what is off last."""
        if self.state == "usable":
            return 1 if self.test and self.test.fault else 2
        return 0 if self.state == "stopped" else 3

    @property
    def reason(self) -> str:
        """Why it cannot be called, in the reader's language where the reason is a missing key."""
        return explain_key(self.key)

    @property
    def preset(self) -> HostPreset | None:
        """The well-known host it is at."""
        return preset_for_endpoint(self.row.endpoint)


def explain_key(key: KeyNote) -> str:
    """Why a provider with this key cannot be called; empty when it can."""
    if key.source == "missing" and key.variable and not key.unconfirmed:
        return _("No key. Set %(variable)s in the environment, or store a key here.") % {"variable": key.variable}
    return translate_sentence(key.reason)


def select_providers() -> QuerySet[Provider]:
    """All providers in their order, not read yet: what a form offers."""
    return Provider.objects.all()


def find_provider(name: str) -> Provider | None:
    """The provider with that name; None for none."""
    return Provider.objects.filter(name=name).first()


def find_providers(names: Iterable[str]) -> list[Provider]:
    """The providers with these names, in their order; unknown names are passed over."""
    return list(Provider.objects.filter(name__in=list(names)))


def list_enabled_providers() -> list[Provider]:
    """Every provider that is enabled, in their order; one query."""
    return list(Provider.objects.filter(enabled=True))


def find_key_tests(provider: str) -> dict[str, KeyTest]:
    """The last test of each of a provider's keys, by the key's name; one query."""
    return {each.key: each for each in KeyTest.objects.filter(provider=provider)}


def list_provider_names() -> list[str]:
    """The names of all providers, in their order."""
    return list(Provider.objects.values_list("name", flat=True))


def provider_exists(name: str) -> bool:
    """Whether a provider has that name."""
    return Provider.objects.filter(name=name).exists()


def list_providers(q: str = "", protocol: str = "", state: str = "") -> list[ProviderLine]:
    """The providers that match, the worst first, else in their order; five queries.

    `state` is one of a line's, or `failed` for those whose last test failed.
    """
    rows: QuerySet[Provider] = Provider.objects.select_related("stored_key").prefetch_related(
        "services", "candidates__route"
    )
    if q:
        rows = rows.filter(Q(name__icontains=q) | Q(display_name__icontains=q) | Q(endpoint__icontains=q))
    if protocol:
        rows = rows.filter(protocol=protocol)
    keys, tests = list_key_notes(), ProviderTest.objects.in_bulk()
    lines = sorted((build_line(row, keys, tests) for row in rows), key=lambda line: line.rank)
    if state == "failed":
        return [line for line in lines if line.test and line.test.fault]
    return [line for line in lines if not state or line.state == state]


def list_by_preset() -> dict[str, list[ProviderLine]]:
    """The providers that each preset would make once more, by its name: at its host, or called like it; one query."""
    keys = list_key_notes()
    found: dict[str, list[ProviderLine]] = {}
    for row in Provider.objects.all():
        line = ProviderLine(row=row, key=keys.get(row.name, UNKNOWN_KEY), services=(), routes=())
        for name in {row.name, line.preset.name if line.preset else row.name}:
            found.setdefault(name, []).append(line)
    return found


def describe_provider(row: Provider) -> ProviderLine:
    """One provider with its key, its users and its last test; four queries."""
    prefetch_related_objects([row], "services", "candidates__route")
    return build_line(row, list_key_notes(), ProviderTest.objects.in_bulk([row.name]))


def build_line(row: Provider, keys: Mapping[str, KeyNote], tests: Mapping[str, ProviderTest]) -> ProviderLine:
    """One provider with its key and its last test, of those given, and its users."""
    services = tuple(service.service_id for service in row.services.all())
    return ProviderLine(
        row=row,
        key=keys.get(row.name, UNKNOWN_KEY),
        services=services,
        routes=list_routes(row),
        test=tests.get(row.name),
    )


def list_routes(row: Provider) -> tuple[str, ...]:
    """The task types whose chains name the provider, each once."""
    candidates: Iterable[Any] = row.candidates.all()
    return tuple(dict.fromkeys(candidate.route.task_type for candidate in candidates))


# How does each of a provider's keys do? Its rest from this process's memory, its last use and refusal from the log.

MOST = 500
"""Newest attempts of a provider that are looked at."""


@dataclass(frozen=True, slots=True)
class KeyRefusal:
    """A key that rests since the provider refused it, and not only for a while; `fault` says how."""

    provider: str
    key: str
    fault: str
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
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
    if facts.refused_at is None and is_of_key(one.get("outcome", "")):
        facts.refused_at, facts.refusal = at, one["outcome"]


def _describe(provider: str, key: NamedKey, tries: _Tries) -> KeyHealth:
    cooling = process_run_context().pools.look(provider, PoolKey(key.name, key.mark)) if key.mark else None
    return KeyHealth(
        name=key.name,
        note=note_of(key.state),
        enabled=key.enabled,
        rests_until=timezone.now() + timedelta(seconds=cooling.seconds) if cooling else None,
        rest=cooling.failure.fault.value if cooling else "",
        last_used=tries.used,
        refused_at=tries.refused_at,
        refusal=tries.refusal,
    )


def list_key_refusals(state: Snapshot) -> list[KeyRefusal]:
    """The keys of pools that the providers refuse, by this process's memory; no query is made."""
    pools, found = process_run_context().pools, []
    for provider, keys in state.provider_keys.items():
        for key in keys.pool:
            cooling = pools.look(provider, PoolKey(key.name, key.mark))
            if cooling is not None and TABLE[cooling.failure.fault].key_effect is Effect.LONG:
                until = timezone.now() + timedelta(seconds=cooling.seconds)
                found.append(KeyRefusal(provider, key.name, cooling.failure.fault.value, until))
    return found


# The keys of a provider as its page lists them: how each does, its last test, and the form that changes it.


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A key as its line shows it: how it does, its last test, and the form that changes it."""

    place: int
    health: KeyHealth
    form: KeyNameForm
    test: KeyTest | None = None

    @property
    def state(self) -> str:
        """disabled, missing, resting or in_use: what stands in its way first."""
        if not self.health.enabled:
            return "disabled"
        if self.health.note.reason:
            return "missing"
        return "resting" if self.health.rests_until else "in_use"


def list_key_rows(row: Provider) -> list[KeyRow]:
    """Every key of the provider in order; tests and log are asked only where there are several."""
    every: Sequence[KeyHealth] = describe_keys(row.name)
    tests = find_key_tests(row.name) if len(every) > 1 else {}
    return [KeyRow(place, each, _form_of(place, each), tests.get(each.name)) for place, each in enumerate(every, 1)]


def _form_of(place: int, key: KeyHealth) -> KeyNameForm:
    initial = {"key": key.name, "name": key.name, "enabled": key.enabled}
    return KeyNameForm(prefix=f"key-{place}", initial=initial)
