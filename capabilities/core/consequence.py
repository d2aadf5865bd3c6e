"""Consequences of a change, shown before it is made."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
