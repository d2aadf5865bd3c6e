"""What speaks against what a model is said to read, or has changed of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType


class DriftKind(StrEnum):
    """What was seen of a model and one capability; the first two are doubts, which change nothing by themselves."""

    REFUSED = "refused"
    """It refused, in a request, what it is said to read."""
    DENIED = "denied"
    """A probe found that it does not read what an administrator declared."""
    STOPPED = "stopped"
    """The nightly probe found that it does not read it any more, and recorded that."""
    STARTED = "started"
    """The nightly probe found that it reads it now, and recorded that."""


QUIET = timedelta(days=7)
"""How long the same is not told again after somebody dismissed it."""
DOUBTS = frozenset({DriftKind.REFUSED, DriftKind.DENIED})

Drifts = Mapping[tuple[str, str], Mapping[str, DriftKind]]
"""What was seen, by provider and model, then by capability."""
NO_DRIFTS: Drifts = MappingProxyType({})


def is_current(kind: DriftKind, reads: bool) -> bool:
    """Whether it still matters, given what the model is said to read now: a change that was undone does not."""
    return reads is (kind is not DriftKind.STOPPED)
