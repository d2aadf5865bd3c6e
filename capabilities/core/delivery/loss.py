"""What of a file does not arrive though some of it does: a text cut short, an image made smaller (CONTRACT §6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from capabilities.core.translatable import Translatable, translatable


class LossKind(StrEnum):
    """How something is lost; the word stands in the `x-routing-adaptation` header."""

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
"""By kind and whether the share is known; English, pages translate it."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Part of a file does not arrive; `share` is how much of it (0 to 1), None where nobody knows."""

    kind: LossKind
    share: float | None = None

    @property
    def percent(self) -> int | None:
        """The share in whole percent, never 0 and never 100: something is lost, and something arrives."""
        return None if self.share is None else min(max(round(self.share * 100), 1), 99)

    def sentence(self) -> Translatable:
        """The loss as one sentence."""
        percent = self.percent
        facts = {} if percent is None else {"percent": percent}
        return Translatable(SENTENCES[self.kind, percent is not None], facts)


def loss_of(kind: LossKind, arrives: float, whole: float) -> Loss | None:
    """The loss when so much of the whole arrives, in any one unit; None where all of it does."""
    return Loss(kind, 1 - arrives / whole) if arrives < whole else None
