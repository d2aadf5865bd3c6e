"""The configuration: one immutable value; database rows and JSON files are two forms of it.

Everything is frozen, lists are tuples, and order is meaning: it is the order of the files and of the pages. What a
file said and no field here can say (unknown fields, a default written out) stands in `extra`, so that an export gives
back what was imported. No plaintext key is ever in it: keys read from a file travel beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

from capabilities.core.exchange import ExchangeRate
from capabilities.core.providers.environment import FIRST_KEY
from capabilities.core.services.agent_limits import AgentLimits, limits_of
from capabilities.core.vocabulary import TEXT_ONLY, Capabilities, Source

JsonObject = Mapping[str, Any]

DESCRIBE_ROUTE = "describe"
"""The task type whose route describes files for models that cannot read them."""

DEFAULT_ROUTE = "default"
"""The task type whose route takes what has none of its own."""


class KeyKind(StrEnum):
    """How a provider comes by its key."""

    NONE = "none"
    """It needs none (`NOT_NEEDED`, or an empty key)."""
    ENV = "env"
    """From the environment variable named; also where nothing but a placeholder was given."""
    STORED = "stored"
    """Encrypted in the database."""


@dataclass(frozen=True, slots=True)
class KeySpec:
    """A provider's key without the key: the variable's name, or the ciphertext and its fingerprint.

    `token` is empty on a key that has just been read from a file and that the shell has still to encrypt. `name` tells
    it from the provider's other keys, empty for the first one of a provider that nobody has named.
    """

    kind: KeyKind = KeyKind.NONE
    variable: str = ""
    token: str = field(default="", repr=False)
    fingerprint: str = ""
    name: str = ""
    enabled: bool = True


NO_KEY = KeySpec()


@dataclass(frozen=True, slots=True)
class ProviderSpec:
    """Where requests go and with which key; `more_keys` are further ones, each with a name of its own (decision 20).

    `endpoint` is a base URL or a full call URL, as written. `proxy` is `default`, `none` or a URL; `timeouts` in
    seconds. `env_name` replaces NAME in `LLM_PROVIDER_{NAME}_API_KEY`. `vendor_tools` are the words of the vendor's own
    tools that callers may use there, None for the default of `capabilities.core.protocols.vendor_tools`.
    `in_routing_file` is false for a provider that only a service brought in: `llm-routing.json` lists it once a route
    uses it.
    """

    name: str
    endpoint: str
    default_model: str
    protocol: str = "openai"
    key: KeySpec = NO_KEY
    display_name: str = ""
    env_name: str | None = None
    enabled: bool = True
    quirks: JsonObject = field(default_factory=dict)
    timeouts: JsonObject = field(default_factory=dict)
    proxy: str = "default"
    in_routing_file: bool = True
    extra: JsonObject = field(default_factory=dict)
    more_keys: tuple[KeySpec, ...] = ()
    vendor_tools: tuple[str, ...] | None = None

    @property
    def keys(self) -> tuple[KeySpec, ...]:
        """Every key under the name that pages and logs call it by, the first one first."""
        return (replace(self.key, name=self.key.name or FIRST_KEY), *self.more_keys)


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """A model at a provider, and what it reads and writes.

    `base_url` is another way of writing the provider's address, as a file had it; empty for the provider's own way.
    `capabilities` is None where nothing valid is declared: text in and out (MCR-1.5).
    `sources` says where a capability comes from, keyed `input:vision`; an entry not listed is declared.
    `timeouts` in seconds; `extra_body` is merged into each request's payload; `price` as `capabilities.core.prices`
    reads it, empty for the listed one.
    `routed` marks the one that speaks for (provider, model) where two services share it.
    """

    id: str
    name: str
    provider: str
    model: str
    base_url: str = ""
    capabilities: Capabilities | None = None
    sources: Mapping[str, Source] = field(default_factory=dict)
    capability_tags: tuple[Any, ...] = ()
    description: str = ""
    limits: JsonObject = field(default_factory=dict)
    price: JsonObject = field(default_factory=dict)
    content: JsonObject = field(default_factory=dict)
    timeouts: JsonObject = field(default_factory=dict)
    extra_body: JsonObject = field(default_factory=dict)
    routed: bool = False
    enabled: bool = True
    extra: JsonObject = field(default_factory=dict)

    @property
    def effective_capabilities(self) -> Capabilities:
        """What the service counts as able to do."""
        return TEXT_ONLY if self.capabilities is None else self.capabilities

    def source(self, side: str, capability: str) -> Source:
        """Where a capability's value comes from; `side` is `input` or `output`."""
        return self.sources.get(f"{side}:{capability}", Source.DECLARED)


@dataclass(frozen=True, slots=True)
class CandidateSpec:
    """One place in a chain; `model` None means the provider's default, parameters None mean the route's."""

    provider: str
    model: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    extra_body: JsonObject = field(default_factory=dict)
    extra: JsonObject = field(default_factory=dict)


REFUSE = "refuse"
"""A route's word that nothing of a request may be left out."""

SKIP = "skip"
"""A route's word that a model is passed by that a request is too long for."""

NO_DIRECTIVE = "none"
"""A route's word that its models answer in whichever language the caller wrote."""


@dataclass(frozen=True, slots=True)
class RouteSpec:
    """Where a task type goes: `candidates[0]` is the primary, the others are its fallbacks, in order.

    `on_error` is a preset's name or a table of error → action, empty for the default; `deadline` (whole answer) and
    `first_content` in seconds, None for the default. `on_drop` is `refuse` where a candidate that takes less than the
    whole request is passed by, `on_overflow` is `skip` where one is that it is too long for, `directive` is `none`
    where nothing is said to the model about the language of its answer; else they are empty. `keep_alive_seconds` is
    after how long a stream without content is begun with comments, 0 for never, None as the installation says. With
    `allow_n` a request for `n` answers is as many calls.
    """

    task_type: str
    candidates: tuple[CandidateSpec, ...]
    temperature: float | None = None
    max_tokens: int | None = None
    on_error: str | JsonObject = field(default_factory=dict)
    retries: int | None = None
    deadline: float | None = None
    first_content: float | None = None
    content: JsonObject = field(default_factory=dict)
    enabled: bool = True
    extra: JsonObject = field(default_factory=dict)
    on_drop: str = ""
    on_overflow: str = ""
    directive: str = ""
    keep_alive_seconds: float | None = None
    allow_n: bool = False

    @property
    def primary(self) -> CandidateSpec:
        """The candidate that is asked first."""
        return self.candidates[0]


@dataclass(frozen=True, slots=True)
class AliasSpec:
    """A model name that callers use and where it leads (`task:…`, a service id …); `*` catches all."""

    name: str
    target: str


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """An agent and the one service or the one route (by task type) it works with; `limits` as its row keeps them.

    `keys` has the terms, as their rows keep them, of its keys by their public part: of those whose terms are others now
    than those they were issued with.
    """

    id: str
    name: str
    description: str = ""
    service_id: str | None = None
    task_type: str | None = None
    limits: JsonObject = field(default_factory=dict)
    keys: Mapping[str, JsonObject] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LabelBudgetSpec:
    """What calls with one label may use together; `limits` as the row keeps them.

    `id` is `team:<team>`, `project:<project>`, or `user:<agent>` for each end user of an agent.
    """

    id: str
    limits: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LanguageSpec:
    """A language beside the built-in ones, or another directive for one of them."""

    code: str
    directive: str


@dataclass(frozen=True)
class Configuration:
    """All of it. `default_language` as written, None where absent (then `en`).

    `content_policy` is what holds where neither a route nor a service says, None where absent (then `DEFAULT_POLICY`).
    `catalogue` names the edition of the catalogue in use, None for the one that came with the program.
    What is looked up by a name is found through indexes that are made when first asked for; the first of a name wins.
    """

    providers: tuple[ProviderSpec, ...] = ()
    services: tuple[ServiceSpec, ...] = ()
    routes: tuple[RouteSpec, ...] = ()
    aliases: tuple[AliasSpec, ...] = ()
    agents: tuple[AgentSpec, ...] = ()
    languages: tuple[LanguageSpec, ...] = ()
    label_budgets: tuple[LabelBudgetSpec, ...] = ()
    default_language: str | None = None
    content_policy: str | None = None
    catalogue: str | None = None
    exchange_rates: tuple[ExchangeRate, ...] = ()
    extra_routing: JsonObject = field(default_factory=dict)
    extra_services: JsonObject = field(default_factory=dict)

    def provider(self, name: str) -> ProviderSpec | None:
        """The provider of that name."""
        return self._providers_by_name.get(name)

    def service(self, service_id: str) -> ServiceSpec | None:
        """The service with that id."""
        return self._services_by_id.get(service_id)

    def route(self, task_type: str) -> RouteSpec | None:
        """The route of exactly that task type; falling to `default` is the router's business."""
        return self._routes_by_task.get(task_type)

    def services_at(self, provider: str, model: str) -> tuple[ServiceSpec, ...]:
        """Every service of (provider, model), in their order."""
        return tuple(self._services_by_place.get((provider, model), ()))

    def service_at(self, provider: str, model: str) -> ServiceSpec | None:
        """The service that speaks for (provider, model): the one marked as routed, else the first (decision 9)."""
        found = self.services_at(provider, model)
        return next((service for service in found if service.routed), found[0] if found else None)

    @cached_property
    def limits_by_label(self) -> Mapping[str, AgentLimits | None]:
        """The limits of labels, by the ids of their budgets."""
        return {each.id: limits_of(each.limits) for each in self.label_budgets}

    @cached_property
    def _providers_by_name(self) -> Mapping[str, ProviderSpec]:
        return {each.name: each for each in reversed(self.providers)}

    @cached_property
    def _services_by_id(self) -> Mapping[str, ServiceSpec]:
        return {each.id: each for each in reversed(self.services)}

    @cached_property
    def _routes_by_task(self) -> Mapping[str, RouteSpec]:
        return {each.task_type: each for each in reversed(self.routes)}

    @cached_property
    def _services_by_place(self) -> Mapping[tuple[str, str], list[ServiceSpec]]:
        found: dict[tuple[str, str], list[ServiceSpec]] = {}
        for each in self.services:
            found.setdefault((each.provider, each.model), []).append(each)
        return found


EMPTY = Configuration()
