"""Observations that contradict a model's recorded capabilities, or report a change of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType


class DriftKind(StrEnum):
    """What was observed of a model's capability. The first two are doubts, which change nothing by themselves."""

    REFUSED = "refused"
    """It refused content in a request that it is recorded to read."""
    DENIED = "denied"
    """A probe found that it does not read what an administrator declared."""
    STOPPED = "stopped"
    """The nightly probe found that it no longer reads it, and recorded that."""
    STARTED = "started"
    """The nightly probe found that it now reads it, and recorded that."""


QUIET = timedelta(days=7)
"""How long the same observation is not shown again after a user dismissed it."""
DOUBTS = frozenset({DriftKind.REFUSED, DriftKind.DENIED})

Drifts = Mapping[tuple[str, str], Mapping[str, DriftKind]]
"""Observations by provider and model, then by capability."""
NO_DRIFTS: Drifts = MappingProxyType({})


def is_current(kind: DriftKind, can_read: bool) -> bool:
    """Return whether an observation still matters, given what the model is now recorded to read."""
    # A change that was undone does not matter any more.
    return can_read is (kind is not DriftKind.STOPPED)
