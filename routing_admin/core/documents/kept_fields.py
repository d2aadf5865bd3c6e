"""Preserve what a file contains beyond the fields of the parsed value.

A value's `extra` contains unknown fields, and known fields whose spelling differs from the canonical one
(`"temperature": null`, `"fallback": []`, an explicit default). An export repeats the original spelling as long as it
still has the same meaning. Once the value has changed, the canonical spelling is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from capabilities.core.providers.environment import NOT_NEEDED

T = TypeVar("T")

SECRET_FIELDS = ("apiKey", "keys")
NO_SECRETS: tuple[tuple[Any, Any], ...] = (("", NOT_NEEDED), (None, None), ([], None))
"""Spellings of an absent secret that may be preserved, each with the canonical value."""


def find_leftovers(raw: Mapping[str, Any], canonical: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `raw` that `canonical` lacks or spells differently.

    They never contain a key: for key fields, only spellings of an absent key are returned.
    """
    differing = {key: item for key, item in raw.items() if key not in canonical or not same_json(canonical[key], item)}
    return {
        key: item
        for key, item in differing.items()
        if key not in SECRET_FIELDS or (item, canonical.get(key)) in NO_SECRETS
    }


def write_fields(
    canonical: Mapping[str, Any],
    extra: Mapping[str, Any],
    order: Iterable[str],
    means_the_same: Callable[[Mapping[str, Any]], bool],
) -> dict[str, Any]:
    """Return the object to write, with known fields in the file's order.

    A field keeps its original spelling as long as that spelling still has the same meaning.
    """
    known = tuple(order)
    result: dict[str, Any] = {}
    for key in known:
        if key in extra and means_the_same({**canonical, key: extra[key]}):
            result[key] = extra[key]
        elif key in canonical:
            result[key] = canonical[key]
    return result | {key: item for key, item in extra.items() if key not in known}


def same_json(first: Any, second: Any) -> bool:
    """Return whether two JSON values are equal; `true` differs from 1, and 1.0 equals 1."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(same_json(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(same_json, first, second))
    return isinstance(first, bool) == isinstance(second, bool) and bool(first == second)


def drop_absent(pairs: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in pairs.items() if item is not None}


def plain_number(value: Any) -> Any:
    """Return a number as JSON writes it: a whole number has no decimal point. Other values are returned unchanged."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def merge_items(old: tuple[T, ...], new: Mapping[str, T], name: Callable[[T], str]) -> tuple[T, ...]:
    """Merge two lists by name: replace old items by new ones with the same name, and append the remaining new items."""
    merged = {name(item): new.get(name(item), item) for item in old}
    return tuple((merged | {key: item for key, item in new.items() if key not in merged}).values())
