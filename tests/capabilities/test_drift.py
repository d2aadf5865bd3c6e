"""Drift: evidence that a model's capabilities differ from the configured ones."""

from __future__ import annotations

import pytest

from capabilities.core.providers.probes.drift import DriftKind, is_current


@pytest.mark.parametrize("kind", DriftKind)
def test_observation_is_outdated_once_the_capability_was_changed_back(kind: DriftKind) -> None:
    recorded_as_readable = kind is not DriftKind.STOPPED
    assert is_current(kind, recorded_as_readable)
    assert not is_current(kind, not recorded_as_readable)
