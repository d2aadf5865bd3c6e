"""Queries for the pages of providers: providers with keys, connection tests and uses, and the health of each key."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from django.db.models import Count, QuerySet, prefetch_related_objects
from django.utils import timezone
from django.utils.translation import gettext as _

from capabilities.core.providers.presets import HostPreset, preset_for_endpoint
from capabilities.core.wire import Fault
from capabilities.models import KeyTest, Provider, ProviderTest, Service
from capabilities.sentences import translate_sentence
from routing_admin.configuration import snapshot
from routing_admin.configuration.keys import NamedKey
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.console.providers.key_forms import KeyNameForm
from routing_admin.console.providers.rules import NO_KEY, READY, ProviderState, derive_state, key_badge
from routing_admin.console.requests.story import explain_outcome
from routing_admin.core.fallback.chain import OK, PoolKey
from routing_admin.core.fallback.cooldown import Cooldowns
from routing_admin.core.fallback.table import TABLE, Effect, is_key_fault
from routing_admin.dispatch.model_endpoints import KeyNote, build_key_note, list_key_notes
from routing_admin.dispatch.send import process_run_context
from routing_admin.models import AttemptLog, Candidate
from routing_admin.request_log.health import Health, Sample, provider_health

UNKNOWN_KEY = KeyNote("missing", reason="")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderLine:
    """A provider in a list, with its key, its state, and the services and routes that use it."""

    row: Provider
    key: KeyNote
    state: ProviderState
    services: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()
    test: ProviderTest | None = None

    @property
    def reason(self) -> str:
        return explain_key(self.key)

    @property
    def test_meaning(self) -> str:
        return explain_test(self.test)

    @property
    def test_is_current(self) -> bool:
        """Return whether the provider is ready, which means that the result of a successful last test still holds.

        If it is not ready, its state is based on information that is newer than the test.
        """
        return self.state.is_ready

    @property
    def test_says_no_more(self) -> bool:
        """Return whether the last connection test failed only because the key is missing, as the state already says."""
        return self.test is not None and self.test.fault == Fault.KEY_MISSING and self.state.name == NO_KEY

    @property
    def preset(self) -> HostPreset | None:
        """Return the preset with the same host as the provider's endpoint."""
        return preset_for_endpoint(self.row.endpoint)


def explain_test(test: ProviderTest | KeyTest | None) -> str:
    return explain_outcome(test.fault) or test.fault if test else ""


def explain_key(key: KeyNote) -> str:
    """Return why a provider with this key cannot be called, or an empty string if it can be called."""
    if key.source == "missing" and key.variable and not key.unconfirmed:
        return _("Set %(variable)s in the environment, or store a key here.") % {"variable": key.variable}
    return translate_sentence(key.reason)


def select_providers() -> QuerySet[Provider]:
    return Provider.objects.all()


def find_provider(name: str) -> Provider | None:
    return Provider.objects.filter(name=name).first()


def find_providers(names: Iterable[str]) -> list[Provider]:
    return list(Provider.objects.filter(name__in=list(names)))


def list_enabled_providers() -> list[Provider]:
    return list(Provider.objects.filter(enabled=True))


def find_key_tests(provider: str) -> dict[str, KeyTest]:
    return {test.key: test for test in KeyTest.objects.filter(provider=provider)}


def list_provider_names() -> list[str]:
    return list(Provider.objects.values_list("name", flat=True))


def provider_exists(name: str) -> bool:
    return Provider.objects.filter(name=name).exists()


# The state of a provider is derived from its row and from this evidence.


@dataclass(frozen=True, slots=True)
class Evidence:
    """Keys, cooldowns, latest connection tests, and calls in the last hour, each by provider name."""

    keys: Mapping[str, KeyNote]
    cooling: Mapping[str, float]
    tests: Mapping[str, ProviderTest]
    health: Mapping[str, Health]

    def find_state(self, name: str, *, is_enabled: bool) -> ProviderState:
        test = self.tests.get(name)
        return derive_state(
            is_enabled=is_enabled,
            key=self.keys.get(name, UNKNOWN_KEY),
            cooling=self.cooling.get(name),
            test=Sample(test.at, test.fault or OK, test.ms) if test else None,
            health=self.health.get(name),
        )

    def describe(self, row: Provider, **uses: tuple[str, ...]) -> ProviderLine:
        state = self.find_state(row.name, is_enabled=row.enabled)
        key, test = self.keys.get(row.name, UNKNOWN_KEY), self.tests.get(row.name)
        return ProviderLine(row=row, key=key, state=state, test=test, **uses)


def read_evidence(name: str = "") -> Evidence:
    """Return the evidence for one provider's state or, if no name is given, for all. This takes two queries."""
    state = snapshot.current()
    tests = ProviderTest.objects.in_bulk([name] if name else None)
    health = provider_health(timezone.now(), list_models(state), name)
    return Evidence(list_key_notes(), find_cooling(state, process_run_context().cooldowns), tests, health)


def find_cooling(state: Snapshot, cooldowns: Cooldowns) -> Mapping[str, float]:
    """Map each provider that is in cooldown to the number of seconds until its first model can be called again.

    A provider is in cooldown if all its used models are: those in enabled routes or, if there are none, the default
    model.
    """
    names = {provider for (provider, _model), _cooling in cooldowns.list_cooling()}
    found: dict[str, float] = {}
    for spec in state.configuration.providers if names else ():
        if spec.name in names:
            models = list_routed_models(state).get(spec.name, {spec.default_model})
            rests = [cooling.seconds for model in models if (cooling := cooldowns.look(spec.name, model))]
            if len(rests) == len(models):
                found[spec.name] = min(rests)
    return found


@lru_cache(maxsize=2)
def list_routed_models(state: Snapshot) -> Mapping[str, Collection[str]]:
    """Map each provider in an enabled route to the models that enabled routes call at this provider."""
    defaults = {spec.name: spec.default_model for spec in state.configuration.providers}
    models: dict[str, set[str]] = {}
    for route in state.configuration.routes:
        for candidate in route.candidates if route.enabled else ():
            model = candidate.model or defaults.get(candidate.provider, "")
            models.setdefault(candidate.provider, set()).add(model)
    return models


@lru_cache(maxsize=2)
def list_models(state: Snapshot) -> frozenset[tuple[str, str]]:
    configuration = state.configuration
    defaults = {spec.name: spec.default_model for spec in configuration.providers}
    services = {(spec.provider, spec.model) for spec in configuration.services}
    chains = (candidate for route in configuration.routes for candidate in route.candidates)
    candidates = {(candidate.provider, candidate.model or defaults.get(candidate.provider, "")) for candidate in chains}
    return frozenset({*defaults.items(), *services, *candidates})


def list_providers() -> list[ProviderLine]:
    """Return all providers with key and state, but not the routes and services that use them.

    This takes three queries.
    """
    evidence = read_evidence()
    return [evidence.describe(row) for row in select_providers()]


def count_uses() -> tuple[Mapping[int, int], Mapping[int, int]]:
    """Return how many routes, and how many services, use each provider, by the provider's primary key.

    This takes two queries.
    """
    routes = Candidate.objects.order_by().values_list("provider").annotate(count=Count("route", distinct=True))
    services = Service.objects.order_by().values_list("provider").annotate(count=Count("pk"))
    return dict(routes), dict(services)


def list_by_preset() -> dict[str, list[ProviderLine]]:
    """Map each preset to the existing providers that have its host or its name.

    This takes one query.
    """
    evidence = Evidence(list_key_notes(), {}, {}, {})
    by_preset: dict[str, list[ProviderLine]] = {}
    for row in Provider.objects.all():
        line = evidence.describe(row)
        for name in {row.name, line.preset.name if line.preset else row.name}:
            by_preset.setdefault(name, []).append(line)
    return by_preset


def describe_provider(row: Provider) -> ProviderLine:
    prefetch_related_objects([row], "services", "candidates__route")
    services = tuple(service.service_id for service in row.services.all())
    return read_evidence(row.name).describe(row, services=services, routes=list_routes(row))


def list_routes(row: Provider) -> tuple[str, ...]:
    candidates: Iterable[Any] = row.candidates.all()
    return tuple(dict.fromkeys(candidate.route.task_type for candidate in candidates))


# A key's health combines its cooldown, which is in this process's memory, with its last use and last rejection, which
# are in the log.

MAX_ATTEMPTS = 500
"""Maximum number of a provider's logged attempts to read, newest first."""


@dataclass(frozen=True, slots=True)
class KeyRefusal:
    """A key that is cooling down because the provider rejected it, and the error that the provider returned."""

    provider: str
    key: str
    fault: str
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyHealth:
    """A provider's key: its source, its cooldown in this process, and its last use according to the log.

    `rests_until` is the end of the cooldown, or None, and `rest` is the error that caused it. `refusal` is the error
    with which the provider last rejected the key. The last use and the last rejection are searched for only among the
    provider's newest attempts.
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
    """Return a provider's keys in order, or nothing if the newest snapshot does not contain the provider yet.

    If there are several keys, the log is read with one query.
    """
    pool = snapshot.current().provider_keys.get(provider)
    if pool is None:
        return []
    keys = pool.every
    histories = _read_histories(provider, keys[0].name) if len(keys) > 1 else {}
    return [_describe(provider, key, histories.get(key.name, _KeyHistory())) for key in keys]


@dataclass(slots=True)
class _KeyHistory:
    used: datetime | None = None
    refused_at: datetime | None = None
    refusal: str = ""


def _read_histories(provider: str, first: str) -> Mapping[str, _KeyHistory]:
    # A try that was logged without the name of a key used the first key, which was then the only key.
    by_key: dict[str, _KeyHistory] = {}
    # Attempts and tries are read newest first, so the first use and the first rejection found are the latest.
    rows = AttemptLog.objects.filter(provider=provider).order_by("-at").values_list("at", "tries")
    for at, tries in rows[:MAX_ATTEMPTS]:
        for entry in reversed(tries):
            history = by_key.setdefault(entry.get("key") or first, _KeyHistory())
            _note(history, at, entry)
    return by_key


def _note(history: _KeyHistory, at: datetime, entry: Mapping[str, Any]) -> None:
    if history.used is None:
        history.used = at
    if history.refused_at is None and is_key_fault(entry.get("outcome", "")):
        history.refused_at, history.refusal = at, entry["outcome"]


def _describe(provider: str, key: NamedKey, history: _KeyHistory) -> KeyHealth:
    cooling = process_run_context().pools.look(provider, PoolKey(key.name, key.mark)) if key.mark else None
    return KeyHealth(
        name=key.name,
        note=build_key_note(key.state),
        enabled=key.enabled,
        rests_until=timezone.now() + timedelta(seconds=cooling.seconds) if cooling else None,
        rest=cooling.failure.fault.value if cooling else "",
        last_used=history.used,
        refused_at=history.refused_at,
        refusal=history.refusal,
    )


def is_rejection(fault: Fault) -> bool:
    """Return whether this fault means that the provider rejected the key.

    A fault that causes only a short cooldown, such as a rate limit, is not a rejection.
    """
    return TABLE[fault].key_effect is Effect.LONG


def list_key_refusals(state: Snapshot) -> list[KeyRefusal]:
    """Return the keys that providers reject, as far as this process knows, without querying the database."""
    pools, refusals = process_run_context().pools, []
    for provider, keys in state.provider_keys.items():
        for key in keys.pool:
            cooling = pools.look(provider, PoolKey(key.name, key.mark))
            if cooling is not None and is_rejection(cooling.failure.fault):
                until = timezone.now() + timedelta(seconds=cooling.seconds)
                refusals.append(KeyRefusal(provider, key.name, cooling.failure.fault.value, until))
    return refusals


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A provider's key as a row of the page: its health, its last connection test, and its form."""

    place: int
    health: KeyHealth
    form: KeyNameForm
    test: KeyTest | None = None

    @property
    def badge(self) -> str:
        """Return the state's key in `labels.BADGES`.

        It is `rejected` if the key is in cooldown because it was rejected.
        """
        if not self.health.enabled:
            return "disabled"
        if self.health.note.reason or not self.health.rests_until:
            return key_badge(self.health.note)
        return "rejected" if is_rejection(Fault(self.health.rest)) else "cooling"

    @property
    def test_meaning(self) -> str:
        return explain_test(self.test)

    @property
    def test_is_current(self) -> bool:
        return self.badge == READY


def list_key_rows(row: Provider) -> list[KeyRow]:
    """Return a provider's keys in order. If there is only one, neither its tests nor the log are read."""
    keys: Sequence[KeyHealth] = describe_keys(row.name)
    tests = find_key_tests(row.name) if len(keys) > 1 else {}
    return [
        KeyRow(position, key, _key_form(position, key), tests.get(key.name)) for position, key in enumerate(keys, 1)
    ]


def _key_form(position: int, key: KeyHealth) -> KeyNameForm:
    initial = {"key": key.name, "name": key.name, "enabled": key.enabled}
    return KeyNameForm(prefix=f"key-{position}", initial=initial)
