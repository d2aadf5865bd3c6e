"""Observations that contradict a model's recorded capabilities, or that changed them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType


class DriftKind(StrEnum):
    """An observation about a model's capability. The first two kinds are doubts, which change nothing."""

    REFUSED = "refused"
    """In a request, the model refused content that it can read according to its record."""
    DENIED = "denied"
    """A probe found that the model cannot read content that an administrator declared as readable."""
    STOPPED = "stopped"
    """The nightly probe found that the model can no longer read the content, and recorded this."""
    STARTED = "started"
    """The nightly probe found that the model can now read the content, and recorded this."""


DISMISSAL_PERIOD = timedelta(days=7)
"""Time for which an observation is hidden after a user has dismissed it."""
REFUTING_KINDS = frozenset({DriftKind.REFUSED, DriftKind.DENIED})

Drifts = Mapping[tuple[str, str], Mapping[str, DriftKind]]
"""Observations by provider and model, then by capability."""
NO_DRIFTS: Drifts = MappingProxyType({})


def is_current(kind: DriftKind, can_read: bool) -> bool:
    """Return whether an observation is still relevant, given the capability's current value."""
    # A change that was undone is no longer relevant.
    return can_read is (kind is not DriftKind.STOPPED)
