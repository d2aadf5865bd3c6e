"""Token counts out of what a vendor calls them: each protocol has a table from its names to ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def read_counts(value: Any, names: Mapping[str, str], into: dict[str, int]) -> None:
    """Adds the counts of an object under our names; what the table does not name, or is no count, adds nothing."""
    if not isinstance(value, dict):
        return
    for name, number in value.items():
        ours = names.get(name)
        if ours is not None and isinstance(number, int) and not isinstance(number, bool):
            into[ours] = number
