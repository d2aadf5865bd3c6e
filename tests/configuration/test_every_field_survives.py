"""Export and import, revisions, database rows and undo preserve every field of the configuration."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given

from capabilities.core.exchange import ExchangeRate
from routing_admin.configuration import rows
from routing_admin.core.configuration.as_json import from_json, same_value, to_json
from routing_admin.core.configuration.diff import diff
from routing_admin.core.configuration.specs import (
    EMPTY,
    AgentSpec,
    AliasSpec,
    CandidateSpec,
    Configuration,
    KeySpec,
    LabelBudgetSpec,
    LanguageSpec,
    ProviderSpec,
    RouteSpec,
    ServiceSpec,
)
from routing_admin.core.files.entries import EntryKind, merge_entry, write_entry
from routing_admin.core.files.exporting import Mode, export
from routing_admin.core.files.importing import FileFormat, import_files, sha256
from routing_admin.core.files.keys import NOWHERE
from routing_admin.core.files.provider_matching import without_stored_keys
from tests.configuration.field_table import FILE, SEED, TABLE, configurations

SPECS = (
    *(ProviderSpec, KeySpec, ServiceSpec, RouteSpec, CandidateSpec, AliasSpec, AgentSpec, LanguageSpec),
    *(LabelBudgetSpec, ExchangeRate, Configuration),
)
FIELDS = [(kind, name) for kind in SPECS for name in TABLE[kind]]


def export_texts(configuration: Configuration, mode: Mode = Mode.FULL) -> list[str]:
    return [export(configuration, file_format, mode).text for file_format in FileFormat]


def without_unexported(configuration: Configuration) -> Configuration:
    """Return the configuration without what exports omit: stored keys, and changed settings of agent keys."""
    agents = tuple(replace(agent, keys={}) for agent in configuration.agents)
    return replace(without_stored_keys(configuration), agents=agents)


def test_every_configuration_field_has_a_row_in_the_test_table() -> None:
    missing = [
        f"{kind.__name__}.{field.name}" for kind in SPECS for field in fields(kind) if field.name not in TABLE[kind]
    ]
    assert missing == []


@given(configurations())
def test_full_export_recreates_the_configuration_except_for_keys(configuration: Configuration) -> None:
    files = export_texts(configuration)
    outcome = import_files(EMPTY, files)
    assert outcome.accepted, outcome.problems
    assert diff(without_unexported(configuration), outcome.configuration) == ()
    assert export_texts(outcome.configuration) == files
    assert diff(outcome.configuration, import_files(EMPTY, files[::-1]).configuration) == ()


@given(configurations())
def test_import_of_the_current_configuration_changes_nothing(configuration: Configuration) -> None:
    for prune in (False, True):
        outcome = import_files(configuration, export_texts(configuration), prune=prune)
        assert outcome.accepted, outcome.problems
        assert diff(configuration, outcome.configuration) == ()
        assert same_value(configuration, outcome.configuration)
        assert outcome.keys == {}


@given(configurations())
def test_entry_written_back_unchanged_changes_nothing(configuration: Configuration) -> None:
    entries = [
        *((EntryKind.PROVIDER, provider.name) for provider in configuration.providers),
        *((EntryKind.SERVICE, service.id) for service in configuration.services),
        *((EntryKind.ROUTE, route.task_type) for route in configuration.routes),
    ]
    for kind, name in entries:
        body = json.loads(json.dumps(write_entry(configuration, kind, name)))
        outcome = merge_entry(configuration, kind, name, body, NOWHERE, lambda key, _endpoint: sha256(key))
        assert outcome.accepted, outcome.problems
        assert diff(configuration, outcome.configuration) == ()


@given(configurations())
def test_revision_preserves_every_field(configuration: Configuration) -> None:
    assert same_value(from_json(json.loads(json.dumps(to_json(configuration)))), configuration)


@given(configurations())
@pytest.mark.django_db
def test_database_rows_preserve_every_field(configuration: Configuration) -> None:
    stored = without_stored_keys(configuration)
    rows.write(stored)
    assert diff(stored, rows.read()) == ()


A, B = (
    ProviderSpec(
        name,
        f"https://{name}.example/v1",
        "m",
        key=KeySpec(TABLE[KeySpec]["kind"].sample, f"LLM_PROVIDER_{name.upper()}_API_KEY"),
    )
    for name in "ab"
)
BASE = Configuration(
    providers=(A, B),
    services=(ServiceSpec("s", "S", "a", "m"),),
    routes=(RouteSpec("task", (CandidateSpec("a"), CandidateSpec("b"))), RouteSpec("default", (CandidateSpec("b"),))),
)


def with_sample(kind: type, name: str) -> Iterator[Configuration]:
    sample = TABLE[kind][name].sample
    if kind is Configuration:
        yield replace(BASE, **{name: sample})
    elif kind is ProviderSpec:
        provider = replace(A, **{name: sample})
        yield replace(
            BASE,
            providers=(provider, B),
            services=tuple(replace(service, provider=provider.name) for service in BASE.services),
            routes=(
                replace(BASE.routes[0], candidates=(CandidateSpec(provider.name), CandidateSpec("b"))),
                BASE.routes[1],
            ),
        )
    elif kind is KeySpec:
        yield replace(BASE, providers=(replace(A, key=replace(A.key, **{name: sample})), B))
    elif kind is ServiceSpec:
        yield replace(BASE, services=(replace(BASE.services[0], **{name: sample}),))
    elif kind is RouteSpec:
        yield replace(BASE, routes=(replace(BASE.routes[0], **{name: sample}), BASE.routes[1]))
    elif kind is CandidateSpec:
        for index in range(2):
            chain = list(BASE.routes[0].candidates)
            chain[index] = replace(chain[index], **{name: sample})
            yield replace(BASE, routes=(replace(BASE.routes[0], candidates=tuple(chain)), BASE.routes[1]))
    else:
        list_field = {
            AliasSpec: "aliases",
            AgentSpec: "agents",
            LanguageSpec: "languages",
            LabelBudgetSpec: "label_budgets",
            ExchangeRate: "exchange_rates",
        }[kind]
        yield replace(BASE, **{list_field: (_item(kind, name),)})


def _item(kind: type, name: str) -> Any:
    samples = {
        field: row.sample for field, row in TABLE[kind].items() if field not in ("service_id", "task_type", "keys")
    }
    return kind(**samples, **({name: TABLE[kind][name].sample} if name not in samples else {}))


def _sampled(*exports: str) -> list[tuple[type, str]]:
    """Return the fields that have a sample value and that all given exports can express."""
    return [
        (kind, name)
        for kind, name in FIELDS
        if not (set(exports) | {FILE}) & TABLE[kind][name].unsaid.keys() and TABLE[kind][name].sample is not None
    ]


@pytest.mark.parametrize(("kind", "name"), _sampled(SEED), ids=lambda value: getattr(value, "__name__", value))
def test_seed_export_writes_a_field_or_reports_its_omission(kind: type, name: str) -> None:
    before = [export(BASE, file_format, Mode.SEED) for file_format in FileFormat]
    for configuration in with_sample(kind, name):
        assert (
            configuration == BASE
            or [export(configuration, file_format, Mode.SEED) for file_format in FileFormat] != before
        )


EVERY = pytest.mark.parametrize(("kind", "name"), _sampled(), ids=lambda value: getattr(value, "__name__", value))


@EVERY
@pytest.mark.django_db
def test_each_storage_preserves_every_field(kind: type, name: str) -> None:
    """If a form of storage loses a field, that field's test fails.

    To test undo, a configuration without the sample value is written over rows that have it.
    """
    for configuration in with_sample(kind, name):
        rows.write(configuration)
        stored = diff(configuration, rows.read())
        rows.write(from_json(to_json(BASE)))
        lost = {
            "rows": stored,
            "undo": diff(BASE, rows.read()),
            "revision": diff(configuration, from_json(json.loads(json.dumps(to_json(configuration))))),
            "files": diff(configuration, import_files(EMPTY, export_texts(configuration)).configuration),
        }
        assert lost == dict.fromkeys(lost, ())


@EVERY
def test_diff_detects_a_change_of_every_field(kind: type, name: str) -> None:
    """If the difference missed a field, changing the field would create no revision."""
    assert all(diff(BASE, configuration) for configuration in with_sample(kind, name) if configuration != BASE)
