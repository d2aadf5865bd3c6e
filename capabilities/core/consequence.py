"""What a change means for those who use the thing that is changed, said before it happens."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Gravity(StrEnum):
    """How much a consequence weighs; the words are the pages' colours."""

    STOPS = "bad"
    """Somebody who got an answer gets none any more."""
    DEGRADES = "warn"
    """Somebody gets less than before."""
    CHANGES = "info"
    """Somebody gets another answer, or a thing is gone that nobody needs."""


@dataclass(frozen=True, slots=True)
class Consequence:
    """One consequence in a sentence, and whom it concerns: a route, agent, alias or language, or everybody."""

    gravity: Gravity
    sentence: str
    kind: str = ""
    name: str = ""
