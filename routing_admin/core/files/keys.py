"""A key field in a file → what the provider's key becomes (decision 10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from capabilities.core.providers.environment import KeyNotation, form_of, further_variables, referenced_variable
from routing_admin.core.configuration.specs import NO_KEY, KeyKind, KeySpec

Fingerprint = Callable[[str, str], str]
"""The print of a key for an endpoint: the same key for the same origin always gives the same."""


def key_from_file(
    text: str, endpoint: str, own_variable: str, held: KeySpec | None, fingerprint: Fingerprint
) -> tuple[KeySpec, str | None]:
    """The key after an import, and its plaintext where a new one stood in the file.

    `held` is the key the provider has for the same origin: a stored one gives way to another key only, never to an
    empty field, a mask, a placeholder or a `${…}`.
    """
    form = form_of(text)
    if form is KeyNotation.LITERAL:
        mark = fingerprint(text, endpoint)
        if held and held.kind is KeyKind.STORED and held.fingerprint == mark:
            return held, None
        return KeySpec(KeyKind.STORED, fingerprint=mark), text
    if held and held.kind is KeyKind.STORED:
        return held, None
    if form is KeyNotation.NOT_NEEDED:
        return NO_KEY, None
    return KeySpec(KeyKind.ENV, referenced_variable(text) or own_variable), None


def further_keys_from_file(
    entries: Sequence[Mapping[str, Any]],
    endpoint: str,
    first_variable: str,
    held: Sequence[KeySpec],
    fingerprint: Fingerprint,
) -> tuple[tuple[KeySpec, ...], tuple[str, ...]]:
    """The further keys after an import, each known by its name, and the plaintexts that stood in the file."""
    chosen = (referenced_variable(entry["apiKey"]) or "" for entry in entries)
    by_name, keys, plaintexts = {key.name: key for key in held}, list[KeySpec](), list[str]()
    for number, (entry, variable) in enumerate(zip(entries, further_variables(first_variable, chosen), strict=True), 2):
        name = entry.get("name") or str(number)
        key, plaintext = key_from_file(entry["apiKey"], endpoint, variable, by_name.get(name), fingerprint)
        if key.kind is KeyKind.NONE:  # a further key that is not needed would be none
            key = KeySpec(KeyKind.ENV, variable)
        keys.append(replace(key, name=name, enabled=entry.get("enabled") is not False))
        plaintexts += [plaintext] if plaintext is not None else []
    return tuple(keys), tuple(plaintexts)
