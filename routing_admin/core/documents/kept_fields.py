"""How a value and its object in a file keep faith: what the fields cannot say is kept aside and written back.

`extra` of a value holds the fields nobody knows, and known fields whose way of writing the canonical one does not
give back (`"temperature": null`, `"fallback": []`, a default written out). On export such a leftover is written as
long as it still means what the value says; once somebody has changed the value, the value wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from capabilities.core.providers.environment import NOT_NEEDED

T = TypeVar("T")

SECRET_FIELDS = ("apiKey", "keys")
NO_SECRETS: tuple[tuple[Any, Any], ...] = (("", NOT_NEEDED), (None, None), ([], None))
"""What a secret field may be kept as, beside what is written for it: ways of saying that there is none."""


def find_leftovers(raw: Mapping[str, Any], canonical: Mapping[str, Any]) -> dict[str, Any]:
    """What `raw` says and `canonical` does not; of key fields only the empty text that means none, never a key."""
    kept = {key: item for key, item in raw.items() if key not in canonical or not same_json(canonical[key], item)}
    return {
        key: item for key, item in kept.items() if key not in SECRET_FIELDS or (item, canonical.get(key)) in NO_SECRETS
    }


def write_fields(
    canonical: Mapping[str, Any],
    extra: Mapping[str, Any],
    order: Iterable[str],
    means_the_same: Callable[[Mapping[str, Any]], bool],
) -> dict[str, Any]:
    """The object to write: known fields in the file's order, each as it was written where that still holds."""
    known = tuple(order)
    result: dict[str, Any] = {}
    for key in known:
        if key in extra and means_the_same({**canonical, key: extra[key]}):
            result[key] = extra[key]
        elif key in canonical:
            result[key] = canonical[key]
    return result | {key: item for key, item in extra.items() if key not in known}


def same_json(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal; true is not 1 here, and 1.0 is 1."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same_json(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same_json, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def drop_absent(pairs: Mapping[str, Any]) -> dict[str, Any]:
    """The pairs whose value is not None."""
    return {key: item for key, item in pairs.items() if item is not None}


def plain_number(value: Any) -> Any:
    """A number as JSON writes it: whole ones without a point; null stays absent."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def merge_items(old: tuple[T, ...], new: Mapping[str, T], name: Callable[[T], str]) -> tuple[T, ...]:
    """The old items in their order, each replaced by the new one of its name, then the others that are new."""
    kept = {name(item): new.get(name(item), item) for item in old}
    return tuple((kept | {key: item for key, item in new.items() if key not in kept}).values())
