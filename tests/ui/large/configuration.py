"""The planned configuration: routes, aliases and agents of a company's teams, with the providers from `providers.py`.

It depends only on the size and the seed. The changes that lead to it are in `people.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Any

from routing_admin.core.configuration.specs import (
    DESCRIBE_ROUTE,
    AgentSpec,
    AliasSpec,
    CandidateSpec,
    RouteSpec,
    ServiceSpec,
)
from tests.ui.large import WIDE, Size, object_name
from tests.ui.large.providers import CALLABLE, GATEWAYS, Providers, ProviderState, make_providers

DEMO = {"providers": 4, "services": 6, "routes": 6, "agents": 3, "artifacts": 4}
"""How many objects the demo contains."""
DEMO_PROVIDERS = frozenset({"openai", "anthropic", "echo"})

TEAMS: Mapping[str, str] = {
    "billing": ".",
    "support": "/",
    "legal": ".",
    "search": "-",
    "payments": ".",
    "research": "/",
    "platform": ".",
    "data": "_",
    "risk": ".",
    "hr": "-",
    "marketing": "/",
    "docs": ".",
    "mobile": "-",
    "vision": "/",
    "speech": ".",
    "ops": "-",
    "security": ".",
    "finance": "_",
    "sales": "/",
    "logistics": ".",
}
"""Maps each of the company's teams to the character between team and task in its route names."""
SUBJECTS = (
    *("invoice-extraction", "translate-zh", "translate-en", "summary", "triage", "classification", "draft-reply"),
    *("contract-review", "query-rewrite", "ranking", "report", "ocr", "image-caption", "meeting-notes", "code-review"),
    *("sentiment", "entity-extraction", "faq", "rewrite", "outline", "quality-check", "anomaly-notes", "chart-reading"),
    *("transcription-cleanup", "sql", "planning", "deduplication", "redaction"),
)
READING = frozenset({"invoice-extraction", "contract-review", "ocr", "image-caption", "chart-reading", "report"})
"""Task subjects for which the requests contain files."""
CHINESE_ROUTES = (
    "客服.工单分类",
    "客服.质检",
    "法务.合同审核",
    "市场/文案",
    "财务_报销单识别",
    "研发-周报",
    "搜索-改写",
)
ROLES = ("bot", "worker", "assistant", "pipeline", "reviewer", "crawler", "copilot", "batch")
PROJECTS = ("apollo", "borealis", "cascade", "dynamo", "everest", "falcon")
CHAIN_LENGTHS = {1: 20, 2: 30, 3: 22, 4: 12, 5: 8, 6: 5, 7: 3}
ERROR_RULES: Sequence[str | Mapping[str, Any]] = (
    "resilient",
    "strict",
    {"429": "next", "timeout": "next"},
    {"preset": "resilient", "context_length": "next"},
    {"5xx": "next", "empty": "retry", "auth": "next"},
)


class Unable(StrEnum):
    """The reason why a route cannot answer, or why its models cannot read the files in its requests."""

    NO_KEY = "no provider has a key"
    DISABLED = "every provider is disabled"
    SERVICES_OFF = "every model service is disabled"
    FORBIDDEN = "every address is forbidden"
    MIXED = "each candidate has another reason"
    CANNOT_READ = "no model reads what its requests bring"
    SERVICE_DELETED = "its models' services were deleted, so they read text only"


UNABLE_SHARES = {
    Unable.NO_KEY: 9,
    Unable.DISABLED: 7,
    Unable.SERVICES_OFF: 4,
    Unable.FORBIDDEN: 4,
    Unable.MIXED: 3,
    Unable.CANNOT_READ: 4,
    Unable.SERVICE_DELETED: 2,
}


STATES_OF: Mapping[Unable, tuple[ProviderState, ...]] = {
    Unable.NO_KEY: (ProviderState.NO_KEY,),
    Unable.DISABLED: (ProviderState.DISABLED,),
    Unable.FORBIDDEN: (ProviderState.FORBIDDEN,),
    Unable.MIXED: (ProviderState.NO_KEY, ProviderState.DISABLED, ProviderState.FORBIDDEN),
}
"""Maps each reason that concerns a route's providers to the states of these providers."""


@dataclass(frozen=True)
class AgentPlan:
    """An agent with its team, project and keys. `at_run_time` means that the platform creates it through the API."""

    spec: AgentSpec
    team: str
    project: str
    keys: tuple[KeyPlan, ...] = ()
    at_run_time: bool = False


@dataclass(frozen=True)
class KeyPlan:
    """A key's terms, and whether it is revoked or expires. `expires_days` is counted from the end of the simulated
    time.
    """

    label: str
    terms: Mapping[str, Any] = field(default_factory=dict)
    revoked: bool = False
    expires_days: int | None = None


@dataclass(frozen=True)
class Planned:
    """The planned configuration without the demo. The services in `to_delete` are created and later deleted."""

    size: Size
    seed: int
    providers: Providers
    services: tuple[ServiceSpec, ...]
    to_delete: tuple[ServiceSpec, ...]
    routes: tuple[RouteSpec, ...]
    unable: Mapping[str, Unable]
    aliases: tuple[AliasSpec, ...]
    agents: tuple[AgentPlan, ...]

    def environment(self) -> dict[str, str]:
        """Return the installation's environment variables: invented keys, and the URLs of the company's own servers."""
        return {"ROUTING_ADMIN_ALLOWED_ORIGINS": ",".join(self.providers.origins), **self.providers.variables}


def plan_configuration(size: Size, seed: int) -> Planned:
    rng = Random(f"configuration {seed}")
    deleted = 3
    providers = make_providers(
        rng, size.providers - DEMO["providers"], size.services - DEMO["services"] + deleted, DEMO_PROVIDERS
    )
    to_delete = _choose_services_to_delete(providers, deleted)
    services = tuple(service for service in providers.services if service not in to_delete)
    maker = _RouteMaker(rng, providers, services, to_delete)
    unable = _plan_unable(size.unable)
    routes = tuple(maker.make(size.routes - DEMO["routes"], unable))
    aliases = tuple(_make_aliases(rng, size.aliases, services, routes))
    agents = tuple(_make_agents(rng, size.agents - DEMO["agents"], services, routes))
    return Planned(size, seed, providers, services, to_delete, routes, maker.unable, aliases, agents)


def _choose_services_to_delete(providers: Providers, count: int) -> tuple[ServiceSpec, ...]:
    """Choose services that read images. Their providers work and have other services as well."""
    many = Counter(service.provider for service in providers.services)
    names = {template.name for template in GATEWAYS}
    fitting = [
        service
        for service in providers.services
        if "vision" in service.effective_capabilities.input
        and providers.states[service.provider] is ProviderState.READY
        and many[service.provider] > 2
        and service.enabled
        and service.provider not in names
    ]
    return tuple(fitting[:count])


def _plan_unable(count: int) -> list[Unable]:
    """Return `count` reasons why routes cannot answer, with each reason at least once."""
    return [*UNABLE_SHARES, *(cause for cause, share in UNABLE_SHARES.items() for _ in range(share - 1))][:count]


class _RouteMaker:
    """Creates routes. Those that are meant to work get services whose providers can be called."""

    def __init__(
        self, rng: Random, providers: Providers, services: Sequence[ServiceSpec], to_delete: Sequence[ServiceSpec]
    ) -> None:
        self._rng, self._states, self._to_delete = rng, providers.states, to_delete
        self.unable: dict[str, Unable] = {}
        self._services = services
        working = [service for service in services if service.enabled and self._states[service.provider] in CALLABLE]
        self._usable = working
        self._seeing = [service for service in working if "vision" in service.effective_capabilities.input]
        self._blind = [service for service in working if "vision" not in service.effective_capabilities.input]
        self._others = [service for service in services if service not in working]

    def make(self, count: int, unable: Sequence[Unable]) -> Iterator[RouteSpec]:
        wide = [service for service in self._services if service.name == WIDE]
        chain = (*wide, *self._rng.sample(self._usable, 6))
        yield RouteSpec(object_name("task", 0), tuple(map(_candidate, chain)))
        yield RouteSpec(DESCRIBE_ROUTE, tuple(map(_candidate, self._rng.sample(self._seeing, 3))))
        live = [CandidateSpec(template.name, template.models[0]) for template in GATEWAYS]
        for candidate in live:
            other = live[-1] if candidate == live[0] else live[0]
            yield RouteSpec(f"platform.live-{candidate.provider}", (candidate, other), retries=0)
        names = self._names()
        for cause in unable:
            reads = cause in (Unable.CANNOT_READ, Unable.SERVICE_DELETED)
            name = next(name for name in names if not reads or is_reading(name))
            self.unable[name] = cause
            yield RouteSpec(name, self._unable_chain(cause), content=self._unable_content(cause))
        for at in range(count - 2 - len(live) - len(unable)):
            yield self._route(next(names), at)

    def _names(self) -> Iterator[str]:
        names = [f"{team}{sign}{subject}" for team, sign in TEAMS.items() for subject in SUBJECTS]
        self._rng.shuffle(names)
        # The names at the beginning are for the routes that cannot answer. A few of the names are Chinese.
        for at, name in enumerate(names):
            if at % 41 == 12 and at // 41 < len(CHINESE_ROUTES):
                yield CHINESE_ROUTES[at // 41]
            yield name

    def _route(self, name: str, at: int) -> RouteSpec:
        rng = self._rng
        length = rng.choices([*CHAIN_LENGTHS], [*CHAIN_LENGTHS.values()])[0]
        reads = is_reading(name)
        pool = self._seeing if reads else self._usable
        chain = rng.sample(pool, length)
        if length > 2 and rng.random() < 0.3:
            chain[rng.randrange(1, length)] = rng.choice(self._others)
        if length > 4 and rng.random() < 0.2:
            chain[-1] = chain[0]
        if reads and length > 2 and at % 3 == 0:
            chain[-1] = rng.choice(self._blind)
        policies = ("describe", "extract", "convert", "extract+convert", "native_only", "extract+convert+describer")
        return RouteSpec(
            name,
            tuple(_candidate(service, rng) for service in chain),
            temperature=rng.choice((None, None, 0.0, 0.2, 0.7, 1.0)),
            max_tokens=rng.choice((None, None, 512, 2048, 8192)),
            on_error=rng.choice(ERROR_RULES) if at % 4 == 1 else {},
            retries=rng.choice((0, 1, 3)) if at % 5 == 2 else None,
            deadline=rng.choice((20, 60, 300)) if at % 6 == 3 else None,
            first_content=rng.choice((5, 15)) if at % 9 == 4 else None,
            content={"policy": rng.choice(policies)} if reads and at % 2 else {},
            enabled=at % 47 != 5,
            on_drop="refuse" if at % 31 == 6 else "",
            on_overflow="skip" if at % 23 == 7 else "",
            directive="none" if at % 13 == 8 else "",
            keep_alive_seconds=(0, 10)[at % 2] if at % 37 in (9, 10) else None,
            allow_n=at % 29 == 11,
        )

    def _unable_chain(self, cause: Unable) -> tuple[CandidateSpec, ...]:
        rng, wanted = self._rng, STATES_OF.get(cause, ())
        if cause is Unable.CANNOT_READ:
            pool = self._blind
        elif cause is Unable.SERVICE_DELETED:
            pool = list(self._to_delete)
        elif cause is Unable.SERVICES_OFF:
            pool = [
                service
                for service in self._services
                if not service.enabled and self._states[service.provider] in CALLABLE
            ]
        else:
            pool = [service for service in self._services if self._states[service.provider] in wanted]
        chain = rng.sample(pool, min(len(pool), rng.randint(1, 4)))
        if cause is Unable.MIXED:
            chain = [
                rng.choice([service for service in self._services if self._states[service.provider] is state])
                for state in wanted
            ]
        return tuple(map(_candidate, chain))

    def _unable_content(self, cause: Unable) -> Mapping[str, Any]:
        return {"policy": "native_only"} if cause in (Unable.CANNOT_READ, Unable.SERVICE_DELETED) else {}


def _candidate(service: ServiceSpec, rng: Random | None = None) -> CandidateSpec:
    if rng is None or rng.random() < 0.85:
        return CandidateSpec(service.provider, service.model)
    return CandidateSpec(service.provider, service.model, temperature=rng.choice((0.0, 0.3, 0.9)), max_tokens=4096)


FORMER_MODELS = (
    *(
        "gpt-4o",
        "gpt-4o-mini",
        "gpt-4-turbo",
        "claude-3-5-sonnet-latest",
        "claude-3-haiku",
        "gemini-1.5-pro",
        "qwen-max",
    ),
    *("deepseek-chat", "glm-4-plus", "moonshot-v1-8k", "mistral-large", "llama3-70b", "gpt-3.5-turbo", "o1-preview"),
)
SHORT_NAMES = ("fast", "smart", "cheap", "vision", "long", "code", "zh", "reasoning", "快速", "高质量")


def _make_aliases(
    rng: Random, count: int, services: Sequence[ServiceSpec], routes: Sequence[RouteSpec]
) -> Iterator[AliasSpec]:
    yield AliasSpec(object_name("alias", 0), services[0].id)
    taken = {service.id for service in services} | {route.task_type for route in routes}
    names = [*FORMER_MODELS, *SHORT_NAMES, *(f"{team}-{short}" for short in SHORT_NAMES[:6] for team in TEAMS)]
    free = [name for name in names if name not in taken]
    for at, name in enumerate(free[: count - 1]):
        if at % 3 == 2:
            yield AliasSpec(name, f"task:{rng.choice(routes).task_type}")
        elif at % 11 == 4:
            service = rng.choice(services)
            yield AliasSpec(name, f"{service.provider}/{service.model}")
        else:
            yield AliasSpec(name, rng.choice(services).id)


def is_reading(task_type: str) -> bool:
    """Return whether requests with this task type contain files."""
    return any(subject in task_type for subject in READING)


def route_team(task_type: str) -> str:
    return next((team for team, sign in TEAMS.items() if task_type.startswith(team + sign)), "platform")


def _make_agents(
    rng: Random, count: int, services: Sequence[ServiceSpec], routes: Sequence[RouteSpec]
) -> Iterator[AgentPlan]:
    yield AgentPlan(
        AgentSpec(object_name("agent", 0), WIDE, WIDE, services[0].id), "platform", "", (KeyPlan(WIDE[:100]),)
    )
    yield AgentPlan(AgentSpec("platform-live", "Live calls", task_type=routes[2].task_type), "platform", "apollo",
                    (KeyPlan("live"),))  # fmt: skip
    used: Counter[str] = Counter()
    teams = [*TEAMS]
    for at in range(count - 2):
        own_routes = [route for route in routes[6:] if route_team(route.task_type) == teams[at % len(teams)]]
        team, route = teams[at % len(teams)], rng.choice(own_routes or routes[6:])
        subject = route.task_type.removeprefix(team)[1:] if route.task_type.startswith(team) else "helper"
        name = f"{team}-{subject}-{ROLES[(at + at // len(teams)) % len(ROLES)]}"
        used[name] += 1
        agent_id = name if used[name] == 1 else f"{name}-{used[name]}"
        by_service = at % 4 == 1
        spec = AgentSpec(
            agent_id,
            f"{team.capitalize()}: {subject.replace('-', ' ')}" if at % 6 else "",
            "" if at % 3 else f"Runs {subject.replace('-', ' ')} for the team {team}.",
            service_id=rng.choice(services).id if by_service else None,
            task_type=None if by_service or at % 10 == 9 else route.task_type,
            limits=_limits(rng, at, route.task_type),
        )
        yield AgentPlan(spec, team, PROJECTS[at % len(PROJECTS)] if at % 3 else "", tuple(_keys(rng, at, team)),
                        at_run_time=at % 17 == 16)  # fmt: skip


def _limits(rng: Random, at: int, task_type: str) -> Mapping[str, Any]:
    if at % 4 != 2:
        return {}
    kinds: Sequence[Mapping[str, Any]] = (
        {"requestsPerMinute": 120, "inFlight": 8},
        {"tokensPerDay": 2_000_000},
        {"moneyPerMonth": "400", "currency": "USD"},
        {"moneyPerDay": "60", "currency": "CNY", "unpriced": "count", "unpricedPrice": "4"},
        {"moneyPerMonth": "120", "currency": "USD", "unpriced": "refuse", "requestsPerMinute": 300},
        {"models": [f"task:{task_type}"], "tokensPerMonth": 90_000_000},
    )
    return kinds[at // 4 % len(kinds)]


def _keys(rng: Random, at: int, team: str) -> Iterator[KeyPlan]:
    if at % 7 == 6 or at % 17 == 16:
        return
    project = PROJECTS[at % len(PROJECTS)]
    terms: dict[str, Any] = {"team": team, **({"project": project} if at % 3 else {})}
    if at % 8 == 3:
        terms["limits"] = {"requestsPerMinute": 30}
    yield KeyPlan("production", terms, expires_days=(None, None, 3, None, 60, None, None, 6)[at % 8])
    if at % 5 == 0:
        yield KeyPlan("staging", {"team": team}, revoked=at % 10 == 0)
    if at % 12 == 4:
        yield KeyPlan("old laptop", revoked=True)
        yield KeyPlan("last quarter", {"team": team}, expires_days=-9)
