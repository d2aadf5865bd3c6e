"""The keys of a provider as its page lists them: how each does, its last test, and the form that changes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from routing_admin.console.providers.key_forms import KeyNameForm
from routing_admin.console.providers.key_queries import KeyHealth, describe_keys
from routing_admin.console.providers.queries import find_key_tests

if TYPE_CHECKING:
    from capabilities.models import KeyTest, Provider


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
