"""Token counts out of what a vendor calls them: each protocol has a table from its names to ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capabilities.core.protocols.fields import count_of


def read_counts(value: Any, names: Mapping[str, str], into: dict[str, int]) -> None:
    """Adds the counts of an object under our names; what the table does not name, or is no count, adds nothing."""
    if not isinstance(value, dict):
        return
    for name, number in value.items():
        ours = names.get(name)
        counted = count_of(number) if ours is not None else None
        if ours is not None and counted is not None:
            into[ours] = counted
