"""Consequences of a configuration change, which users see before they make the change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from capabilities.core.translatable import Translatable


class Gravity(StrEnum):
    """The severity of a consequence. On pages, each value has its own colour."""

    STOPS = "bad"
    """Requests that succeeded before will fail."""
    DEGRADES = "warn"
    """A model can no longer read some of the content."""
    CHANGES = "info"
    """Requests will receive a different answer, or an unused object will disappear."""


@dataclass(frozen=True, slots=True)
class Consequence:
    """A consequence in one sentence. `kind` and `name` identify the affected object.

    They are empty if all objects are affected.
    """

    gravity: Gravity
    sentence: str
    kind: str = ""
    name: str = ""


def group_by_cause(consequences: Iterable[Consequence]) -> list[list[Consequence]]:
    """Group consequences that differ only in the names inserted into them, in order of first occurrence."""
    groups: dict[tuple[Gravity, str], list[Consequence]] = {}
    for one in consequences:
        cause = one.sentence.template if isinstance(one.sentence, Translatable) else one.sentence
        groups.setdefault((one.gravity, cause), []).append(one)
    return list(groups.values())
