"""Immutable values that are cheap to create, and valid ranges of parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value_class(cls: type[T]) -> type[T]:
    """Make a dataclass with slots that is compared and hashed by its fields, and frozen only for the type checker.

    A frozen dataclass sets each field through `object.__setattr__`, which makes creation four times as slow. Use this
    decorator in modules whose values are created for each request, and `@dataclass(frozen=True, slots=True)` elsewhere.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)


# Valid ranges of parameters in files, forms and calls, including both ends.

TEMPERATURE = (0, 2)
MAX_TOKENS = (1, 2**31 - 1)
RETRIES = (0, 10)
MAX_SECONDS = 86_400
"""Maximum value of each timeout (connection, first content, entire answer): one day."""
SHORTEST_SECONDS = 0.1
"""Minimum timeout in forms on pages. A configuration file may set any timeout above 0."""
