"""The part of a file that does not arrive: a text cut short, an image scaled down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from capabilities.core.translatable import Translatable, translatable


class LossKind(StrEnum):
    """How something is lost. The value appears in the `x-routing-adaptation` header."""

    CUT = "cut"
    SCALED = "scaled"


SENTENCES: Mapping[tuple[LossKind, bool], str] = MappingProxyType(
    {
        (LossKind.CUT, True): translatable("Cut: %(percent)s%% is missing."),
        (LossKind.CUT, False): translatable("Cut: only the beginning arrives."),
        (LossKind.SCALED, True): translatable("Scaled down: %(percent)s%% fewer pixels."),
        (LossKind.SCALED, False): translatable("Scaled down."),
    }
)
"""Sentences by kind and whether the share is known, in English for the pages to translate."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Part of a file does not arrive. `share` is how much (0 to 1), None if unknown."""

    kind: LossKind
    share: float | None = None

    @property
    def percent(self) -> int | None:
        # Never 0 and never 100: something is lost, and something arrives.
        return None if self.share is None else min(max(round(self.share * 100), 1), 99)

    def sentence(self) -> Translatable:
        percent = self.percent
        facts = {} if percent is None else {"percent": percent}
        return Translatable(SENTENCES[self.kind, percent is not None], facts)


def loss_of(kind: LossKind, arrives: float, whole: float) -> Loss | None:
    """Return the loss if `arrives` of `whole` arrives, in any one unit, or None if all of it does."""
    return Loss(kind, 1 - arrives / whole) if arrives < whole else None
