"""Observations that contradict a model's recorded capabilities, or that changed them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType


class DriftKind(StrEnum):
    """What was observed about a model's capability. The first two kinds are doubts, which change nothing."""

    REFUSED = "refused"
    """In a request, the model refused content that it is recorded as able to read."""
    DENIED = "denied"
    """A probe found that the model does not read what an administrator declared."""
    STOPPED = "stopped"
    """The nightly probe found that the model no longer reads the content, and recorded this."""
    STARTED = "started"
    """The nightly probe found that the model now reads the content, and recorded this."""


DISMISSAL_PERIOD = timedelta(days=7)
"""How long an observation is not shown again after a user has dismissed it."""
REFUTING_KINDS = frozenset({DriftKind.REFUSED, DriftKind.DENIED})

Drifts = Mapping[tuple[str, str], Mapping[str, DriftKind]]
"""Observations by provider and model, then by capability."""
NO_DRIFTS: Drifts = MappingProxyType({})


def is_current(kind: DriftKind, can_read: bool) -> bool:
    """Return whether an observation still matters, given what the model is now recorded to read."""
    # A change that has been undone no longer matters.
    return can_read is (kind is not DriftKind.STOPPED)
