"""What users do in two months: invite others, import, change and undo, issue keys, set budgets, sign in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import partial
from random import Random
from typing import Any

from django.contrib.auth.models import User

from capabilities.actors import Actor
from capabilities.core.exchange import ExchangeRate
from capabilities.core.providers.catalogue import default_catalogue
from capabilities.core.providers.catalogue.refreshing import read_own_list
from capabilities.core.providers.probes.drift import DriftKind
from capabilities.core.vocabulary import Source
from capabilities.errors import InvalidError
from capabilities.models import Agent, AgentKey, Provider, Service
from routing_admin.configuration.agents.actions import issue_key, put_agent, revoke_key, roll_key, save_agent
from routing_admin.configuration.catalogue_versions import store_catalogue_version
from routing_admin.configuration.history import newest_configuration, newest_number
from routing_admin.configuration.revisions import ledger
from routing_admin.console.agents.actions import make_link
from routing_admin.console.drills.actions import record_drill_ends, start_drill
from routing_admin.console.exchange.actions import import_configuration
from routing_admin.console.history.actions import restore, undo
from routing_admin.console.people import actions as people
from routing_admin.console.providers.actions import enable_providers, record_key_tests, record_tests, save_provider
from routing_admin.console.routes.actions import save_alias, save_route_as
from routing_admin.console.routes.queries import find_route
from routing_admin.console.services.actions import delete_service, record_drift, save_service, set_cell
from routing_admin.console.settings.actions import (
    save_language,
    set_content_policy,
    set_default_language,
    set_rate,
)
from routing_admin.core.configuration.specs import DEFAULT_ROUTE, Configuration, RouteSpec
from routing_admin.core.files.exporting import export
from routing_admin.core.files.importing import FileFormat
from routing_admin.dispatch.provider_checks import CheckResult
from tests.ui.large import PASSWORD, WIDE, object_name
from tests.ui.large.configuration import AgentPlan, Planned
from tests.ui.large.providers import CALLABLE, ProviderState

ADMIN, EDITOR, VIEWER = "administrator", "editor", "viewer"
STAFF = (
    *(("mei.lin", ADMIN), ("tomasz.nowak", ADMIN), ("aisha.khan", EDITOR), ("王芳", EDITOR), ("j.oconnor", EDITOR)),
    *(("lena.fischer", EDITOR), ("ravi.p", VIEWER), ("zhang.wei", VIEWER), ("s.dubois", VIEWER)),
    *(("night-shift", VIEWER), (object_name("user", 0), EDITOR)),
)
"""All users but the first administrator. The last two have not accepted their invitation, and `s.dubois` has left."""
EDITORS = ("mei.lin", "tomasz.nowak", "aisha.khan", "王芳", "j.oconnor", "lena.fischer", "admin")
DRILL_DAYS = (19, 5)
SESSION = 4
"""How many changes a user makes in a row."""
START_DAYS = 60


@dataclass(frozen=True)
class Event:
    """An action at a moment in simulated time. `revises` is true if it creates a revision."""

    at: datetime
    run: Callable[[], Any]
    revises: bool = False


def person(name: str) -> Actor:
    at = [username for username, _role in STAFF].index(name) if name != "admin" else 99
    return Actor("person", name, f"10.20.{at}.{17 + at}")


class History:
    """All actions of users up to `now`, in order."""

    def __init__(self, planned: Planned, now: datetime) -> None:
        self._planned, self._now = planned, now
        self._rng = Random(f"people {planned.seed}")
        self._keys: dict[str, list[AgentKey]] = {}

    def events(self) -> list[Event]:
        fixed_events = [*self._staff(), *self._imports(), *self._settings(), *self._agents(), *self._drills()]
        fixed_events += [*self._deletions(), *self._days(), *self._evidence()]
        done = 1 + sum(event.revises for event in fixed_events) + self._later_revisions()
        return sorted([*fixed_events, *self._changes(self._planned.size.revisions - done)], key=lambda event: event.at)

    def _later_revisions(self) -> int:
        # These revisions are created later: the budgets are saved at the end, when the spending is known, and the real
        # calls change and restore the URLs of the gateways.
        return 1 + 2 * bool(self._planned.size.calls)

    def _time(self, days: float, hour: float = 9.0) -> datetime:
        """Return a time on the day `days` days ago, but no later than five minutes ago."""
        midnight = self._now.replace(hour=0, minute=0, second=0, microsecond=0)
        moment = midnight - timedelta(days=int(days)) + timedelta(hours=hour, seconds=self._rng.randrange(600))
        return min(moment, self._now - timedelta(seconds=300 + self._rng.randrange(300)))

    # Actions on user accounts.

    def _staff(self) -> Iterator[Event]:
        for number, (name, role) in enumerate(STAFF):
            invited = self._time(START_DAYS - 1 - number // 3, 9 + number % 3)
            inviter = person("admin") if number < 2 else person("mei.lin")
            yield Event(invited, partial(people.invite, inviter, name, role))
            if number < 9:
                yield Event(invited + timedelta(hours=2), partial(_join, name))
        yield Event(self._time(21, 16), partial(_set_role, "lena.fischer", VIEWER, EDITOR))
        yield Event(self._time(14, 16), partial(_set_role, "lena.fischer", EDITOR, VIEWER))
        yield Event(self._time(8, 17), partial(_deactivate, "s.dubois"))
        for name, token, scopes in (
            ("mei.lin", "deploy", ("config:read", "config:write")),
            ("tomasz.nowak", "grafana", ("requests:read", "routes:read")),
            ("mei.lin", "old pipeline", ("config:read",)),
        ):
            yield Event(self._time(30, 11), partial(_issue_token, name, token, scopes, revoke=token == "old pipeline"))

    def _days(self) -> Iterator[Event]:
        for day in range(START_DAYS - 3, -1, -1):
            working = (self._now - timedelta(days=day)).weekday() < 5
            for name in self._rng.sample(EDITORS, 3 if working else 0):
                moment = self._time(day, self._rng.uniform(7, 18))
                action = "user.sign_in_failed" if self._rng.random() < 0.07 else "user.sign_in"
                yield Event(
                    moment, partial(people.record_sign_in, replace(person(name), kind="person"), action, [name])
                )

    # Imports of configuration files.

    def _imports(self) -> Iterator[Event]:
        planned = self._planned
        yield Event(self._time(58, 10), _refused_import)
        yield Event(self._time(58, 11), partial(self._import_providers), revises=True)
        count = planned.size.route_files
        for number in range(count):
            editor, days, routes = EDITORS[number + 1], 55 - 4 * number, planned.routes[number::count]
            message = f"Routes, part {number + 1} of {count}"
            yield Event(self._time(days, 14), partial(_import_routes, person(editor), routes, message), revises=True)

    def _import_providers(self) -> None:
        """Import providers and services from two files.

        The files contain stored keys in plain text, as users write them.
        """
        planned = self._planned
        value = Configuration(providers=planned.providers.specs, services=planned.providers.services)
        files = [json.loads(export(value, file_format).text) for file_format in FileFormat]
        for file in files:
            for entry in (*file.get("providers", ()), *file.get("services", ())):
                key = planned.providers.literal_keys.get(str(entry.get("providerName")))
                if key is not None:
                    entry["apiKey"] = key
        import_configuration(person("mei.lin"), [json.dumps(file) for file in files], message="Providers of all teams")

    # Changes of settings.

    def _settings(self) -> Iterator[Event]:
        rate = ExchangeRate("CNY", "USD", "0.1391", "", "monthly rate of the finance team")
        today = partial(_set_rate, person("tomasz.nowak"), rate, self._time(39).date())
        yield Event(self._time(39, 10), today, revises=True)
        yield Event(self._time(39, 11), self._replace_default_route, revises=True)
        yield Event(
            self._time(38, 10), partial(save_language, person("王芳"), "de", "Antworte auf Deutsch."), revises=True
        )
        yield Event(self._time(38, 11), partial(set_default_language, person("mei.lin"), "en"), revises=True)
        policy = partial(set_content_policy, person("aisha.khan"), "extract+convert")
        yield Event(self._time(38, 12), policy, revises=True)
        yield Event(self._time(16, 10), _store_catalogue_version)

    def _replace_default_route(self) -> None:
        usable = [
            route
            for route in self._planned.routes
            if route.task_type not in self._planned.unable and len(route.candidates) > 2 and route.enabled
        ]
        _save(person("mei.lin"), DEFAULT_ROUTE, candidates=usable[-1].candidates[:3])

    # Changes of agents and their keys.

    def _agents(self) -> Iterator[Event]:
        configured = [plan for plan in self._planned.agents if not plan.at_run_time]
        made = [plan for plan in self._planned.agents if plan.at_run_time]
        entries = [
            {
                "id": plan.spec.id,
                "name": plan.spec.name,
                "description": plan.spec.description,
                **({"serviceId": plan.spec.service_id} if plan.spec.service_id else {}),
                **({"taskType": plan.spec.task_type} if plan.spec.task_type else {}),
                **({"limits": dict(plan.spec.limits)} if plan.spec.limits else {}),
            }
            for plan in configured
        ]
        parts = {"aliases": {alias.name: alias.target for alias in self._planned.aliases}, "agents": entries}
        yield Event(self._time(40, 15), partial(_import_parts, person("mei.lin"), parts), revises=True)
        yield Event(self._time(37, 9), partial(self._issue_keys, configured))
        yield Event(self._time(20, 13), partial(self._revoke_keys, configured))
        yield Event(self._time(9, 10), partial(self._roll_key, configured[2]))
        yield Event(self._time(3, 9), partial(_make_run_time_agents, configured[2].spec.id, made))
        yield Event(self._time(6, 9), partial(_make_links, [plan.spec.id for plan in configured[3:8]], self._now))

    def _issue_keys(self, plans: Iterable[AgentPlan]) -> None:
        rows = Agent.objects.in_bulk(field_name="agent_id")
        # In one transaction, the change is published only once for all keys.
        with ledger.exclusive():
            for number, plan in enumerate(plans):
                for key in plan.keys:
                    ends = None if key.expires_days is None else self._now + timedelta(days=key.expires_days)
                    _text, row = issue_key(
                        person(EDITORS[number % 3]),
                        rows[plan.spec.id],
                        label=key.label,
                        terms=key.terms,
                        expires_at=ends,
                    )
                    self._keys.setdefault(plan.spec.id, []).append(row)
            for agent_id in ("text-agent", "vision-agent", "multimodal-agent"):
                issue_key(person("admin"), rows[agent_id], label="demo")

    def _revoke_keys(self, plans: Iterable[AgentPlan]) -> None:
        with ledger.exclusive():
            for plan in plans:
                for key, row in zip(plan.keys, self._keys.get(plan.spec.id, ()), strict=True):
                    if key.revoked:
                        revoke_key(person("tomasz.nowak"), row)

    def _roll_key(self, plan: AgentPlan) -> None:
        roll_key(person("mei.lin"), self._keys[plan.spec.id][0], overlap=timedelta(days=30))

    # Fire drills.

    def _drills(self) -> Iterator[Event]:
        for number, days in enumerate(DRILL_DAYS):
            moment = self.drill_at(number)
            yield Event(moment, partial(start_drill, person("tomasz.nowak"), self.drill_provider(), 300))
            yield Event(moment + timedelta(seconds=330 + days), partial(record_drill_ends))

    def drill_at(self, number: int) -> datetime:
        midnight = self._now.replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight - timedelta(days=DRILL_DAYS[number]) + timedelta(hours=10, minutes=15)

    def drill_provider(self) -> str:
        """Return the provider that is the first candidate of the most routes."""
        first = [route.candidates[0].provider for route in self._planned.routes if route.task_type not in self.unable]
        ready = [name for name in first if self._planned.providers.states.get(name) is ProviderState.READY]
        return max(sorted(set(ready)), key=ready.count)

    @property
    def unable(self) -> frozenset[str]:
        return frozenset(self._planned.unable)

    # Deletions of services.

    def _deletions(self) -> Iterator[Event]:
        for number, service in enumerate(self._planned.to_delete):
            at = self._time(12 - 3 * number, 15)
            yield Event(at, partial(_delete_service, EDITORS[number], service.id), revises=True)

    # Results of connection tests and probes.

    def _evidence(self) -> Iterator[Event]:
        yield Event(self._time(0, 23), partial(self._test_providers))
        seeing = [service for service in self._planned.services if "vision" in service.effective_capabilities.input]
        kinds = (DriftKind.DENIED, DriftKind.STOPPED, DriftKind.STARTED)
        for service, kind in zip(seeing[5:8], kinds, strict=False):
            yield Event(self._time(2, 4), partial(_record_drift, service.id, kind))

    def _test_providers(self) -> None:
        states, results = self._planned.providers.states, {}
        faults = {
            ProviderState.REFUSED: "http_401",
            ProviderState.BUSY: "http_429",
            ProviderState.NO_KEY: "key_missing",
        }
        for name, state in states.items():
            if self._rng.random() < 0.75 or state in faults:
                results[name] = CheckResult(ms=self._rng.lognormvariate(6.2, 0.6), fault=faults.get(state, ""))
            if state is ProviderState.SEVERAL_KEYS:
                tests = {"team-a": CheckResult(ms=312.0), "team-b": CheckResult(ms=284.5, fault="http_401")}
                record_key_tests(name, tests)
        record_tests(results)

    # Everyday changes.

    def _changes(self, count: int) -> Iterator[Event]:
        """Yield `count` changes. Each creates a revision. Users make four in a row, and some undo the last one."""
        kinds: Sequence[Callable[[str, int], Callable[[], Any]]] = (
            *(self._tune_route, self._swap_candidates, self._rename_service, self._set_limit, self._point_alias),
            *(self._override, self._set_timeouts),
        )
        begin = self._time(33, 9)
        step = (self._now - timedelta(hours=3) - begin) / max(count, 1)
        editor = EDITORS[0]
        for at in range(count):
            moment = begin + step * (at - at % SESSION) + timedelta(minutes=7 * (at % SESSION))
            if at % SESSION == 0:
                editor = EDITORS[self._rng.randrange(len(EDITORS))]
            if at == SESSION - 1:
                yield Event(moment, partial(_restore, editor, 2), revises=True)
            elif at % (5 * SESSION) == SESSION + 2:
                yield Event(moment, partial(_undo, editor), revises=True)
            elif at % (3 * SESSION) in (2 * SESSION, 2 * SESSION + 1) and count - at > 1 + SESSION:
                resumed = bool(at % (3 * SESSION) == 2 * SESSION + 1)
                yield Event(
                    moment, partial(_enable, person(editor), self._paused_provider(), enabled=resumed), revises=True
                )
            else:
                yield Event(moment, kinds[at % len(kinds)](editor, at), revises=True)

    def _route(self, number: int) -> RouteSpec:
        usable = [route for route in self._planned.routes[6:] if route.task_type not in self.unable and route.enabled]
        return usable[number * 7 % len(usable)]

    def _tune_route(self, editor: str, number: int) -> Callable[[], Any]:
        temperature = (number % 9 * 2 + 3) / 20
        return partial(
            _save, person(editor), self._route(number).task_type, temperature=temperature, max_tokens=3000 + number
        )

    def _swap_candidates(self, editor: str, number: int) -> Callable[[], Any]:
        long = [route for route in self._planned.routes[6:] if len(route.candidates) > 1]
        long = [route for route in long if route.task_type not in self.unable]
        return partial(_rotate_chain, person(editor), long[number * 5 % len(long)].task_type)

    def _rename_service(self, editor: str, number: int) -> Callable[[], Any]:
        service = self._planned.services[1 + number * 11 % (len(self._planned.services) - 1)]
        return partial(_rename_service, person(editor), service.id, f"{service.name} · {number}")

    def _set_limit(self, editor: str, number: int) -> Callable[[], Any]:
        plans = [plan for plan in self._planned.agents if not plan.spec.limits and not plan.at_run_time]
        return partial(_set_limits, person(editor), plans[number * 3 % len(plans)].spec.id, 100 + number)

    def _point_alias(self, editor: str, number: int) -> Callable[[], Any]:
        aliases = self._planned.aliases
        target = self._planned.services[1 + number * 13 % (len(self._planned.services) - 1)].id
        return partial(save_alias, person(editor), aliases[1 + number * 3 % (len(aliases) - 1)].name, target)

    def _override(self, editor: str, number: int) -> Callable[[], Any]:
        plain = [service for service in self._planned.services if "audio" not in service.effective_capabilities.input]
        return partial(_override, person(editor), plain[number * 17 % len(plain)].id)

    def _paused_provider(self) -> str:
        ready = [name for name, state in self._planned.providers.states.items() if state is ProviderState.READY]
        return ready[-1]

    def _set_timeouts(self, editor: str, number: int) -> Callable[[], Any]:
        names = [name for name, state in self._planned.providers.states.items() if state in CALLABLE]
        return partial(_set_timeouts, person(editor), names[number * 5 % len(names)], 60 + number)


# The functions that the events call.


def _join(name: str) -> None:
    people.choose_password(person(name), User.objects.get(username=name), PASSWORD)


def _set_role(name: str, role: str, before: str) -> None:
    people.set_role(person("mei.lin"), User.objects.get(username=name).pk, role, expected=before)


def _deactivate(name: str) -> None:
    people.set_active(person("mei.lin"), User.objects.get(username=name).pk, active=False)


def _issue_token(name: str, token: str, scopes: Sequence[str], *, revoke: bool) -> None:
    _text, row = people.issue_token(person(name), User.objects.get(username=name), token, scopes)
    if revoke:
        people.revoke_token(person(name), row)


def _refused_import() -> None:
    broken = {"providers": [{"providerName": "new", "endpoint": "not a URL", "apiKey": "", "defaultModel": "m"}]}
    try:
        import_configuration(person("mei.lin"), [json.dumps(broken)])
    except InvalidError:
        return
    raise AssertionError("the broken file was imported")


def _import_routes(actor: Actor, routes: Sequence[RouteSpec], message: str) -> None:
    value = replace(newest_configuration(), routes=tuple(routes))
    routing = json.loads(export(value, FileFormat.ROUTING).text)["routing"]
    import_configuration(actor, [json.dumps({"routing": routing})], message=message)


def _import_parts(actor: Actor, parts: Mapping[str, Any]) -> None:
    import_configuration(actor, [json.dumps({"routing": {}, **parts})], message="Aliases and agents of all teams")


def _set_rate(actor: Actor, rate: ExchangeRate, day: date) -> None:
    set_rate(actor, replace(rate, day=day.isoformat()))


def _store_catalogue_version() -> None:
    names = [object_name("model", number) for number in range(300)]
    entries = [{"id": name, "context_length": 1000, "capabilities": {"vision": True}} for name in names]
    store_catalogue_version(
        read_own_list(WIDE, "openrouter", entries, default_catalogue().document, date(2026, 11, 22))
    )


def _save(actor: Actor, task_type: str, **values: Any) -> None:
    spec = newest_configuration().route(task_type)
    assert spec is not None, task_type
    save_route_as(actor, find_route(task_type), replace(spec, **values))


def _rotate_chain(actor: Actor, task_type: str) -> None:
    spec = newest_configuration().route(task_type)
    assert spec is not None, task_type
    _save(actor, task_type, candidates=(*spec.candidates[1:], spec.candidates[0]))


def _rename_service(actor: Actor, service_id: str, name: str) -> None:
    row = Service.objects.get(service_id=service_id)
    row.name = name
    save_service(actor, row)


def _set_limits(actor: Actor, agent_id: str, count: int) -> None:
    row = Agent.objects.get(agent_id=agent_id)
    row.limits = {"requestsPerMinute": count}
    save_agent(actor, row)


def _override(actor: Actor, service_id: str) -> None:
    cell = ("input", "audio")
    row = Service.objects.get(service_id=service_id)
    declared = row.capabilities.filter(side="input", name="audio", supported=True).exists()
    set_cell(actor, row, cell, supported=not declared, source=Source.DECLARED)


def _enable(actor: Actor, name: str, *, enabled: bool) -> None:
    enable_providers(actor, [Provider.objects.get(name=name)], enabled=enabled)


def _set_timeouts(actor: Actor, name: str, seconds: int) -> None:
    row = Provider.objects.get(name=name)
    row.timeouts = {**row.timeouts, "total": seconds}
    save_provider(actor, row)


def _undo(editor: str) -> None:
    undo(person(editor), newest_number() or 0)


def _restore(editor: str, steps: int) -> None:
    restore(person(editor), (newest_number() or 0) - steps, message="Back to what worked yesterday")


def _delete_service(editor: str, service_id: str) -> None:
    delete_service(person(editor), Service.objects.get(service_id=service_id))


def _record_drift(service_id: str, kind: DriftKind) -> None:
    row = Service.objects.select_related("provider").get(service_id=service_id)
    record_drift(row, "vision", kind, newest_number())


def _make_run_time_agents(owner: str, plans: Iterable[AgentPlan]) -> None:
    with ledger.exclusive():
        for number, plan in enumerate(plans):
            put_agent(
                Actor("agent", owner),
                owner,
                plan.spec.id,
                name=plan.spec.name,
                description=plan.spec.description,
                service_id=plan.spec.service_id,
                task_type=plan.spec.task_type,
                expires_in=86_400.0 * (7 + number) if number % 2 else None,
            )


def _make_links(agents: Iterable[str], now: datetime) -> None:
    for number, agent_id in enumerate(agents):
        expires_at = now + timedelta(days=5) if number % 2 else None
        make_link(
            person("mei.lin"), Agent.objects.get(agent_id=agent_id), name=f"Developer {number}", expires_at=expires_at
        )
