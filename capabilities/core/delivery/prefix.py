"""Does a model get the start of a conversation as it got it before? Its cache and signed thoughts depend on it.

The words of a conversation stay as they are; only its files can go another way, so deliveries are what is compared.
"""

from __future__ import annotations

from dataclasses import dataclass

from capabilities.core.delivery.adaptation import Adapted, PartDelivery
from capabilities.core.delivery.reasons import Reason


@dataclass(frozen=True, slots=True)
class PrefixBreak:
    """The first file of an earlier turn that goes another way now, and as what."""

    now: PartDelivery

    @property
    def message(self) -> int:
        """The index of its message in the canonical request; everything before it stays."""
        return self.now.message

    @property
    def reason(self) -> Reason:
        """What decided it."""
        return self.now.delivery.reason


def find_break(earlier: Adapted, later: Adapted) -> PrefixBreak | None:
    """Where a continued conversation does not begin as it did before; None where it does.

    `later` is adapted from the messages of `earlier` and further ones.
    """
    for before, now in zip(earlier.deliveries, later.deliveries, strict=False):
        if (before.text, before.native) != (now.text, now.native):
            return PrefixBreak(now)
    return None
