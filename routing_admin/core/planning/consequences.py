"""Consequences that a configuration change has for the routes and agents that requests use."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from capabilities.core.consequence import Consequence, Gravity
from capabilities.core.providers.catalogue import Catalogue
from capabilities.core.translatable import translatable
from capabilities.core.vocabulary import Capabilities
from routing_admin.core.configuration.removals import ModelEnd, list_ends
from routing_admin.core.configuration.specs import AgentSpec, CandidateSpec, Configuration, LanguageSpec, RouteSpec
from routing_admin.core.planning.language import LANGUAGE_DIRECTIVES, resolve_language
from routing_admin.core.planning.lint import MEDIA, NOTICE, ChainLint, CheckedCandidate, lint
from routing_admin.core.planning.model_names import is_target
from routing_admin.core.planning.plan import NoRouteError, Unusable, is_taken, resolve_route

KINDS: Mapping[str, str] = {
    "vision": translatable("images"),
    "audio": translatable("audio"),
    "video": translatable("videos"),
    "file": translatable("files"),
}
"""Maps each capability in `MEDIA` to the content that a model with this capability can read."""
Notice = tuple[Gravity, str]
ORDER = (Gravity.STOPS, Gravity.DEGRADES, Gravity.CHANGES)


def consequences(
    before: Configuration, after: Configuration, unusable: Mapping[str, Unusable] | None = None
) -> tuple[Consequence, ...]:
    """Return all consequences of replacing `before` by `after`, most serious first.

    The providers in `unusable` count as not callable, both before and after the change.
    """
    old, new = _Reach(before, unusable or {}), _Reach(after, unusable or {})
    changed = _changed_providers(before, after)
    found = [
        *_route_consequences(old, new, changed),
        *_alias_consequences(before, after),
        *_agent_consequences(old, new, changed),
        *_language_consequences(before, after),
    ]
    return tuple(sorted(found, key=lambda consequence: ORDER.index(consequence.gravity)))


class _Reach:
    """Finds the candidates that routes and agents can reach under one configuration; caches each route's check."""

    def __init__(self, configuration: Configuration, unusable: Mapping[str, Unusable]) -> None:
        self.configuration = configuration
        self._unusable = unusable
        self._chains: dict[str, ChainLint] = {}

    def chain(self, route: RouteSpec) -> ChainLint:
        if route.task_type not in self._chains:
            self._chains[route.task_type] = lint(self.configuration, route, self._unusable)
        return self._chains[route.task_type]

    def agent_route(self, agent: AgentSpec) -> RouteSpec | None:
        """Return the route that an agent's requests use, or None if the agent has no route or no route is usable."""
        if agent.task_type is None:
            return None
        try:
            return resolve_route(self.configuration, agent.task_type)[0]
        except NoRouteError:
            return None

    def agent_model(self, agent: AgentSpec) -> Capabilities | None:
        """Return the capabilities of an agent's first callable model, or None if there is none."""
        route = self.agent_route(agent)
        if route is not None:
            return next((candidate.capabilities for candidate in self.chain(route).callable), None)
        service = self.configuration.service(agent.service_id) if agent.service_id else None
        provider = self.configuration.provider(service.provider) if service else None
        if service is None or provider is None or not (service.enabled and provider.enabled):
            return None
        return None if provider.name in self._unusable else service.effective_capabilities

    def reads(self, agent: AgentSpec, capability: str) -> bool:
        model = self.agent_model(agent)
        return model is not None and model.has(capability)


def _route_consequences(old: _Reach, new: _Reach, changed: Collection[str]) -> Iterator[Consequence]:
    for route in filter(is_taken, old.configuration.routes):
        now = new.configuration.route(route.task_type)
        effects: Iterable[Notice] = ()
        if now is None or not is_taken(now):
            effects = [_route_notice(route, new.configuration, is_there=now is not None)]
        elif _is_touched(route, now, changed):
            effects = _chain_notices(route.task_type, old.chain(route), new.chain(now))
        yield from (Consequence(*effect, "route", route.task_type) for effect in effects)


def _changed_providers(before: Configuration, after: Configuration) -> set[str]:
    pairs = ((before, after), (after, before))
    providers = {
        provider.name
        for side, opposite in pairs
        for provider in side.providers
        if _differ(provider, opposite.provider(provider.name))
    }
    return providers | {
        service.provider
        for side, opposite in pairs
        for service in side.services
        if _differ(service, opposite.service(service.id))
    }


def _differ(first: object, second: object) -> bool:
    # Most objects belong to both configurations, so compare by identity before comparing by value.
    return first is not second and first != second


def _is_touched(route: RouteSpec, now: RouteSpec, changed: Collection[str]) -> bool:
    return _differ(route, now) or any(candidate.provider in changed for candidate in route.candidates)


def _route_notice(route: RouteSpec, after: Configuration, *, is_there: bool) -> Notice:
    try:
        target = resolve_route(after, route.task_type)[0].task_type
    except NoRouteError:
        return Gravity.STOPS, translatable("%(route)s is removed, and no route takes its tasks.", route=route.task_type)
    if is_there:
        text = translatable("%(route)s is disabled; its tasks go to %(other)s.", route=route.task_type, other=target)
    else:
        text = translatable("%(route)s is removed; its tasks go to %(other)s.", route=route.task_type, other=target)
    return Gravity.CHANGES, text


def _chain_notices(route: str, old: ChainLint, new: ChainLint) -> Iterator[Notice]:
    # A chain that could not answer before the change loses nothing.
    if not old.callable:
        return
    if not new.callable:
        yield Gravity.STOPS, translatable("%(route)s has no model left that can be called.", route=route)
        return
    lost = [capability for capability in _read(old.callable) if capability not in _read(new.callable)]
    if lost:
        text = translatable("%(route)s loses its last model that reads %(kinds)s.", route=route, kinds=_kinds(lost))
        yield Gravity.DEGRADES, text
    yield from _candidate_notices(route, old, new, lost)
    first, now = old.callable[0], new.callable[0]
    removed = [_name(candidate) for candidate in old.callable if _key(candidate) not in map(_key, new.callable)]
    if _key(first) != _key(now):
        text = translatable(
            "%(route)s starts with %(now)s instead of %(then)s.", route=route, now=_name(now), then=_name(first)
        )
        yield Gravity.CHANGES, text
    elif removed:
        text = translatable("%(route)s loses %(models)s.", route=route, models=tuple(removed))
        yield Gravity.CHANGES, text


def _candidate_notices(route: str, old: ChainLint, new: ChainLint, lost_by_all: Sequence[str]) -> Iterator[Notice]:
    before = {_key(candidate): candidate for candidate in old.callable}
    for candidate in new.callable:
        earlier = before.get(_key(candidate))
        lost = [
            # `_chain_notices` already reports capabilities that the whole route loses.
            capability
            for capability in _read([earlier] if earlier else [])
            if not candidate.capabilities.has(capability) and capability not in lost_by_all
        ]
        if lost:
            text = translatable(
                "In %(route)s, %(model)s gets %(kinds)s as descriptions.",
                route=route,
                model=f"{candidate.spec.provider}/{candidate.model}",
                kinds=_kinds(lost),
            )
            yield Gravity.DEGRADES, text


def _alias_consequences(before: Configuration, after: Configuration) -> Iterator[Consequence]:
    for alias in before.aliases:
        # An alias that had no target before the change loses nothing.
        if alias in after.aliases and is_target(before, alias.target) and not is_target(after, alias.target):
            yield Consequence(
                Gravity.STOPS,
                translatable("The alias %(alias)s no longer leads anywhere.", alias=alias.name),
                "alias",
                alias.name,
            )


def _agent_consequences(old: _Reach, new: _Reach, changed: Collection[str]) -> Iterator[Consequence]:
    remaining = {agent.id: agent for agent in new.configuration.agents}
    unread: set[str] = set()
    for agent in old.configuration.agents:
        now = remaining.get(agent.id)
        if now is not None and not _differ(agent, now) and not _concerns(agent, old, new, changed):
            continue
        lost = [
            capability
            for capability in MEDIA
            if old.reads(agent, capability) and not (now and new.reads(now, capability))
        ]
        unread.update(lost)
        if now is None:
            text = translatable("The agent %(agent)s is deleted, and its keys stop working.", agent=agent.id)
            yield Consequence(Gravity.CHANGES, text, "agent", agent.id)
        elif old.agent_model(agent) is not None and new.agent_model(now) is None:
            text = translatable("The agent %(agent)s no longer reaches any model.", agent=agent.id)
            yield Consequence(Gravity.STOPS, text, "agent", agent.id)
        elif lost:
            text = translatable("The agent %(agent)s no longer reads %(kinds)s.", agent=agent.id, kinds=_kinds(lost))
            yield Consequence(Gravity.DEGRADES, text, "agent", agent.id)
    lost_everywhere = [
        capability
        for capability in MEDIA
        if capability in unread and not any(new.reads(agent, capability) for agent in remaining.values())
    ]
    if lost_everywhere and remaining:
        yield Consequence(
            Gravity.DEGRADES, translatable("No agent is left to read %(kinds)s.", kinds=_kinds(lost_everywhere))
        )


def _concerns(agent: AgentSpec, old: _Reach, new: _Reach, changed: Collection[str]) -> bool:
    route, now = old.agent_route(agent), new.agent_route(agent)
    if route is not None:
        return now is None or now.task_type != route.task_type or _is_touched(route, now, changed)
    service = old.configuration.service(agent.service_id) if agent.service_id else None
    return service is not None and service.provider in changed


def _language_consequences(before: Configuration, after: Configuration) -> Iterator[Consequence]:
    now = _directives(after.languages)
    for code, directive in _directives(before.languages).items():
        if now.get(code) == directive:
            continue
        # Requests in a removed language are answered in the nearest language that remains.
        fallback = resolve_language(code, after.default_language, now)
        if fallback == code:
            text = translatable("The directive for %(code)s becomes: %(directive)s", code=code, directive=now[code])
            yield Consequence(Gravity.CHANGES, text, "language", code)
        else:
            text = translatable("Requests in %(code)s are answered in %(other)s.", code=code, other=fallback)
            yield Consequence(Gravity.DEGRADES, text, "language", code)


def _directives(languages: Sequence[LanguageSpec]) -> dict[str, str]:
    return {**LANGUAGE_DIRECTIVES, **{language.code: language.directive for language in languages}}


def _read(candidates: Sequence[CheckedCandidate]) -> list[str]:
    return [
        capability for capability in MEDIA if any(candidate.capabilities.has(capability) for candidate in candidates)
    ]


def _kinds(capabilities: Sequence[str]) -> tuple[str, ...]:
    return tuple(KINDS[capability] for capability in capabilities)


def _key(candidate: CheckedCandidate) -> tuple[str, str]:
    return candidate.spec.provider, candidate.model


def _name(candidate: CheckedCandidate) -> str:
    return candidate.service.id if candidate.service else f"{candidate.spec.provider}/{candidate.model}"


# The remaining functions determine how each upcoming retirement affects routes and agents, in order of date.


@dataclass(frozen=True, slots=True)
class ModelEnding:
    """The retirement of a model, whether its date has passed, and its consequences."""

    end: ModelEnd
    is_over: bool
    consequences: tuple[Consequence, ...]


def foresee_endings(
    configuration: Configuration,
    today: date,
    unusable: Mapping[str, Unusable] | None = None,
    catalogue: Catalogue | None = None,
) -> tuple[ModelEnding, ...]:
    """Return the retirements within the period `NOTICE` that affect a route or an agent, earliest first."""
    found, before = [], configuration
    for end in list_ends(configuration, catalogue):
        if end.retirement.day > today + NOTICE:
            break
        after = without_model(before, end)
        # Compare with the configuration after all earlier retirements, so that each one reports only its own effects.
        effects = consequences(before, after, unusable)
        if effects:
            found.append(ModelEnding(end, end.retirement.day <= today, effects))
        before = after
    return tuple(found)


def without_model(configuration: Configuration, end: ModelEnd) -> Configuration:
    """Return the configuration with the model's services disabled and its candidates removed from all chains."""
    defaults = {provider.name: provider.default_model for provider in configuration.providers}

    retired = (end.provider, end.model)

    def stays(candidate: CandidateSpec) -> bool:
        return (candidate.provider, candidate.model or defaults.get(candidate.provider)) != retired

    routes = tuple(
        replace(route, candidates=tuple(filter(stays, route.candidates))) if is_affected else route
        for route in configuration.routes
        for is_affected in (not all(map(stays, route.candidates)),)
    )
    services = tuple(
        replace(service, enabled=False) if (service.provider, service.model) == retired else service
        for service in configuration.services
    )
    return replace(configuration, routes=routes, services=services)
