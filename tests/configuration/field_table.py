"""A table of all configuration fields: each field's possible values, and the exports that cannot express it.

Arbitrary configurations are built from the table's rows. If a spec field has no row, a test fails and names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from capabilities.core.delivery.reader import HTML_FORMS, POLICY_WORDS
from capabilities.core.exchange import ExchangeRate
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.vocabulary import Capabilities, Source
from routing_admin.core.configuration.specs import (
    NO_DIRECTIVE,
    REFUSE,
    SKIP,
    AgentSpec,
    AliasSpec,
    CandidateSpec,
    Configuration,
    KeyKind,
    KeySpec,
    LabelBudgetSpec,
    LanguageSpec,
    ProviderSpec,
    RouteSpec,
    ServiceSpec,
)
from routing_admin.core.files.endpoints import base_url, provider_base_url
from tests.configuration.config_strategies import json_values, unknown_fields, urls, words

SEED = "seed export"
FILE = "file"


@dataclass(frozen=True)
class FieldRow:
    """The values of a field: `values` generates any of them, and `sample` is a value other than the default.

    `unsaid` maps an export that cannot express the field to the reason.
    """

    values: st.SearchStrategy[Any]
    sample: Any = None
    unsaid: Mapping[str, str] = field(default_factory=dict)


objects = st.dictionaries(words, json_values, max_size=2)
plain_texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6)
seconds = st.integers(1, 600) | st.floats(0.1, 600)
times = st.dictionaries(st.sampled_from(["connect", "firstContent", "between", "total"]), seconds, max_size=2)
temperatures = st.none() | st.integers(0, 2) | st.floats(0, 2)
max_tokens = st.none() | st.integers(1, 10**6)
names = words.filter(lambda text: "/" not in text)
variables = st.sampled_from(["LLM_PROVIDER_SHARED_API_KEY", "LLM_PROVIDER_X_API_KEY", "LLM_PROVIDER_X_API_KEY_2"])
limits = st.fixed_dictionaries(
    {"currency": st.sampled_from(["USD", "CNY"])},
    optional={
        "models": st.lists(words, min_size=1, max_size=2),
        "requestsPerMinute": st.integers(1, 1000),
        "moneyPerDay": st.sampled_from(["1", "0.5", "12.345678"]),
        "unpriced": st.sampled_from(["allow", "refuse"]),
        "unpricedPrice": st.just("2.5"),
        "tokensPerMonth": st.integers(1, 10**15),
    },
)
prices = st.just({}) | st.fixed_dictionaries(
    {"currency": st.just("USD"), "input": st.floats(0, 9), "output": st.integers(0, 9)}
)
KEY_NAMES_OMITTED = "it distinguishes keys, and there is one key in a file for other programs"
NO_AGENT_KEYS = "keys of agents are in no file, nor are their terms"
LIST_IN_FILE = "a list of the file's, each item of which has rows of its own"

TABLE: Mapping[type, Mapping[str, FieldRow]] = {
    KeySpec: {
        "kind": FieldRow(st.sampled_from(KeyKind), KeyKind.ENV),
        "variable": FieldRow(variables, "LLM_PROVIDER_SHARED_API_KEY"),
        "token": FieldRow(st.just(""), unsaid={FILE: "only between a file and the database"}),
        "fingerprint": FieldRow(st.sampled_from(["f1", "f2"]), unsaid={FILE: "of a stored key, which is in no file"}),
        "name": FieldRow(
            words.filter(lambda text: text.isprintable() and text == text.strip()), "main", {SEED: KEY_NAMES_OMITTED}
        ),
        "enabled": FieldRow(st.booleans(), False),
    },
    ProviderSpec: {
        "name": FieldRow(names, "another"),
        "endpoint": FieldRow(urls, "https://elsewhere.example/v1"),
        "default_model": FieldRow(words, "m2"),
        "protocol": FieldRow(st.sampled_from(sorted(PROTOCOLS)), "anthropic"),
        "key": FieldRow(st.nothing(), KeySpec(KeyKind.ENV, "LLM_PROVIDER_SHARED_API_KEY")),
        "display_name": FieldRow(plain_texts, "Our provider"),
        "env_name": FieldRow(st.none() | st.sampled_from(["OWN", "THEIRS"]), "OWN"),
        "enabled": FieldRow(st.booleans(), False),
        "quirks": FieldRow(objects, {"x-a": True}),
        "timeouts": FieldRow(times, {"connect": 3}),
        "proxy": FieldRow(st.sampled_from(["default", "none", "http://proxy:3128"]), "none"),
        "in_routing_file": FieldRow(st.booleans(), False, {SEED: "other programs have one list of providers"}),
        "extra": FieldRow(unknown_fields, {"x-region": 1}),
        "vendor_tools": FieldRow(st.none() | st.lists(words, max_size=2).map(tuple), ("web_search",)),
        "more_keys": FieldRow(st.nothing(), (KeySpec(KeyKind.ENV, "LLM_PROVIDER_X_API_KEY_2", name="b"),)),
    },
    ServiceSpec: {
        "id": FieldRow(words, "another"),
        "name": FieldRow(words, "Another"),
        "provider": FieldRow(st.nothing(), "b"),
        "model": FieldRow(words, "m9"),
        "base_url": FieldRow(
            st.nothing(), "https://a.example/v1/", {SEED: "every address is written in one way there"}
        ),
        "capabilities": FieldRow(st.nothing(), Capabilities(("text", "vision"), ())),
        "sources": FieldRow(st.nothing(), {"input:audio": Source.PROBED}, {SEED: "existing ones are in the file"}),
        "capability_tags": FieldRow(st.lists(plain_texts, max_size=2).map(tuple), ("tag",)),
        "description": FieldRow(plain_texts, "text"),
        "limits": FieldRow(objects, {"contextTokens": 9}),
        "price": FieldRow(prices, {"currency": "USD", "input": 1, "output": 2}),
        "content": FieldRow(objects, {"policy": "describe"}),
        "timeouts": FieldRow(times, {"connect": 3}),
        "extra_body": FieldRow(objects, {"seed": 1}),
        "routed": FieldRow(st.booleans(), True),
        "enabled": FieldRow(st.booleans(), False),
        "extra": FieldRow(unknown_fields, {"x-note": [1]}),
    },
    CandidateSpec: {
        "provider": FieldRow(st.nothing(), "b"),
        "model": FieldRow(st.none() | words, "m7"),
        "temperature": FieldRow(temperatures, 0),
        "max_tokens": FieldRow(max_tokens, 7),
        "extra_body": FieldRow(objects, {"seed": 1}),
        "extra": FieldRow(unknown_fields, {"x-note": None}),
    },
    RouteSpec: {
        "task_type": FieldRow(words, "another"),
        "candidates": FieldRow(st.nothing(), (CandidateSpec("b"), CandidateSpec("a"))),
        "temperature": FieldRow(temperatures, 0),
        "max_tokens": FieldRow(max_tokens, 5),
        "on_error": FieldRow(st.sampled_from(["resilient", "strict", {}, {"http_404": "next"}]), "strict"),
        "retries": FieldRow(st.none() | st.integers(0, 10), 0),
        "deadline": FieldRow(st.none() | seconds, 5),
        "first_content": FieldRow(st.none() | seconds, 4),
        "content": FieldRow(objects, {"policy": "describe"}),
        "enabled": FieldRow(st.booleans(), False),
        "extra": FieldRow(unknown_fields, {"x-note": {"b": 1, "a": 2}}),
        "on_drop": FieldRow(st.sampled_from(["", REFUSE]), REFUSE),
        "on_overflow": FieldRow(st.sampled_from(["", SKIP]), SKIP),
        "directive": FieldRow(st.sampled_from(["", NO_DIRECTIVE]), NO_DIRECTIVE),
        "allow_n": FieldRow(st.booleans(), True),
        "keep_alive_seconds": FieldRow(st.sampled_from([None, 0]) | seconds, 0),
    },
    AliasSpec: {"name": FieldRow(words, "gpt"), "target": FieldRow(words, "task:default")},
    AgentSpec: {
        "id": FieldRow(words, "writer"),
        "name": FieldRow(plain_texts, "Writer"),
        "description": FieldRow(plain_texts, "Writes"),
        "service_id": FieldRow(st.nothing(), "s"),
        "task_type": FieldRow(st.nothing(), "default"),
        "limits": FieldRow(limits, {"requestsPerMinute": 5}),
        "keys": FieldRow(st.just({}), {"pk_1": {"team": "x"}}, {FILE: NO_AGENT_KEYS}),
    },
    LabelBudgetSpec: {
        "id": FieldRow(st.builds("{}:{}".format, st.sampled_from(["team", "project", "user"]), words), "team:x"),
        "limits": FieldRow(limits, {"inFlight": 2}),
    },
    LanguageSpec: {
        "code": FieldRow(st.sampled_from(["pt", "fr", "zh", "de"]), "pt"),
        "directive": FieldRow(words, "Responda em português."),
    },
    ExchangeRate: {
        "currency": FieldRow(st.sampled_from(["USD", "EUR", "JPY"]), "EUR"),
        "into": FieldRow(st.just("CNY"), "CNY"),
        "rate": FieldRow(st.sampled_from(["7.1", "0.05", "123"]), "7"),
        "day": FieldRow(st.sampled_from(["2026-01-02", "2025-12-31"]), "2026-01-02"),
        "source": FieldRow(words, "a bank"),
    },
    Configuration: {
        **{name: FieldRow(st.nothing(), unsaid={SEED: LIST_IN_FILE}) for name in ("providers", "services", "routes")},
        **{name: FieldRow(st.nothing(), unsaid={SEED: LIST_IN_FILE}) for name in ("aliases", "agents", "languages")},
        **{name: FieldRow(st.nothing(), unsaid={SEED: LIST_IN_FILE}) for name in ("label_budgets", "exchange_rates")},
        "default_language": FieldRow(st.none() | st.sampled_from(["en", "zh", "zh-CN"]), "zh"),
        "content_policy": FieldRow(st.none() | st.sampled_from(sorted(POLICY_WORDS)), "describe"),
        "content_text": FieldRow(st.none() | st.sampled_from(["200000", "30%"]), "30%"),
        "content_html": FieldRow(st.none() | st.sampled_from(HTML_FORMS), "source"),
        "catalogue": FieldRow(st.none() | words, "of a day"),
        "extra_routing": FieldRow(unknown_fields, {"x-version": 2}),
        "extra_services": FieldRow(unknown_fields, {"x-version": 3}),
    },
}


def spec_values(kind: type, /, **overrides: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Build a spec with arbitrary values. `overrides` are the strategies for fields that depend on others."""
    fields = {name: row.values for name, row in TABLE[kind].items()} | overrides
    return st.builds(kind, **fields)


@st.composite
def keys(draw: st.DrawFn, name: str, *, further: bool) -> KeySpec:
    kind = draw(st.sampled_from([KeyKind.ENV, KeyKind.STORED] if further else list(KeyKind)))
    key: KeySpec = draw(spec_values(KeySpec, kind=st.just(kind), name=st.just(name)))
    return replace(
        key,
        variable=key.variable if kind is KeyKind.ENV else "",
        fingerprint=key.fingerprint if kind is KeyKind.STORED else "",
    )


@st.composite
def providers(draw: st.DrawFn) -> ProviderSpec:
    key_names = draw(st.lists(TABLE[KeySpec]["name"].values, max_size=2, unique=True))
    first = draw(st.sampled_from(["", "first key of all"]))
    further = tuple(draw(keys(name, further=True)) for name in key_names if name not in ("1", first))
    overrides = {"key": keys(first, further=False), "more_keys": st.just(further)}
    provider: ProviderSpec = draw(spec_values(ProviderSpec, **overrides))
    return provider


@st.composite
def services(draw: st.DrawFn, known: tuple[ProviderSpec, ...]) -> ServiceSpec:
    """Build a model service for one of the known providers, with arbitrary capabilities and capability sources."""
    provider = draw(st.sampled_from(known))
    cells = st.lists(st.sampled_from(["text", "vision", "audio", "自定义"]), max_size=3, unique=True)
    sides = {"input": draw(cells), "output": draw(cells)}
    capabilities = draw(st.none() | st.just(Capabilities(*map(tuple, sides.values()))))
    sources: dict[str, Source] = {}
    for side in sides:
        for name in draw(cells):
            is_there = capabilities is not None and name in sides[side]
            sources[f"{side}:{name}"] = draw(
                st.sampled_from([source for source in Source if not is_there or source is not Source.DECLARED])
            )
    base = base_url(provider.endpoint)
    urls_kept = {f"{base}/", f"{base}/messages"} - {provider_base_url(provider)}
    overrides = {
        "provider": st.just(provider.name),
        "base_url": st.sampled_from(["", *sorted(urls_kept)]),
        "capabilities": st.just(capabilities),
        "sources": st.just(sources),
    }
    service: ServiceSpec = draw(spec_values(ServiceSpec, **overrides))
    return service


def unique(items: st.SearchStrategy[Any], name: str, *, minimum: int = 0, maximum: int = 2) -> st.SearchStrategy[Any]:
    """Build a tuple of items with different values in the attribute `name`."""
    return st.lists(items, min_size=minimum, max_size=maximum, unique_by=lambda item: getattr(item, name)).map(tuple)


@st.composite
def configurations(draw: st.DrawFn) -> Configuration:
    known = draw(unique(providers(), "name", minimum=1, maximum=3))
    served = draw(unique(services(known), "id", maximum=3)) if known else ()
    provider_names = st.sampled_from([provider.name for provider in known])
    chains = st.lists(spec_values(CandidateSpec, provider=provider_names), min_size=1, max_size=3).map(tuple)
    routes = draw(unique(spec_values(RouteSpec, candidates=chains), "task_type"))
    if routes:
        routes = (*routes[:-1], replace(routes[-1], task_type="default"))
    one_of = [(None, None), *((route.id, None) for route in served), *((None, route.task_type) for route in routes)]
    works_with = st.sampled_from(one_of)
    agents = draw(unique(works_with.flatmap(_agents), "id"))
    languages = draw(unique(spec_values(LanguageSpec), "code"))
    codes = [language.code for language in languages]
    overrides = {
        "providers": st.just(known),
        "services": st.just(served),
        "routes": st.just(routes),
        "aliases": unique(spec_values(AliasSpec), "name"),
        "agents": st.just(agents),
        "languages": st.just(languages),
        "label_budgets": unique(spec_values(LabelBudgetSpec), "id"),
        "exchange_rates": unique(spec_values(ExchangeRate), "currency"),
        "default_language": TABLE[Configuration]["default_language"].values | st.sampled_from([None, *codes]),
    }
    configuration: Configuration = draw(spec_values(Configuration, **overrides))
    return configuration


def _agents(target: tuple[str | None, str | None]) -> st.SearchStrategy[AgentSpec]:
    return spec_values(AgentSpec, service_id=st.just(target[0]), task_type=st.just(target[1]))
