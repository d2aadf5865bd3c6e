"""What the providers' pages show: each with its key and with what uses it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet, prefetch_related_objects
from django.utils.translation import gettext as _

from capabilities.core.providers.presets import HostPreset, preset_for_endpoint
from capabilities.models import KeyTest, Provider, ProviderTest
from capabilities.sentences import translate_sentence
from routing_admin.dispatch.receivers import KeyNote, list_key_notes

UNKNOWN_KEY = KeyNote("missing", reason="")


@dataclass(frozen=True, slots=True)
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
        line = ProviderLine(row, keys.get(row.name, UNKNOWN_KEY), (), ())
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
    return ProviderLine(row, keys.get(row.name, UNKNOWN_KEY), services, list_routes(row), tests.get(row.name))


def list_routes(row: Provider) -> tuple[str, ...]:
    """The task types whose chains name the provider, each once."""
    candidates: Iterable[Any] = row.candidates.all()
    return tuple(dict.fromkeys(candidate.route.task_type for candidate in candidates))
