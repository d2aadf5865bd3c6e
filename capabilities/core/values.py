"""Immutable values that are cheap to create, and the valid ranges of parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value_class(cls: type[T]) -> type[T]:
    """Make a dataclass with slots, compared and hashed by its fields, that is frozen only for the type checker.

    A frozen dataclass sets each field through `object.__setattr__`, which makes creation four times as slow. Use this
    for values that are created per request, and in the same modules. Use `@dataclass(frozen=True, slots=True)`
    elsewhere.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)


# Valid ranges of parameters in files, forms and calls, including both ends.

TEMPERATURE = (0, 2)
MAX_TOKENS = (1, 2**31 - 1)
RETRIES = (0, 10)
MAX_SECONDS = 86_400
"""Maximum timeout, a day: for a connection, for the first content, and for an entire answer."""
SHORTEST_SECONDS = 0.1
"""Minimum timeout that a page offers. A configuration file may set any timeout above 0."""
