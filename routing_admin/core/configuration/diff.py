"""Differences between two configurations, as values and as sentences.

A change names the object and the field, so that pages can translate it. Instead of a key, it contains the name of the
key's environment variable, or a note that the key is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from routing_admin.core.configuration.as_json import to_json
from routing_admin.core.configuration.specs import Configuration, KeyKind, KeySpec
from routing_admin.core.documents.json_path import child, write_document
from routing_admin.core.documents.kept_fields import same_json


class ChangeKind(StrEnum):
    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"
    MOVED = "moved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference between two configurations.

    `kind` is `configuration` or the first item of an entry in `LISTS`. `name` is the object's name. `field` is the path
    inside the object, or empty if the whole object differs. `before` and `after` are JSON values, or None if absent.
    """

    action: ChangeKind
    kind: str
    name: str
    field: str = ""
    before: Any = None
    after: Any = None


LISTS = (
    ("provider", "providers", "name"),
    ("service", "services", "id"),
    ("route", "routes", "task_type"),
    ("alias", "aliases", "name"),
    ("agent", "agents", "id"),
    ("language", "languages", "code"),
    ("exchange_rate", "exchange_rates", "currency"),
    ("budget", "label_budgets", "id"),
)
ROOT_FIELDS = (
    *("default_language", "content_policy", "content_text", "content_html"),
    *("catalogue", "extra_routing", "extra_services"),
)
KIND_WORDS: Mapping[str, str] = {"service": "model service", "route": "task route", "exchange_rate": "exchange rate"}
MORE_KEYS = "more_keys"
UNORDERED = frozenset({"alias", "agent", "language", "budget"})
"""Kinds of objects whose order has no meaning, because the database and the pages sort them."""


def required_right(kind: str, field: str) -> str:
    """Return the kind of object that a user must be allowed to edit in order to make a change.

    For settings of agent keys this is `key`.
    """
    return "key" if kind == "agent" and field.startswith(("keys.", "keys[")) else kind


def diff(old: Configuration, new: Configuration) -> tuple[Change, ...]:
    """Return every difference, in the order in which pages show the objects."""
    before, after = _without_keys(old), _without_keys(new)
    changes: list[Change] = []
    for kind, field, name in LISTS:
        changes += _list_changes(kind, before[field], after[field], name)
    for field in ROOT_FIELDS:
        changes += _field_changes("configuration", "", field, before[field], after[field])
    return tuple(changes)


def _without_keys(configuration: Configuration) -> dict[str, Any]:
    value = to_json(configuration)
    # Replace each key with a description, so that no difference contains a ciphertext.
    for item, provider in zip(value["providers"], configuration.providers, strict=True):
        item["key"] = _key(provider.key)
        item["key_name"], item["key_enabled"] = provider.key.name, provider.key.enabled
        item["more_keys"] = {key.name: {"key": _key(key), "enabled": key.enabled} for key in provider.more_keys}
    return value


def _key(key: KeySpec) -> str:
    if key.kind is KeyKind.ENV:
        return f"${{{key.variable}}}"
    if key.kind is KeyKind.NONE:
        return "NOT_NEEDED"
    return f"stored ({key.fingerprint[:8]})" if key.fingerprint else "stored"


def _list_changes(kind: str, before: list[Any], after: list[Any], name: str) -> Iterator[Change]:
    old = {item[name]: item for item in before}
    new = {item[name]: item for item in after}
    for key in old:
        if key not in new:
            yield Change(action=ChangeKind.REMOVED, kind=kind, name=key, before=old[key])
    for key, item in new.items():
        if key not in old:
            yield Change(action=ChangeKind.ADDED, kind=kind, name=key, after=item)
            continue
        for field in item:
            yield from _field_changes(kind, key, field, old[key][field], item[field])
    # Compare only the order of items that exist on both sides, because added and removed items are reported above.
    order_before, order_after = [key for key in old if key in new], [key for key in new if key in old]
    if order_before != order_after and kind not in UNORDERED:
        yield Change(action=ChangeKind.MOVED, kind=kind, name="", before=order_before, after=order_after)


def _field_changes(kind: str, name: str, field: str, before: Any, after: Any) -> Iterator[Change]:
    if field == MORE_KEYS:
        yield from _order_change(kind, name, list(before), list(after))
    if same_json(before, after):
        return
    # Objects are compared field by field, lists only as a whole, because their order has a meaning.
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys((*before, *after)):
            subfield = child(field, key)
            if key not in before:
                yield Change(action=ChangeKind.ADDED, kind=kind, name=name, field=subfield, after=after[key])
            elif key not in after:
                yield Change(action=ChangeKind.REMOVED, kind=kind, name=name, field=subfield, before=before[key])
            else:
                yield from _field_changes(kind, name, subfield, before[key], after[key])
        return
    # An empty value is treated as absent.
    action = (
        ChangeKind.ADDED
        if before in (None, "", {})
        else ChangeKind.REMOVED
        if after in (None, "", {})
        else ChangeKind.CHANGED
    )
    yield Change(action=action, kind=kind, name=name, field=field, before=before, after=after)


def _order_change(kind: str, name: str, before: list[str], after: list[str]) -> Iterator[Change]:
    # Compare only the order of keys that exist on both sides, because added and removed keys are reported separately.
    common = [[key for key in keys if key in before and key in after] for keys in (before, after)]
    if common[0] != common[1]:
        yield Change(action=ChangeKind.CHANGED, kind=kind, name=name, field=MORE_KEYS, before=before, after=after)


def round_floats(value: Any) -> Any:
    """Return a JSON value for display, with numbers rounded to ten significant digits (0.9500000000000001 → 0.95)."""
    if isinstance(value, float):
        return float(f"{value:.10g}")
    if isinstance(value, Mapping):
        return {key: round_floats(item) for key, item in value.items()}
    return [round_floats(item) for item in value] if isinstance(value, list | tuple) else value


def sentence(change: Change) -> str:
    kind = KIND_WORDS.get(change.kind, change.kind)
    subject = f"{kind} “{change.name}”" if change.name else f"the {kind}"
    if change.action is ChangeKind.MOVED:
        return f"The order of the {kind}s is now: {', '.join(change.after)}."
    if not change.field:
        return f"{subject[0].upper()}{subject[1:]} is {change.action.value}."
    before, after = (format_value(change.field, round_floats(value)) for value in (change.before, change.after))
    field = f"{change.field} of {subject}"
    return {
        ChangeKind.ADDED: f"{field} is set to {after}.",
        ChangeKind.REMOVED: f"{field} is removed; it was {before}.",
        ChangeKind.CHANGED: f"{field} changes from {before} to {after}.",
    }[change.action]


def format_value(field: str, value: Any) -> str:
    """Format a changed value for users; a fallback chain is written `a → b/model`."""
    if field == "candidates" and isinstance(value, list):
        return " → ".join(_candidate(item) for item in value)
    if isinstance(value, str):
        return f"“{value}”"
    return "nothing" if value is None else write_document(value).strip() if not isinstance(value, bool) else _yes(value)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


CANDIDATE_WORDS = ("temperature", "max_tokens", "extra_body", "extra")


def _candidate(item: Mapping[str, Any]) -> str:
    name = item["provider"] if item["model"] is None else f"{item['provider']}/{item['model']}"
    own = {key: item[key] for key in CANDIDATE_WORDS if item[key] not in (None, {})}
    return f"{name} ({', '.join(f'{key} {value}' for key, value in own.items())})" if own else name
