"""A key field in a file → what the provider's key becomes (decision 10)."""

from __future__ import annotations

from collections.abc import Callable

from capabilities.core.providers.environment import KeyNotation, form_of, referenced_variable
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
