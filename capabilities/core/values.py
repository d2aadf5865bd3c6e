"""Values that nobody changes, made as cheaply as an object can be made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value_class(cls: type[T]) -> type[T]:
    """A dataclass with slots, equal and hashed by its fields, that is frozen for the type checker alone.

    A frozen dataclass sets each field through `object.__setattr__`, which makes it four times as dear to create. For
    what calls are made of, and its neighbours in those modules; all others are `@dataclass(frozen=True, slots=True)`.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)


# Between which numbers is a parameter valid? Files, forms and calls ask here; both ends are in the range.

TEMPERATURE = (0, 2)
MAX_TOKENS = (1, 2**31 - 1)
RETRIES = (0, 10)
MAX_SECONDS = 86_400
"""The longest time anybody may set, a day: of a connection, of a first content, of a whole answer."""
SHORTEST_SECONDS = 0.1
"""The shortest time that a page offers; a file may name any above 0."""
