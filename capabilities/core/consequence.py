"""Consequences of a change, shown before it is made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from capabilities.core.translatable import Translatable


class Gravity(StrEnum):
    """How serious a consequence is. The values are the pages' colours."""

    STOPS = "bad"
    """Requests that succeeded before will fail."""
    DEGRADES = "warn"
    """Requests will get less than before."""
    CHANGES = "info"
    """Requests will get a different answer, or something unused disappears."""


@dataclass(frozen=True, slots=True)
class Consequence:
    """One consequence as a sentence, and the route, agent, alias or language it affects (empty for all)."""

    gravity: Gravity
    sentence: str
    kind: str = ""
    name: str = ""


def group_by_cause(consequences: Iterable[Consequence]) -> list[list[Consequence]]:
    """Group consequences that say the same of several routes or agents, in the order of the first of each."""
    groups: dict[tuple[Gravity, str], list[Consequence]] = {}
    for one in consequences:
        cause = one.sentence.template if isinstance(one.sentence, Translatable) else one.sentence
        groups.setdefault((one.gravity, cause), []).append(one)
    return list(groups.values())
