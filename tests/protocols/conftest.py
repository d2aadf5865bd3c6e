"""The fault lab's simulated provider, which all tests of a module share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab import Lab


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab() as lab:
        yield lab
