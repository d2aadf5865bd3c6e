"""The difference between two configurations is complete, is described in sentences, and contains no keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from routing_admin.core.configuration.as_json import from_json, to_json
from routing_admin.core.configuration.diff import Change, ChangeKind, diff, sentence
from routing_admin.core.configuration.specs import EMPTY, Configuration
from routing_admin.core.files.entries import side_by_side
from routing_admin.core.files.importing import import_values
from tests.configuration.config_strategies import literal_keys, routing_files, services_files

EXAMPLES = Path(__file__).parent / "examples"


def example() -> Configuration:
    values = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(EXAMPLES.glob("*.json"))]
    return import_values(EMPTY, values).configuration


def changed(**fields: Any) -> Configuration:
    snapshot = to_json(example())
    snapshot["routes"][0] |= fields
    return from_json(snapshot)


@given(routing_files(), routing_files())
def test_diff_is_empty_if_and_only_if_configurations_are_equal(first: Any, second: Any) -> None:
    old, new = (import_values(EMPTY, [value]).configuration for value in (first, second))
    changes = diff(old, new)
    assert (changes == ()) == (old == new)
    assert diff(old, old) == ()
    assert all(sentence(change).endswith(".") for change in changes)


@given(routing_files(), services_files())
def test_reversed_diff_swaps_additions_and_removals(routing: Any, services: Any) -> None:
    new = import_values(EMPTY, [routing, services]).configuration
    forward, backward = diff(EMPTY, new), diff(new, EMPTY)
    added = [
        (item.kind, item.name) for item in forward if item.action is ChangeKind.ADDED and not item.field and item.name
    ]
    removed = [(item.kind, item.name) for item in backward if item.action is ChangeKind.REMOVED and not item.field]
    assert [item for item in removed if item[1]] == added
    assert len(added) >= len(new.providers) + len(new.services) - 1


@given(routing_files(keys=literal_keys))
def test_diff_contains_no_key(routing: Any) -> None:
    new = import_values(EMPTY, [routing]).configuration
    snapshot = to_json(new)
    for provider in snapshot["providers"]:
        provider["key"]["token"] = "gAAAA-ciphertext"
    sealed = from_json(snapshot)
    changes = diff(EMPTY, sealed)
    texts = repr(changes) + "".join(map(sentence, changes)) + repr(side_by_side(EMPTY, sealed))
    assert not any(entry["apiKey"] in texts for entry in routing["providers"])
    assert "ciphertext" not in texts
    assert diff(new, sealed) == ()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"temperature": 0}, "temperature of task route “planning” changes from 0.8 to 0."),
        ({"max_tokens": None}, "max_tokens of task route “planning” is removed; it was 4096."),
        ({"retries": 1}, "retries of task route “planning” is set to 1."),
        ({"enabled": False}, "enabled of task route “planning” changes from yes to no."),
        ({"on_error": {"a.b": "next"}}, 'on_error["a.b"] of task route “planning” is set to “next”.'),
    ],
)
def test_change_sentence_names_field_object_and_values(fields: dict[str, Any], expected: str) -> None:
    assert [sentence(change) for change in diff(example(), changed(**fields))] == [expected]


def test_changed_fallback_chain_is_shown_completely() -> None:
    """All candidates are shown, because their order matters."""
    candidates = to_json(example())["routes"][0]["candidates"]
    (change,) = diff(example(), changed(candidates=candidates[::-1]))
    assert sentence(change) == (
        "candidates of task route “planning” changes from openai/gpt-4 → anthropic to anthropic → openai/gpt-4."
    )


def test_added_removed_and_moved_entries_are_one_change_each() -> None:
    snapshot = to_json(example())
    snapshot["routes"] = [snapshot["routes"][1], snapshot["routes"][0], snapshot["routes"][2] | {"task_type": "other"}]
    changes = diff(example(), from_json(snapshot))
    assert [(item.action, item.kind, item.name) for item in changes] == [
        (ChangeKind.REMOVED, "route", "default"),
        (ChangeKind.ADDED, "route", "other"),
        (ChangeKind.MOVED, "route", ""),
    ]
    assert sentence(changes[0]) == "Task route “default” is removed."
    assert sentence(changes[2]) == "The order of the task routes is now: chapter_generation, planning."


def test_configurations_are_compared_side_by_side_with_line_numbers() -> None:
    rows = side_by_side(example(), changed(temperature=0.9), context=1)
    assert [(row.tag, row.left.strip(), row.right.strip()) for row in rows] == [
        ("equal", '"model": "gpt-4",', '"model": "gpt-4",'),
        ("replace", '"temperature": 0.8,', '"temperature": 0.9,'),
        ("equal", '"maxTokens": 4096,', '"maxTokens": 4096,'),
    ]
    assert rows[1].left_number == rows[1].right_number
    assert side_by_side(example(), example()) == ()


def test_change_contains_old_and_new_values_as_data() -> None:
    """Pages describe changes in their own words, based on the old and new values."""
    assert diff(example(), changed(retries=1)) == (
        Change(action=ChangeKind.ADDED, kind="route", name="planning", field="retries", before=None, after=1),
    )
