"""The configuration as one immutable value; database rows and JSON files are two representations of it.

Everything is frozen, and lists are tuples in the order of the files and pages. `extra` preserves the parts of a file
that no field can express (unknown fields, an explicit default), so that an export returns what was imported. The value
never contains a plaintext key: keys read from files are passed separately.

Add a new field in four places: in this module, as a database column, in the file format and in a form. A property test
fails if one of them is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

from capabilities.core.exchange import ExchangeRate
from capabilities.core.providers.environment import FIRST_KEY
from capabilities.core.services.agent_limits import AgentLimits, parse_limits
from capabilities.core.vocabulary import TEXT_ONLY, Capabilities, Source

JsonObject = Mapping[str, Any]

DESCRIBE_ROUTE = "describe"
"""Task type of the route whose models describe files for models that cannot read these files."""

DEFAULT_ROUTE = "default"
"""Task type of the route for all task types that have no route of their own."""


class KeyKind(StrEnum):
    NONE = "none"
    """The provider needs no key (`NOT_NEEDED`, or an empty key)."""
    ENV = "env"
    """The key is read from an environment variable, even if the file contains only a placeholder for the key."""
    STORED = "stored"
    """The key is stored in the database, encrypted."""


@dataclass(frozen=True, slots=True)
class KeySpec:
    """Reference to a provider's key: an environment variable's name, or the ciphertext and its fingerprint.

    `token` is the ciphertext. It is empty while a key that was read from a file has not been encrypted yet. `name`
    distinguishes a provider's keys; it may be empty for the first key.
    """

    kind: KeyKind = KeyKind.NONE
    variable: str = ""
    token: str = field(default="", repr=False)
    # Revisions identify a stored key by its fingerprint, so that undo can find the key of a deleted provider.
    fingerprint: str = ""
    name: str = ""
    enabled: bool = True


NO_KEY = KeySpec()


@dataclass(frozen=True, slots=True)
class ProviderSpec:
    """A provider: its endpoint and keys; `more_keys` are additional keys, each with a unique name.

    `endpoint` is a base URL or a full call URL, as written. `proxy` is `default`, `none` or a URL; `timeouts` are in
    seconds. `env_name` replaces NAME in `LLM_PROVIDER_{NAME}_API_KEY`. `vendor_tools` lists the vendor's built-in tools
    that callers may use; None selects the default in `capabilities.core.protocols.vendor_tools`. `in_routing_file` is
    False for a provider that was created for a service: `llm-routing.json` lists it only once a route uses it.
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
        """Every key with its name for pages and logs, in order."""
        return (replace(self.key, name=self.key.name or FIRST_KEY), *self.more_keys)


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """A model at a provider, with the content that it reads and writes.

    `base_url` is set only if a file spells the provider's URL differently for this service. `capabilities` is None if
    nothing valid is declared, which means text input and output (MCR-1.5). `sources` maps keys such as `input:vision`
    to the source of that capability; a missing entry means that it was declared. `timeouts` are in seconds.
    `extra_body` is merged into the payload of each request. `price` has the format of `capabilities.core.prices`; if it
    is empty, the list price applies. If several services have the same provider and model, routes use the one marked
    `routed`.
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
        return TEXT_ONLY if self.capabilities is None else self.capabilities

    def source(self, side: str, capability: str) -> Source:
        """Return where the information about a capability is from; `side` is `input` or `output`."""
        return self.sources.get(f"{side}:{capability}", Source.DECLARED)


@dataclass(frozen=True, slots=True)
class CandidateSpec:
    """A candidate of a fallback chain.

    If `model` is None, the provider's default model is used; a parameter that is None is inherited from the route.
    """

    provider: str
    model: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    extra_body: JsonObject = field(default_factory=dict)
    extra: JsonObject = field(default_factory=dict)


REFUSE = "refuse"
"""Value of `on_drop` if no part of a request may be dropped."""

SKIP = "skip"
"""Value of `on_overflow` if candidates whose context window is too small for a request are to be skipped."""

NO_DIRECTIVE = "none"
"""Value of `directive` if no language directive is to be sent, so that models answer in the language of the request."""


@dataclass(frozen=True, slots=True)
class RouteSpec:
    """A task type's route: `candidates[0]` is the primary, the others are its fallbacks in order.

    `on_error` is the name of a preset or a table of error → action, empty for the default. `deadline` (for the whole
    answer) and `first_content` are in seconds, or None for the default. `on_drop` is `REFUSE` or empty, `on_overflow`
    is `SKIP` or empty, `directive` is `NO_DIRECTIVE` or empty. A stream without content for `keep_alive_seconds` is
    kept open with comments; 0 disables this, None uses the installation's setting. With `allow_n`, a request for `n`
    answers is sent as `n` calls.
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
        return self.candidates[0]


@dataclass(frozen=True, slots=True)
class AliasSpec:
    """An alias for a route (`task:…`), a service or another model name; the alias `*` matches every name."""

    name: str
    target: str


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """An agent, and the service or the route (by task type) that it uses.

    `limits` are in the format of the database row. `keys` maps a key's public part to its settings, named like the
    database columns. It contains only keys whose settings were changed after the key was issued.
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
    """A limit shared by all calls with one label; `limits` are in the format of the database row.

    `id` is `team:<team>`, `project:<project>`, or `user:<agent>` for a limit on each of an agent's end users.
    """

    id: str
    limits: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LanguageSpec:
    """An additional language, or a built-in language with a different directive."""

    code: str
    directive: str


# The class has no slots, because cached properties need a `__dict__`.
@dataclass(frozen=True)
class Configuration:
    """The whole configuration.

    `default_language` is as written in the file; if it is None, `en` is used. `content_policy` applies if neither the
    route nor the service sets a policy; if it is None, `DEFAULT_POLICY` applies. The same holds for `content_text` (how
    much of a file's text is sent to a model) and `content_html` (the format for web pages). `catalogue` is the model
    catalogue's version, None for the shipped one.
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
    content_text: str | None = None
    content_html: str | None = None
    catalogue: str | None = None
    exchange_rates: tuple[ExchangeRate, ...] = ()
    extra_routing: JsonObject = field(default_factory=dict)
    extra_services: JsonObject = field(default_factory=dict)

    def provider(self, name: str) -> ProviderSpec | None:
        return self._providers_by_name.get(name)

    def service(self, service_id: str) -> ServiceSpec | None:
        return self._services_by_id.get(service_id)

    def route(self, task_type: str) -> RouteSpec | None:
        """Return the route with exactly this task type, without falling back to the route `default`."""
        return self._routes_by_task.get(task_type)

    def services_at(self, provider: str, model: str) -> tuple[ServiceSpec, ...]:
        return tuple(self._services_by_model.get((provider, model), ()))

    def service_at(self, provider: str, model: str) -> ServiceSpec | None:
        """Return the service with this provider and model; of several, the one marked `routed`, or else the first."""
        found = self.services_at(provider, model)
        return next((service for service in found if service.routed), found[0] if found else None)

    @cached_property
    def limits_by_label(self) -> Mapping[str, AgentLimits | None]:
        return {budget.id: parse_limits(budget.limits) for budget in self.label_budgets}

    @cached_property
    def _providers_by_name(self) -> Mapping[str, ProviderSpec]:
        # The order is reversed, so that the first of several providers with the same name takes precedence.
        return {provider.name: provider for provider in reversed(self.providers)}

    @cached_property
    def _services_by_id(self) -> Mapping[str, ServiceSpec]:
        return {service.id: service for service in reversed(self.services)}

    @cached_property
    def _routes_by_task(self) -> Mapping[str, RouteSpec]:
        return {route.task_type: route for route in reversed(self.routes)}

    @cached_property
    def _services_by_model(self) -> Mapping[tuple[str, str], list[ServiceSpec]]:
        found: dict[tuple[str, str], list[ServiceSpec]] = {}
        for service in self.services:
            found.setdefault((service.provider, service.model), []).append(service)
        return found


EMPTY = Configuration()
