"""Consequences of a change, which are shown before the change is made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from capabilities.core.translatable import Translatable


class Gravity(StrEnum):
    """The severity of a consequence. Pages use the values as colours."""

    STOPS = "bad"
    """Requests that succeeded before will fail."""
    DEGRADES = "warn"
    """Requests will receive less than before."""
    CHANGES = "info"
    """Requests will receive a different answer, or an unused object disappears."""


@dataclass(frozen=True, slots=True)
class Consequence:
    """A consequence as a sentence, with the affected route, agent, alias or language (empty if all are affected)."""

    gravity: Gravity
    sentence: str
    kind: str = ""
    name: str = ""


def group_by_cause(consequences: Iterable[Consequence]) -> list[list[Consequence]]:
    """Group consequences with the same text for several routes or agents, in order of first occurrence."""
    groups: dict[tuple[Gravity, str], list[Consequence]] = {}
    for one in consequences:
        cause = one.sentence.template if isinstance(one.sentence, Translatable) else one.sentence
        groups.setdefault((one.gravity, cause), []).append(one)
    return list(groups.values())
