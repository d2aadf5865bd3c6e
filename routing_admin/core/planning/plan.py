"""Plan a request: its route, chain, parameters and language, and what would happen to each candidate now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import blake2b
from types import MappingProxyType
from typing import Any

from capabilities.core.delivery.reader import DEFAULT_POLICY
from capabilities.core.message import ChatRequest, FilePart, Role, TextPart
from capabilities.core.providers.environment import key_variable
from capabilities.core.providers.origins import OriginPolicy, refuse_url
from capabilities.core.translatable import translatable
from capabilities.core.values import value_class
from routing_admin.core.configuration.checks import has_describer, is_blind
from routing_admin.core.configuration.specs import (
    DEFAULT_ROUTE,
    DESCRIBE_ROUTE,
    NO_DIRECTIVE,
    SKIP,
    CandidateSpec,
    Configuration,
    KeyKind,
    ProviderSpec,
    RouteSpec,
)
from routing_admin.core.fallback.chain import SKIP_SENTENCES, Plan, PlannedCandidate, PoolKey, SkipReason, Timeouts
from routing_admin.core.fallback.cooldown import Cooldowns
from routing_admin.core.fallback.policy import DEFAULT_RETRIES, ErrorPreset, Policy
from routing_admin.core.fallback.table import Action
from routing_admin.core.planning.language import LANGUAGE_DIRECTIVES, get_language_directive, resolve_language
from routing_admin.core.planning.params import Params, pick_effective

ALL_DISABLED = translatable("The model service %(service)s is disabled. Enable it, or use another model.")
"""Template of the reason for skipping a candidate if all services for its model are disabled."""

Unusable = tuple[SkipReason, str]
"""Why a provider cannot be called: the skip reason, and a sentence that explains it."""

Pools = Mapping[str, tuple[PoolKey, ...]]
"""The keys of each provider that has several keys, by provider name."""

CannotRead = Callable[[str, str], str | None]
"""Function that returns why the model at this provider cannot read the request, or None if it can."""


class NoRouteError(Exception):
    """There is no route `default`; `sentence` says what to add."""

    sentence = translatable("No route named default is configured. Add routing.default with a provider.")

    def __init__(self) -> None:
        super().__init__(self.sentence)


@value_class
class RoutingQuery:
    """The routing options of a request. Options that the request does not set are None or empty (MMR-E5).

    `direct` means that the request names a model instead of a route. It then gets a language directive only if it names
    a language.
    """

    task_type: str | None = None
    language: str | None = None
    params: Params = field(default_factory=Params)
    direct: bool = False

    def is_directed(self, route: RouteSpec) -> bool:
        """Return whether to insert a language directive.

        A request that names a language always gets one; otherwise the route decides.
        """
        return bool(self.language) or not (self.direct or route.directive == NO_DIRECTIVE)


def is_taken(route: RouteSpec) -> bool:
    """Return whether requests can use the route: it is enabled, or it is the route `default`."""
    return route.enabled or route.task_type == DEFAULT_ROUTE


def resolve_route(configuration: Configuration, task_type: str | None) -> tuple[RouteSpec, bool]:
    """Return the route for a task type, and whether it is the requested one (MMR-P5, MMR-P6).

    A task type of None requests the route `default`. A disabled route is treated as missing. Raise `NoRouteError` if
    there is no route `default`.
    """
    requested = task_type or DEFAULT_ROUTE
    route = configuration.route(requested)
    if route is not None and is_taken(route):
        return route, True
    default = configuration.route(DEFAULT_ROUTE)
    if default is None:
        raise NoRouteError
    return default, requested == DEFAULT_ROUTE


def default_route_to(configuration: Configuration, *candidates: CandidateSpec) -> RouteSpec:
    """Return the route `default`, or an empty route if there is none, with its candidates replaced by these."""
    route = configuration.route(DEFAULT_ROUTE)
    return replace(route, candidates=candidates) if route else RouteSpec(DEFAULT_ROUTE, candidates)


def make_plan(
    configuration: Configuration,
    query: RoutingQuery,
    *,
    unusable: Mapping[str, Unusable] = MappingProxyType({}),
    cannot_read: CannotRead | None = None,
    preset: ErrorPreset = ErrorPreset.SEED,
) -> Plan:
    """Plan a request without calling any provider; `preset` is the error preset for routes that set none."""
    route, matched = resolve_route(configuration, query.task_type)
    return plan_route(
        configuration, route, query, matched=matched, unusable=unusable, cannot_read=cannot_read, preset=preset
    )


def plan_route(
    configuration: Configuration,
    route: RouteSpec,
    query: RoutingQuery,
    *,
    matched: bool = True,
    unusable: Mapping[str, Unusable] = MappingProxyType({}),
    cannot_read: CannotRead | None = None,
    preset: ErrorPreset = ErrorPreset.SEED,
    pools: Pools = MappingProxyType({}),
) -> Plan:
    """Plan a request along the given route, which may be stored or built for a single service."""
    # Administrators may replace the directive of a built-in language.
    directives = {**LANGUAGE_DIRECTIVES, **{language.code: language.directive for language in configuration.languages}}
    default = configuration.default_language
    candidates = tuple(
        _candidate(configuration, route, at, spec, query, unusable, cannot_read)
        for at, spec in enumerate(route.candidates)
    )
    if pools:
        candidates = tuple(replace(candidate, keys=pools.get(candidate.provider, ())) for candidate in candidates)
    return Plan(
        candidates,
        task_type=route.task_type,
        matched=matched,
        language=resolve_language(query.language, default, directives),
        directive=get_language_directive(query.language, default, directives) if query.is_directed(route) else "",
        policy=route_policy(route, preset),
        timeouts=_request_timeouts(route, candidates),
        has_pools=any(candidate.keys for candidate in candidates),
    )


def _candidate(
    configuration: Configuration,
    route: RouteSpec,
    index: int,
    spec: CandidateSpec,
    query: RoutingQuery,
    unusable: Mapping[str, Unusable],
    cannot_read: CannotRead | None,
) -> PlannedCandidate:
    provider = configuration.provider(spec.provider)
    model = spec.model or (provider.default_model if provider else "")
    skip, detail = _skip(configuration, provider, model, unusable)
    if skip is None and cannot_read is not None:
        detail = cannot_read(spec.provider, model) or ""
        skip = SkipReason.CANNOT_READ if detail else None
    params = pick_effective(
        query.params, Params(spec.temperature, spec.max_tokens), Params(route.temperature, route.max_tokens)
    )
    timeouts = _candidate_timeouts(configuration, route, provider, model) if provider else None
    speaks = provider.protocol if provider else ""
    return PlannedCandidate(
        index, spec.provider, model, params.temperature, params.max_tokens, skip, detail, timeouts, speaks
    )


def _skip(
    configuration: Configuration, provider: ProviderSpec | None, model: str, unusable: Mapping[str, Unusable]
) -> tuple[SkipReason | None, str]:
    if provider is None:
        return SkipReason.MISSING, ""
    if not provider.enabled:
        return SkipReason.DISABLED, ""
    if (service := disabled_service(configuration, provider.name, model)) is not None:
        return SkipReason.DISABLED, translatable(ALL_DISABLED, service=service)
    return unusable.get(provider.name, (None, ""))


def disabled_service(configuration: Configuration, provider: str, model: str) -> str | None:
    """Return the id of the first service if all services for this provider and model are disabled, else None."""
    services = configuration.services_at(provider, model)
    return None if any(service.enabled for service in services) or not services else services[0].id


def find_unusable(configuration: Configuration, keys: Mapping[str, str], origins: OriginPolicy) -> dict[str, Unusable]:
    """Return the providers that cannot be called, each with the reason: a forbidden origin or a missing key.

    `keys` contains the keys in use by provider name, excluding providers that need no key.
    """
    found: dict[str, Unusable] = {}
    for provider in configuration.providers:
        refused = refuse_url(provider.endpoint, origins)
        if refused is not None:
            found[provider.name] = (SkipReason.ORIGIN_REFUSED, refused)
        elif provider.key.kind is not KeyKind.NONE and not keys.get(provider.name):
            found[provider.name] = (SkipReason.NO_KEY, _no_key(provider))
    return found


def _no_key(provider: ProviderSpec) -> str:
    variable = provider.key.variable or key_variable(provider.name, provider.env_name)
    return translatable(
        "Provider %(name)s has no usable API key. Set %(variable)s, or enter a key on the provider's page.",
        name=provider.name,
        variable=variable,
    )


def route_policy(route: RouteSpec, preset: ErrorPreset = ErrorPreset.SEED) -> Policy:
    """Return the route's error policy.

    It combines the number of retries with `onError`, which is the name of a preset, or a table that may contain one.
    """
    retries = DEFAULT_RETRIES if route.retries is None else route.retries
    table = {"preset": route.on_error} if isinstance(route.on_error, str) else dict(route.on_error)
    named = table.pop("preset", preset)
    # A route that skips models whose context is too small also falls back if a model itself reports this.
    fallback_on = (*table.pop("fallbackOn", ()), *(("context_length",) if route.on_overflow == SKIP else ()))
    actions = {error_class: Action(action) for error_class, action in table.items() if action in set(Action)}
    return Policy(ErrorPreset(named) if named in set(ErrorPreset) else preset, actions, fallback_on, retries)


def _request_timeouts(route: RouteSpec, candidates: Iterable[PlannedCandidate]) -> Timeouts:
    # A route without a total timeout of its own uses the longest total timeout of its candidates.
    own = [candidate.timeouts.total for candidate in candidates if candidate.timeouts is not None]
    total = route.deadline or max([Timeouts().total, *own])
    return _override(Timeouts(), {"firstContent": route.first_content, "total": total})


def _candidate_timeouts(configuration: Configuration, route: RouteSpec, provider: ProviderSpec, model: str) -> Timeouts:
    service = configuration.service_at(provider.name, model)
    # A service's timeouts override its provider's, and a route's timeouts override both.
    own = _override(_override(Timeouts(), provider.timeouts), service.timeouts if service else {})
    return _override(own, {"firstContent": route.first_content, "total": route.deadline})


def _override(base: Timeouts, own: Mapping[str, Any]) -> Timeouts:
    def seconds(key: str, otherwise: float) -> float:
        value = own.get(key)
        return float(value) if isinstance(value, int | float) and value > 0 else otherwise

    return Timeouts(
        seconds("connect", base.connect),
        seconds("firstContent", base.first_content),
        seconds("between", base.between),
        seconds("total", base.total),
    )


# A conversation is recognised by its first messages, so that it uses the same provider key in every turn.

OPENING_CHARACTERS = 4096
"""How many characters of each text the digest covers. Conversations that only differ later in a text may share a key.
"""


def opening_text(chat: ChatRequest) -> str:
    """Return a digest of all messages up to the first user message, which are the same in every turn."""
    digest = blake2b(digest_size=16)
    for message in chat.messages:
        digest.update(f"\n{message.role.value}:".encode())
        for part in message.parts:
            text = part.text[:OPENING_CHARACTERS] if isinstance(part, TextPart) else ""
            file = f"{part.artifact_id}{part.size}" if isinstance(part, FilePart) else ""
            digest.update(f"{text}\0{file}\0".encode("utf-8", "replace"))
        # The first turn has no messages after this one, so they cannot identify the conversation.
        if message.role is Role.USER:
            break
    return digest.hexdigest()


# Files described by models: whether the describing route is usable, and which routes need it.


class DescribeRouteState(StrEnum):
    """Whether the describing route can be used and, if not, why not."""

    READY = "ready"
    DISABLED = "disabled"
    MISSING = "missing"
    BLIND = "blind"


def describe_route_state(configuration: Configuration) -> DescribeRouteState:
    """Return whether the describing route exists, is enabled, and has a model that can read media."""
    route = configuration.route(DESCRIBE_ROUTE)
    if route is None:
        return DescribeRouteState.MISSING
    if not route.enabled:
        return DescribeRouteState.DISABLED
    return DescribeRouteState.BLIND if is_blind(configuration, route) else DescribeRouteState.READY


def wants_describer_along(configuration: Configuration, route: RouteSpec) -> bool:
    """Return whether any candidate of the route may receive file descriptions written by another model.

    The route's content policy takes precedence over the service's, which takes precedence over the installation's.
    """
    if route.task_type == DESCRIBE_ROUTE:
        return False
    own = str(route.content.get("policy") or "")
    policies = (
        [own]
        if own
        else [_content_policy(configuration, candidate.provider, candidate.model) for candidate in route.candidates]
    )
    return any(has_describer({"policy": policy}) for policy in policies)


def _content_policy(configuration: Configuration, provider: str, model: str | None) -> str:
    found = configuration.provider(provider)
    service = configuration.service_at(provider, model or (found.default_model if found else ""))
    own = str((service.content or {}).get("policy") or "") if service else ""
    return own or configuration.content_policy or DEFAULT_POLICY


READY = "ready"


@dataclass(frozen=True, slots=True)
class ResolvedCandidate:
    """What would happen to a candidate now: it is `ready`, or it would be skipped for the given reason."""

    candidate: PlannedCandidate
    outcome: str
    reason: str = ""


def resolve_plan(plan: Plan, cooldowns: Cooldowns) -> tuple[ResolvedCandidate, ...]:
    """Return what would happen to every candidate now.

    This neither calls a candidate nor claims the probe after a cooldown.
    """
    seen: set[tuple[str, str]] = set()
    resolved = []
    for candidate in plan.candidates:
        resolved.append(_resolve(candidate, seen, cooldowns))
        seen.add((candidate.provider, candidate.model))
    return tuple(resolved)


def _resolve(candidate: PlannedCandidate, seen: set[tuple[str, str]], cooldowns: Cooldowns) -> ResolvedCandidate:
    if candidate.skip is not None:
        return ResolvedCandidate(
            candidate, candidate.skip.value, candidate.skip_detail or SKIP_SENTENCES[candidate.skip]
        )
    if (candidate.provider, candidate.model) in seen:
        return ResolvedCandidate(candidate, SkipReason.DUPLICATE.value, SKIP_SENTENCES[SkipReason.DUPLICATE])
    # Use `look`, because `enter` would claim the probe after a cooldown.
    cooling = cooldowns.look(candidate.provider, candidate.model)
    if cooling is None:
        return ResolvedCandidate(candidate, READY)
    reason = translatable(
        "In cooldown for another %(seconds)s s after %(fault)s.",
        seconds=round(cooling.seconds),
        fault=cooling.failure.fault.value,
    )
    return ResolvedCandidate(candidate, SkipReason.COOLING.value, reason)
