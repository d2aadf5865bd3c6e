"""Drifts: evidence that a model can read more or less than its recorded capabilities say.

Requests and probes provide this evidence. The nightly probe also changes the recorded capabilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType


class DriftKind(StrEnum):
    """What was found about a model's capability. REFUSED and DENIED do not change the recorded capability."""

    REFUSED = "refused"
    """The model rejected content in a request, although its recorded capabilities include this kind of content."""
    DENIED = "denied"
    """A probe found that the model cannot read a kind of content, although an administrator declared that it can."""
    STOPPED = "stopped"
    """The nightly probe found that the model can no longer read a kind of content, and changed the record."""
    STARTED = "started"
    """The nightly probe found that the model can now read a kind of content, and changed the record."""


DISMISSAL_PERIOD = timedelta(days=7)
"""How long a drift stays hidden after a user has dismissed it."""
REFUTING_KINDS = frozenset({DriftKind.REFUSED, DriftKind.DENIED})

Drifts = Mapping[tuple[str, str], Mapping[str, DriftKind]]
"""Maps (provider, model) to a map from capabilities to kinds of drift."""
NO_DRIFTS: Drifts = MappingProxyType({})


def is_current(kind: DriftKind, can_read: bool) -> bool:
    """Return whether a drift is still relevant, given the capability's current value."""
    # If a recorded change has been undone, it is no longer relevant.
    return can_read is (kind is not DriftKind.STOPPED)
