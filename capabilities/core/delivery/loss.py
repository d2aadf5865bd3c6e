"""The part of a file that does not arrive, e.g. because text is cut or an image is scaled down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from capabilities.core.translatable import Translatable, translatable


class LossKind(StrEnum):
    """How a part of a file is lost. The value appears in the `x-routing-adaptation` header."""

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
"""English sentences, which the pages translate, by the kind of loss and whether its share is known."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A part of a file that does not arrive. `share` is how much of the file it is (0 to 1), or None if unknown."""

    kind: LossKind
    share: float | None = None

    @property
    def percent(self) -> int | None:
        # The percentage is never 0 or 100, since something is lost and something arrives.
        return None if self.share is None else min(max(round(self.share * 100), 1), 99)

    def sentence(self) -> Translatable:
        percent = self.percent
        facts = {} if percent is None else {"percent": percent}
        return Translatable(SENTENCES[self.kind, percent is not None], facts)


def loss_of(kind: LossKind, arrives: float, whole: float) -> Loss | None:
    """Return the loss if only `arrives` of `whole` arrives (both in the same unit), or None if all of it arrives."""
    return Loss(kind, 1 - arrives / whole) if arrives < whole else None
