"""What the pages of this app show, gathered in a constant number of queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from capabilities.core.providers.presets import HostPreset, preset_for_endpoint
from capabilities.models import Provider
from capabilities.ports import KeyNote, ports
from capabilities.sentences import translate_sentence

UNKNOWN_KEY = KeyNote("missing", reason="")


@dataclass(frozen=True, slots=True)
class ProviderLine:
    """One provider of the list: its row, its key, and what uses it."""

    row: Provider
    key: KeyNote
    services: tuple[str, ...]
    routes: tuple[str, ...]

    @property
    def state(self) -> str:
        """usable, disabled or stopped."""
        if not self.row.enabled:
            return "disabled"
        return "stopped" if self.key.reason else "usable"

    @property
    def reason(self) -> str:
        """Why it cannot be called, in the reader's language where the reason is a missing key."""
        return reason_of(self.key)

    @property
    def preset(self) -> HostPreset | None:
        """The well-known host it is at."""
        return preset_for_endpoint(self.row.endpoint)


def reason_of(key: KeyNote) -> str:
    """Why a provider with this key cannot be called; empty when it can."""
    if key.source == "missing" and key.variable:
        return _("No key: set %(variable)s in the environment, or store one.") % {"variable": key.variable}
    return translate_sentence(key.reason)


def provider_lines(q: str = "", protocol: str = "", state: str = "") -> list[ProviderLine]:
    """The providers that match, in their order; four queries."""
    rows: QuerySet[Provider] = Provider.objects.select_related("stored_key").prefetch_related(
        "services", "candidates__route"
    )
    if q:
        rows = rows.filter(Q(name__icontains=q) | Q(display_name__icontains=q) | Q(endpoint__icontains=q))
    if protocol:
        rows = rows.filter(protocol=protocol)
    keys = ports.installed.key_notes()
    lines = [provider_line(row, keys) for row in rows]
    return [line for line in lines if not state or line.state == state]


def provider_line(row: Provider, keys: Mapping[str, KeyNote]) -> ProviderLine:
    """One provider with its key and its users."""
    services = tuple(service.service_id for service in row.services.all())
    return ProviderLine(row, keys.get(row.name, UNKNOWN_KEY), services, routes_of(row))


def routes_of(row: Provider) -> tuple[str, ...]:
    """The task types whose chains name the provider, each once."""
    candidates: Iterable[Any] = row.candidates.all()
    return tuple(dict.fromkeys(candidate.route.task_type for candidate in candidates))
