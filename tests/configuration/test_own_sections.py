"""Export and import of the configuration sections that only this program has: aliases, agents, languages, budgets."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from capabilities.core.services.agent_limits import MONEY, Meter
from capabilities.core.vocabulary import Capabilities, Source
from routing_admin.console.base.api import LIMIT_FIELDS
from routing_admin.core.configuration.diff import diff
from routing_admin.core.configuration.specs import (
    EMPTY,
    AgentSpec,
    AliasSpec,
    CandidateSpec,
    Configuration,
    LabelBudgetSpec,
    LanguageSpec,
    ProviderSpec,
    RouteSpec,
    ServiceSpec,
)
from routing_admin.core.files.entries import EntryKind, merge_entry, write_entry
from routing_admin.core.files.exporting import Mode, export, routing_value, services_value
from routing_admin.core.files.importing import FileFormat, import_values, sha256
from routing_admin.core.files.keys import NOWHERE
from routing_admin.core.files.own_sections import OWN_KEYS

A = {"providerName": "a", "apiKey": "NOT_NEEDED", "endpoint": "https://a.example/v1", "defaultModel": "m"}
ROUTING: dict[str, Any] = {"providers": [A], "routing": {"default": {"provider": "a"}}}
AGENT = AgentSpec(
    "writer", "Writer", "", None, "default", {"moneyPerDay": "2.5", "currency": "USD"}, {"pk": {"team": "x"}}
)
CONFIGURATION = Configuration(
    providers=(ProviderSpec("a", "https://a.example/v1", "m"),),
    routes=(RouteSpec("default", (CandidateSpec("a"),)),),
    aliases=(AliasSpec("gpt-4", "task:default"), AliasSpec("*", "auto")),
    agents=(AGENT,),
    languages=(LanguageSpec("pt", "Responda em português."),),
    label_budgets=(LabelBudgetSpec("team:research", {"tokensPerDay": 1000}),),
    default_language="pt",
    catalogue="vendors · 1234abcd",
)


def test_import_keeps_sections_missing_from_the_file() -> None:
    for prune in (False, True):
        after = import_values(CONFIGURATION, [ROUTING], prune=prune)
        assert after.accepted
        assert (
            diff(replace(CONFIGURATION, default_language=after.configuration.default_language), after.configuration)
            == ()
        )


def test_section_in_the_file_is_merged_or_with_pruning_replaced() -> None:
    value = ROUTING | {"aliases": {"new": "auto"}}
    merged, pruned = (import_values(CONFIGURATION, [value], prune=prune).configuration for prune in (False, True))
    assert [alias.name for alias in merged.aliases] == ["gpt-4", "*", "new"]
    assert pruned.aliases == (AliasSpec("new", "auto"),)
    assert import_values(CONFIGURATION, [ROUTING | {"aliases": {}}], prune=True).configuration.aliases == ()
    assert pruned.agents == merged.agents == CONFIGURATION.agents


def test_agent_keys_are_not_exported_and_are_kept_by_imports() -> None:
    text = json.dumps(routing_value(CONFIGURATION))
    assert "pk" not in text
    assert import_values(CONFIGURATION, [routing_value(CONFIGURATION)]).configuration.agents[0].keys == AGENT.keys


def test_custom_default_language_is_imported_with_its_directive() -> None:
    outcome = import_values(EMPTY, [routing_value(CONFIGURATION)])
    assert outcome.accepted
    assert outcome.configuration.default_language == "pt"
    assert not import_values(EMPTY, [ROUTING | {"defaultLanguage": "pt"}]).accepted


def test_exports_for_other_programs_omit_sections_of_this_program() -> None:
    seed = export(CONFIGURATION, FileFormat.ROUTING, Mode.SEED)
    assert "Not in this file: agents, languages, label budgets, refreshed catalogue." in seed.left_out
    gateway = export(CONFIGURATION, FileFormat.ROUTING, Mode.GATEWAY, public_url="http://here")
    for text in (seed.text, gateway.text):
        assert not json.loads(text).keys() & set(OWN_KEYS)


@pytest.mark.parametrize(
    ("part", "field"),
    [
        ({"aliases": ["x"]}, "aliases"),
        ({"aliases": {"x": 1}}, "aliases.x"),
        ({"agents": {}}, "agents"),
        ({"agents": [{"name": "x"}]}, "agents[0].id"),
        ({"agents": [{"id": "x"}, {"id": "x"}]}, "agents[1].id"),
        ({"agents": [{"id": "x", "serviceId": "s", "taskType": "t"}]}, "agents[0]"),
        ({"agents": [{"id": "x", "limits": {"tokens": 1}}]}, "agents[0].limits.tokens"),
        ({"agents": [{"id": "x", "limits": {"inFlight": True}}]}, "agents[0].limits.inFlight"),
        (
            {"agents": [{"id": "x", "limits": {"moneyPerDay": 5, "currency": "USD"}}]},
            "agents[0].limits.moneyPerDay",
        ),
        ({"agents": [{"id": "x", "limits": {"moneyPerDay": "5"}}]}, "agents[0].limits.currency"),
        ({"agents": [{"id": "x" * 121}]}, "agents[0].id"),
        ({"agents": [{"id": "x\ny"}]}, "agents[0].id"),
        ({"aliases": {"x" * 201: "auto"}}, "aliases"),
        ({"languages": {"pt": "x" * 501}}, "languages.pt"),
        ({"labelBudgets": {"team:" + "x" * 130: {}}}, "labelBudgets"),
        ({"catalogue": "x" * 301}, "catalogue"),
        (
            {"agents": [{"id": "x", "limits": {"moneyPerDay": "NaN", "currency": "USD"}}]},
            "agents[0].limits.moneyPerDay",
        ),
        ({"agents": [{"id": "x", "limits": {"unpriced": "count"}}]}, "agents[0].limits.unpricedPrice"),
        ({"languages": {"pt": ""}}, "languages.pt"),
        ({"labelBudgets": {"x": {}}}, "labelBudgets.x"),
        ({"exchangeRates": [{"currency": "USD"}]}, "exchangeRates[0]"),
        ({"catalogue": 1}, "catalogue"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_invalid_section_is_reported_as_one_error_with_its_path(part: dict[str, Any], field: str) -> None:
    outcome = import_values(EMPTY, [ROUTING | part])
    assert [problem.field for problem in outcome.problems if problem.severity == "error"] == [field]
    assert outcome.configuration == EMPTY


def test_agent_in_a_file_may_have_every_limit() -> None:
    """If agents get a new kind of limit, add it to this test."""
    amounts = {meter.value: "2.5" if meter in MONEY else 7 for meter in Meter}
    limits = amounts | {"models": ["s"], "currency": "USD", "unpriced": "count", "unpricedPrice": "0.5"}
    assert limits.keys() == LIMIT_FIELDS
    assert import_values(EMPTY, [ROUTING | {"agents": [{"id": "x", "limits": limits}]}]).problems == ()


def test_unknown_field_and_alias_without_target_are_only_warnings() -> None:
    outcome = import_values(EMPTY, [ROUTING | {"agents": [{"id": "x", "key": "k"}], "aliases": {"old": "gone"}}])
    assert [(problem.field, problem.severity) for problem in outcome.problems] == [
        ("agents[0].key", "warning"),
        ("aliases.old", "warning"),
    ]


PROBED = ServiceSpec(
    "s",
    "S",
    "a",
    "m",
    capabilities=Capabilities(("text", "vision"), ("text",)),
    sources={"input:vision": Source.PROBED, "input:audio": Source.DECLARED, "output:audio": Source.CONTESTED},
)


def test_import_keeps_capabilities_found_by_probes_and_catalogue() -> None:
    """Capabilities from probes or the catalogue are removed if the model changes, and declared ones override them."""
    configuration = replace(CONFIGURATION, services=(PROBED,))
    entry = services_value(configuration)["services"][0]
    assert entry["capabilitySources"] == {
        "input": {"vision": "probed", "audio": "declared no"},
        "output": {"audio": "contested no"},
    }
    without_sources = {key: item for key, item in entry.items() if key != "capabilitySources"}
    assert diff(configuration, import_values(configuration, [{"services": [without_sources]}]).configuration) == ()
    body = {
        key: item
        for key, item in write_entry(configuration, EntryKind.SERVICE, "s").items()
        if key != "capabilitySources"
    }  # type: ignore[union-attr]
    merged = merge_entry(configuration, EntryKind.SERVICE, "s", body, NOWHERE, lambda key, _endpoint: sha256(key))
    assert diff(configuration, merged.configuration) == ()
    changed = import_values(
        configuration, [{"services": [without_sources | {"model": "another"}]}]
    ).configuration.services[0]
    assert (changed.capabilities, changed.sources) == (Capabilities(("text",), ("text",)), {})
    declared = without_sources | {"capabilities": {"input": ["text", "audio"], "output": ["text"]}}
    service = import_values(configuration, [{"services": [declared]}]).configuration.services[0]
    assert service.capabilities == Capabilities(("text", "audio", "vision"), ("text",))
    assert "input:audio" not in service.sources
    cleared = import_values(
        configuration, [{"services": [without_sources | {"capabilitySources": {}}]}]
    ).configuration.services[0]
    assert cleared.sources == {}


def test_seed_export_includes_capabilities_found_by_probes() -> None:
    """Other programs that read the seed files rely on capabilities found by probes."""
    configuration = replace(CONFIGURATION, services=(PROBED,))
    entry = json.loads(export(configuration, FileFormat.SERVICES, Mode.SEED).text)["services"][0]
    assert entry["capabilities"] == {"input": ["text", "vision"], "output": ["text"]}
    assert "capabilitySources" not in entry
