"""Requests from thirty days: real plans and fallback chains, with scripted results and a simulated clock.

The product's own code makes the attempts, decides in which form files are delivered, and writes the log entries. Only
answers, times and token counts of providers are invented.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from random import Random
from typing import Any

from artifacts.models import Artifact
from artifacts.storage.content import build_file_part
from capabilities.core.delivery.adaptation import CannotRead, summary
from capabilities.core.delivery.model_endpoint import Prepared
from capabilities.core.message import ChatRequest, FilePart, Message, Role, TextPart
from capabilities.core.operations.passthrough import REQUIRED_PROTOCOL, PassthroughCall
from capabilities.core.operations.table import OPERATIONS
from capabilities.core.services.agent_limits import Meter
from capabilities.core.services.agents import Labels, parse_terms
from capabilities.core.translatable import translatable
from capabilities.core.wire import Answer, Failure, Fault, Usage
from capabilities.last_use import last_uses
from capabilities.models import AgentKey
from capabilities.refused_files import refusal_buffer
from routing_admin.configuration import snapshot
from routing_admin.console.routes.queries import list_ready
from routing_admin.core.configuration.specs import DESCRIBE_ROUTE
from routing_admin.core.fallback.chain import CANCELLED, OK, Attempt, Call, Reply, RunResult, Try
from routing_admin.core.fallback.context import local_context
from routing_admin.core.fallback.endings import NO_ROUTE, OVERLOADED, UNAVAILABLE
from routing_admin.core.fallback.errors import RouterError
from routing_admin.core.fallback.policy import caller_status
from routing_admin.core.fallback.run import FallbackRun, end_stream
from routing_admin.core.limits.sentences import BUDGET_EXCEEDED, RATE_EXCEEDED, RefusedNeed, refusal_sentence
from routing_admin.core.planning.model_names import NOT_ALLOWED, NamedRoute, UnknownModelError, resolve_model
from routing_admin.core.planning.params import apply_params
from routing_admin.core.planning.plan import NoRouteError
from routing_admin.dispatch.model_endpoints import without_describing
from routing_admin.dispatch.plan import PlannedRequest, list_dropped, plan_request, prepare_for
from routing_admin.dispatch.send import pass_through
from routing_admin.platform.databases.unavailable import MESSAGE
from routing_admin.platform.server.draining import DrainingError
from routing_admin.request_log.call_outcomes import call_outcomes
from routing_admin.request_log.costs import cost_columns
from routing_admin.request_log.entries import Entry, RequestFacts, build_entry, note_refused_files
from routing_admin.request_log.insertion import write
from routing_admin.request_log.operations import DESCRIBE
from routing_admin.request_log.recorder import ABANDONED_STATUS, failure_facts
from tests.ui.large import KEY_NAMES, WIDE, object_name
from tests.ui.large.artifacts import Library
from tests.ui.large.configuration import Planned, is_reading
from tests.ui.large.people import History
from tests.ui.large.provider_behavior import DAY, HOUR, INJECTABLE, ProviderBehavior
from tests.ui.large.providers import CALLABLE, LOCAL_DOMAIN, ProviderState

DAYS = 30
HOURLY = (1, 1, 1, 1, 1, 2, 4, 8, 14, 20, 22, 21, 15, 18, 22, 23, 20, 16, 11, 8, 6, 4, 3, 2)
"""Each hour's weight on a working day. At weekends, it is a third of this."""
MAX_SIMULATED = 25_000
"""How many requests are simulated individually. All others are copies of recent ones at other times."""
RECENT, BATCH = 3_000, 5_000
DRILL_CALLS, BROKEN_CALLS = 14, 8
QUESTION = TextPart("Answer the question about the data below.")
PLAIN = ChatRequest((Message(Role.SYSTEM, (TextPart("Be brief."),)), Message(Role.USER, (QUESTION,))))
TUNED = replace(PLAIN, temperature=0.3, max_tokens=900, top_p=0.9, extra={"seed": 7, "logit_bias": {"50256": -100}})
"""A request with parameters that some protocols do not have."""
PASSTHROUGH_WEIGHTS = {
    "embeddings": 6,
    "rerank": 2,
    "moderations": 1,
    "transcriptions": 2,
    "speech": 1,
    "images": 1,
    "completions": 1,
}
CONTENT_TYPE = translatable("%(param)s must be a string or a list of parts.", param="messages[0].content")
BY_NAME = {operation.name: operation for operation in OPERATIONS}
REASONING_MODELS = ("thinking", "reason", "o1", "o3", "o4", "-r1", "gpt-5", "gpt-6", "qwq", "magistral", "grok-4")


@dataclass
class Clock:
    """The simulated clock of the fallback chains, in seconds since 1970."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Caller:
    """An agent that makes calls: its key, the model names that it requests, and its labels."""

    agent: str
    key: AgentKey
    names: tuple[str, ...]
    labels: Labels
    users: int = 0


@dataclass
class SimulatedRequest:
    """A simulated request without its id, time and token counts."""

    facts: dict[str, Any]
    attempts: tuple[Attempt, ...] = ()
    prepared: Mapping[int, Prepared] = field(default_factory=dict)
    chat: ChatRequest | None = None
    answered: tuple[str, str] | None = None


class Traffic:
    """All the installation's requests, which are written in chronological order."""

    def __init__(
        self, planned: Planned, now: datetime, behavior: ProviderBehavior, history: History, library: Library
    ) -> None:
        self._planned, self._now, self._library = planned, now.timestamp(), library
        self._rng = Random(f"requests {planned.seed}")
        self._behavior = behavior
        self._clock = Clock()
        self._context = local_context(self._clock, self._rng.random)
        self._pending, self._at = self._schedule(history), 0
        # Each of these faults is caused once, or twice if the log is large.
        self._injected = [*INJECTABLE] * (2 if planned.size.requests > 2000 else 1)
        self._injected_share = min(0.3, 3 * len(self._injected) / max(1, planned.size.requests))
        self._recent: list[Entry] = []
        self._simulated_count = 0
        self._simulated_share = min(1.0, MAX_SIMULATED / max(1, planned.size.requests))
        self._callers: list[Caller] = []
        self._weights: list[float] = []
        self._keys: dict[str, AgentKey] = {}
        self._last_uses: dict[str, datetime] = {}
        self._pool_size = 0
        self._ids: deque[str] = deque(maxlen=50)
        self._prepared: dict[tuple[Any, ...], Prepared | CannotRead] = {}
        self._known_chats: dict[tuple[Any, ...], ChatRequest] = {}
        self.renew()

    # Times of the requests.

    def _schedule(self, history: History) -> list[tuple[float, str]]:
        """Return each request's time and requested model, in order of time. An empty name means any model."""
        rng, begin, now = self._rng, self._now - DAYS * DAY, self._now
        starts = [begin + hour * HOUR for hour in range(DAYS * 24)]
        weights = []
        for start in starts:
            at = datetime.fromtimestamp(start, UTC)
            growth = 1 + 0.5 * (start - begin) / (DAYS * DAY)
            weights.append(HOURLY[at.hour] * growth * (0.33 if at.weekday() > 4 else 1.0))
        named = [(moment, name) for moment, name in self._named_requests(history) if moment < now]
        count = self._planned.size.requests - self._planned.size.calls - len(named) - 3
        chosen = rng.choices(starts, weights, k=max(count, 0))
        moments = [(start + rng.random() * HOUR, "") for start in chosen]
        return sorted([*moments, *named])

    def _named_requests(self, history: History) -> Iterator[tuple[float, str]]:
        rng = self._rng
        provider = history.drill_provider()
        routes = [
            route.task_type
            for route in self._planned.routes
            if route.candidates[0].provider == provider and route.enabled and route.task_type not in history.unable
        ]
        for number in (0, 1):
            begins = history.drill_at(number).timestamp()
            for _ in range(DRILL_CALLS if self._planned.size.requests > 1000 else 3):
                yield begins + rng.uniform(5, 295), f"task:{rng.choice(routes)}"
            # The page about a fire drill's result compares it with earlier calls, such as these.
            for _ in range(3):
                yield begins - rng.uniform(60, HOUR), f"task:{rng.choice(routes)}"
        specs = {spec.name: spec for spec in self._planned.providers.specs}
        for incident in self._behavior.key_incidents():
            # Two calls during the incident, before the alerts are checked, and one after the provider works again.
            middle = (incident.begins + incident.ends) / 2
            for moment in (rng.uniform(incident.begins, middle), middle - 60, incident.ends + rng.uniform(60, HOUR)):
                yield moment, f"{incident.provider}/{specs[incident.provider].default_model}"
        for name in self._behavior.failing_providers():
            for _ in range(BROKEN_CALLS):
                yield self._now - rng.uniform(60, 0.8 * HOUR), f"{name}/{specs[name].default_model}"

    def write_until(self, moment: datetime) -> None:
        """Write all requests that began before `moment`."""
        limit, entries = moment.timestamp(), list[Entry]()
        while self._at < len(self._pending) and self._pending[self._at][0] < limit:
            entries.append(self._make_entry(*self._pending[self._at]))
            self._at += 1
            if len(entries) == BATCH:
                log_entries(entries)
                entries = []
        log_entries(entries)

    def renew(self) -> None:
        """Discard cached plans if the configuration has changed, and choose files again if there are many new ones."""
        if self._callers and snapshot.current() is self._state:
            return
        self._state = snapshot.current()
        self._plans: dict[tuple[Any, ...], PlannedRequest] = {}
        if len(self._library.stored) >= self._pool_size + 20 or not self._pool_size:
            self._find_files()
        if not self._callers:
            self._find_callers()

    def _find_files(self) -> None:
        newest = Artifact.objects.filter(pk__in=self._library.stored[-60:]).living().order_by("-created_at")
        fitting = newest.filter(size__lt=3_000_000).exclude(filename__contains=WIDE)
        rows = [row for kind in ("image", "document", "text", "audio") for row in fitting.filter(kind=kind)[:6]]
        self._files: list[FilePart] = [build_file_part(row) for row in rows]
        self._pool_size = len(self._library.stored)
        self._known_chats.clear()
        self._prepared.clear()

    def _find_callers(self) -> None:
        keys: dict[str, AgentKey] = {}
        # An agent's first key never expires and is not revoked later.
        for row in AgentKey.objects.select_related("agent").filter(revoked_at=None).order_by("created_at", "pk"):
            keys.setdefault(row.agent.agent_id, row)
        targets = {alias.target: alias.name for alias in self._planned.aliases}
        for agent in self._state.configuration.agents:
            key = keys.get(agent.id)
            if key is None:
                continue
            own = f"task:{agent.task_type}" if agent.task_type else agent.service_id or "auto"
            allowed = agent.limits.get("models")
            names = tuple(allowed) if allowed else (own, own, targets.get(own, own))
            users = 40 if len(self._callers) % 6 == 2 else 0
            self._callers.append(Caller(agent.id, key, names, parse_terms(key.terms).labels, users))
        self._rng.shuffle(self._callers)
        # Few callers continue to use a route that cannot answer.
        ready = {route.task_type for route in self._state.configuration.routes if list_ready(self._state, route)}
        doubtful = [not self._can_answer(caller.names[0], ready) for caller in self._callers]
        weights = [(0.02 if doubt else 1) / (rank + 3) for rank, doubt in enumerate(doubtful)]
        self._weights = [*accumulate(weights)]

    def _can_answer(self, name: str, ready: Collection[str]) -> bool:
        service = self._state.configuration.service(name)
        if service is not None:
            return service.enabled and self._planned.providers.states.get(service.provider) in CALLABLE
        return name == "auto" or (name.removeprefix("task:") in ready and not self._planned.unable.get(name[5:]))

    # Requests and their log entries.

    def _make_entry(self, at: float, name: str) -> Entry:
        if not name and self._recent and self._rng.random() > self._simulated_share:
            return self._repeat(at, self._rng.choice(self._recent))
        entry = self._complete_entry(at, self._simulate_request(at, name))
        if not name and self._simulated_share < 1:
            self._recent[self._simulated_count % RECENT : self._simulated_count % RECENT + 1] = [entry]
            self._simulated_count += 1
        return entry

    def _repeat(self, at: float, entry: Entry) -> Entry:
        """Return a copy of the request at another time, with the same cost."""
        facts = copy(entry.facts)
        facts.id, facts.began = f"req_{self._rng.getrandbits(96):024x}", datetime.fromtimestamp(at, UTC)
        facts.revision = self._state.revision
        return Entry(facts, entry.attempts, entry.sent, entry.conversation, cost_columns(entry))

    def _complete_entry(self, at: float, simulated: SimulatedRequest) -> Entry:
        began = datetime.fromtimestamp(at, UTC)
        usage, facts = self._usage(simulated), dict(simulated.facts)
        if simulated.answered is not None and facts["outcome"] == OK:
            writing = self._behavior.generation_seconds(simulated.answered[0], usage.completion_tokens or 60) * 1000
            facts["duration_ms"] += writing
            last = simulated.attempts[-1]
            tries = (*last.tries[:-1], replace(last.tries[-1], duration_ms=last.tries[-1].duration_ms + writing))
            last = replace(last, duration_ms=last.duration_ms + writing, tries=tries)
            attempts = (*simulated.attempts[:-1], last)
        else:
            attempts = simulated.attempts
        if key := facts.get("key"):
            self._last_uses[key] = began
        request_id = f"req_{self._rng.getrandbits(96):024x}"
        self._ids.append(request_id)
        complete = RequestFacts(
            request_id, began, usage=usage, revision=self._state.revision, **facts, **self._details(simulated, usage)
        )
        return build_entry(complete, attempts, simulated.prepared, simulated.chat)

    def _simulate_request(self, at: float, name: str) -> SimulatedRequest:
        rng = self._rng
        caller = rng.choices(self._callers, cum_weights=self._weights)[0]
        self._keys[caller.key.public_id] = caller.key
        facts = {
            "surface": "v1",
            "agent": caller.agent,
            "key": caller.key.public_id,
            "labels": self._choose_labels(caller),
        }
        draw = 1.0 if name else rng.random()
        if draw < 0.02:
            return SimulatedRequest({**facts, **self._simulate_rejection(caller, at)})
        if draw < 0.023 and self._ids:
            return SimulatedRequest(
                {**facts, "outcome": OK, "status": 200, "replay_of": rng.choice(self._ids), "duration_ms": 2.5}
            )
        if draw < 0.06:
            return self._simulate_passthrough(facts, at)
        if draw < 0.07:
            facts["surface"] = rng.choice(("api", "api", "page"))
        elif draw < 0.08:
            facts["surface"], name = DESCRIBE, f"task:{DESCRIBE_ROUTE}"
        model_name = name or self._choose_model_name(caller)
        try:
            named = resolve_model(self._state.configuration, model_name)
        except UnknownModelError as error:
            unknown = {"outcome": "model_not_found", "status": 404, "error": error.sentence, "duration_ms": 1.8}
            return SimulatedRequest({**facts, "asked_model": model_name, **unknown})
        injected = self._injected.pop() if not name and self._injected and rng.random() < self._injected_share else None
        chat, language = self._choose_chat(named), "zh" if rng.random() < 0.08 else None
        stream = rng.random() < 0.5 or (injected is not None and injected.value.startswith("stream"))
        key = (model_name, language, stream, id(chat))
        planned = self._plans.get(key)
        if planned is None:
            planned = self._plans[key] = plan_request(
                self._state,
                named.route,
                chat,
                matched=named.matched,
                language=language,
                agent=caller.agent,
                stream=stream,
                service=named.service,
                direct=named.direct,
            )
        facts |= {"asked_model": model_name, "task_type": named.task_type, "matched": named.matched}
        simulated = self._run_fallback_chain(planned, facts, at, injected)
        if injected is not None and all(attempt.outcome != injected for attempt in simulated.attempts):
            self._injected.append(injected)
        return simulated

    def _choose_model_name(self, caller: Caller) -> str:
        rng, draw = self._rng, self._rng.random()
        if draw < 0.82:
            return rng.choice(caller.names)
        if draw < 0.90:
            return f"task:{rng.choice(self._planned.routes).task_type}"
        if draw < 0.94:
            return rng.choice(self._planned.aliases).name
        if draw < 0.97:
            service = rng.choice(self._planned.services)
            return f"{service.provider}/{service.model}"
        if draw < 0.99:
            return "auto"
        return rng.choice(("gpt-7", "claude-next", "task:no-such-task", "text-davinci-003"))

    def _choose_labels(self, caller: Caller) -> Labels:
        if not caller.users:
            return caller.labels
        return replace(caller.labels, user=f"customer-{self._rng.randrange(caller.users):03}")

    def _choose_chat(self, named: NamedRoute) -> ChatRequest:
        rng = self._rng
        reads = named.route.task_type == DESCRIBE_ROUTE or is_reading(named.route.task_type)
        if not self._files or rng.random() > (0.75 if reads else 0.05):
            return TUNED if rng.random() < 0.2 else PLAIN
        # Each route uses only a few sets of files, since preparing a set may require reading its files.
        at = (stable_hash(named.route.task_type) + rng.randrange(3)) % len(self._files)
        return self._chat_with_files(at, 2 if at % 4 == 0 else 1)

    def _chat_with_files(self, at: int, count: int) -> ChatRequest:
        key = ("files", at, count, self._pool_size)
        if key not in self._known_chats:
            files = tuple(self._files[(at + step * 7) % len(self._files)] for step in range(count))
            self._known_chats[key] = ChatRequest((Message(Role.USER, (QUESTION, *files)),))
        return self._known_chats[key]

    # Simulated calls.

    def _simulate_passthrough(self, facts: dict[str, Any], at: float) -> SimulatedRequest:
        """Simulate a call other than chat, which the gateway only sends to providers that speak `openai`."""
        rng = self._rng
        operation = BY_NAME[rng.choices([*PASSTHROUGH_WEIGHTS], [*PASSTHROUGH_WEIGHTS.values()])[0]]
        own = [
            name for name, state in self._planned.providers.states.items()
            if LOCAL_DOMAIN in (self._spec(name).endpoint) and state is ProviderState.READY
        ]  # fmt: skip
        model_name = (
            f"{rng.choice(own)}/bge-m3" if rng.random() < 0.7 else f"task:{rng.choice(self._planned.routes).task_type}"
        )
        named = resolve_model(self._state.configuration, model_name)
        chat, passing = ChatRequest((), extra={"input": "text"}), PassthroughCall(operation=operation)
        planned = plan_request(
            self._state, named.route, chat, matched=named.matched, direct=named.direct, passing=passing
        )
        assert passing.name == REQUIRED_PROTOCOL
        facts |= {"surface": f"v1/{operation.name}", "asked_model": model_name, "task_type": named.task_type}
        return self._run_fallback_chain(pass_through(planned, passing), facts | {"matched": named.matched}, at, None)

    def _spec(self, name: str) -> Any:
        return next(spec for spec in self._planned.providers.specs if spec.name == name)

    def _run_fallback_chain(
        self, planned: PlannedRequest, facts: dict[str, Any], at: float, injected: Fault | None
    ) -> SimulatedRequest:
        """Run the fallback chain, and set the clock to its end."""
        rng, clock = self._rng, self._clock
        clock.now = at
        run: FallbackRun[Answer] = FallbackRun(planned.plan, self._context, stream=planned.stream)
        prepared: dict[int, Prepared] = {}
        disconnects = rng.random() < 0.008
        facts |= {"stream": planned.stream, "language": planned.plan.language, "outcome": OK, "status": 200}
        chat = planned.chat if planned.chat.has_files else None
        steps, sent, cut = run.steps(), None, None
        try:
            while True:
                step = steps.send(sent)
                sent = None
                if not isinstance(step, Call):
                    clock.now += step.seconds
                    continue
                if disconnects and rng.random() < 0.5:
                    clock.now += rng.uniform(0.2, 20)
                    steps.close()
                    left = {"outcome": CANCELLED, "status": ABANDONED_STATUS, "duration_ms": (clock.now - at) * 1000}
                    return SimulatedRequest(facts | left, tuple(run.attempts), prepared, chat)
                sent, cut = self._simulate_reply(planned, step, prepared, injected)
        except StopIteration as end:
            result: RunResult[Answer] = end.value
        except RouterError as error:
            failed = {"outcome": error.code, "status": error.status, "error": error.message}
            return SimulatedRequest(facts | failed | {"duration_ms": run.elapsed_ms()}, error.attempts, prepared, chat)
        answered = (result.candidate.provider, result.candidate.model)
        first = run.elapsed_ms()
        facts["duration_ms"] = first
        if not planned.stream:
            return SimulatedRequest(facts, result.attempts, prepared, chat, answered)
        facts["first_content_ms"] = first
        if rng.random() < 0.01:
            facts["begun_ms"] = first / 2
        own_ms = first - result.attempts[-1].started_ms
        broken_ms = rng.uniform(200, 9000)
        if cut is not None:
            ends = {"outcome": caller_status(cut)[1], "error": cut.message, "duration_ms": first + broken_ms}
            attempts = end_stream(result, cut, own_ms + broken_ms, planned.plan, self._context)
            return SimulatedRequest(facts | ends, attempts, prepared, chat, answered)
        attempts = end_stream(result, None, own_ms, planned.plan, self._context)
        if disconnects:
            left = {"outcome": CANCELLED, "status": ABANDONED_STATUS, "duration_ms": first + broken_ms}
            return SimulatedRequest(facts | left, attempts, prepared, chat, answered)
        return SimulatedRequest(facts, attempts, prepared, chat, answered)

    def _simulate_reply(
        self, planned: PlannedRequest, call: Call, prepared: dict[int, Prepared], injected: Fault | None
    ) -> tuple[Reply[Answer], Failure | None]:
        adaptation, dropped = "", tuple[str, ...]()
        if planned.passing is None and (planned.chat.has_files or planned.chat.extra):
            ready = self._prepare(planned, call)
            if isinstance(ready, CannotRead):
                return Reply(Failure(Fault.CAPABILITY_MISMATCH, ready.reason.sentence())), None
            prepared[call.candidate.index] = ready
            adaptation = summary(ready.deliveries)
            dropped = list_dropped(planned.chat, ready, call)
        outcome = self._behavior.call(call, self._clock.now, planned.stream, injected, self._state.drill)
        self._clock.now += outcome.seconds
        return Reply(outcome.failure or Answer("…"), adaptation, dropped), outcome.cut

    def _prepare(self, planned: PlannedRequest, call: Call) -> Prepared | CannotRead:
        # Prepared requests are reused even if the configuration has changed, because reading their files takes long.
        key = (planned.chat.messages[-1], call.candidate.name, call.without_capabilities, call.without_params)
        if key not in self._prepared:
            endpoint = without_describing(planned.endpoint(call.candidate.index))
            self._prepared[key] = prepare_for(planned, apply_params(planned.chat, call), endpoint, call)
        return self._prepared[key]

    def _simulate_rejection(self, caller: Caller, at: float) -> dict[str, Any]:
        """Return the logged facts of a request that was rejected before any candidate was called."""
        rng, now = self._rng, datetime.fromtimestamp(at, UTC)
        need = RefusedNeed(who="This agent", meter=Meter.REQUESTS_PER_MINUTE, limit=120, left=0, need=1)
        money = RefusedNeed(
            **{**_fields(need), "who": "The team billing", "meter": Meter.MONEY_PER_MONTH, "currency": "USD"},
        )
        money = replace(money, limit=400 * 10**9, left=2 * 10**8, need=9 * 10**8)
        reset = now + timedelta(seconds=31)
        kinds: Sequence[tuple[int, str, int, Any]] = (
            (6, RATE_EXCEEDED, 429, refusal_sentence(need, reset, now)),
            (5, BUDGET_EXCEEDED, 429, refusal_sentence(money, reset + timedelta(days=9), now)),
            (5, "invalid_value", 400, CONTENT_TYPE),
            (3, "missing_required_parameter", 400, "messages is required."),
            (2, "invalid_json", 400, "The body is not valid JSON: line 3, column 18."),
            (2, "artifact_not_found", 404, "There is no artifact with this id that this agent may read."),
            (3, NOT_ALLOWED, 403, f"This key cannot use 'gpt-5.5-pro'. It can use: {caller.names[0]}."),
            (1, "idempotency_key_in_use", 409, "The first call with this Idempotency-Key is still in progress."),
            (1, DrainingError.code, 503, DrainingError.message),
            (1, OVERLOADED, 503, "The server is busy with other calls. Retry in a second."),
            (1, UNAVAILABLE, 503, MESSAGE),
            (1, NO_ROUTE, 503, NoRouteError.sentence),
        )  # fmt: skip
        _weight, outcome, status, error = rng.choices(kinds, [kind[0] for kind in kinds])[0]
        facts = {"outcome": outcome, "status": status, "error": error}
        if rng.random() < 0.05:
            facts = failure_facts(ValueError("made up"))
        model_facts = {} if outcome == "invalid_json" else {"asked_model": caller.names[0]}
        return {**model_facts, **facts, "duration_ms": rng.lognormvariate(1.1, 0.5)}

    # Token counts and times.

    def _usage(self, simulated: SimulatedRequest) -> Usage:
        if simulated.answered is None:
            return Usage()
        rng, (provider, model) = self._rng, simulated.answered
        if provider.startswith("ollama") and stable_hash(model) % 3 == 0:
            return Usage()
        prompt = int(rng.lognormvariate(math.log(900), 1.0)) + (1400 if simulated.prepared else 0)
        if simulated.facts["surface"].startswith("v1/"):
            return Usage(prompt, 0, prompt)
        completion = int(rng.lognormvariate(math.log(240), 0.9)) + 1
        counts: dict[str, int] = {}
        if rng.random() < 0.35:
            counts["cached_tokens"] = int(prompt * rng.uniform(0.3, 0.9))
        if any(word in model for word in REASONING_MODELS):
            counts["reasoning_tokens"] = int(completion * rng.uniform(0.5, 3))
            completion += counts["reasoning_tokens"]
        if "claude" in model and rng.random() < 0.2:
            counts["cache_write_tokens"] = int((prompt - counts.get("cached_tokens", 0)) * 0.5)
        return Usage(prompt, completion, prompt + completion, **counts)

    def _details(self, simulated: SimulatedRequest, usage: Usage) -> dict[str, Any]:
        if simulated.answered is None or simulated.facts["outcome"] != OK:
            return {}
        reason = self._rng.choices(("stop", "tool_calls", "length", "content_filter"), (84, 11, 4, 1))[0]
        model = simulated.answered[1]
        named = {"answered_model": f"{model}-2026-08-01"} if stable_hash(model) % 9 == 0 else {}
        return {"finish_reason": reason, "citations": 3 if "sonar" in model else 0, **named}

    # The last requests in the log.

    def write_wide(self, now: datetime) -> None:
        """Write three requests with long names that offer no place for a line break.

        Their attempts name the provider's keys.
        """
        provider, model = object_name("provider", 0), WIDE
        for number in range(3):
            failed = number == 1
            last = "http_503" if failed else OK
            attempts = [
                Attempt(
                    *(provider, model, "http_503" if position < 2 or failed else OK),
                    status_code=503,
                    error=WIDE,
                    started_ms=position * 400.0,
                    duration_ms=380.0,
                    tries=(
                        Try(position * 400.0, 190.0, "http_401", 401, KEY_NAMES[0]),
                        Try(position * 400.0 + 190, 190.0, "http_503" if position < 2 else last, 503, KEY_NAMES[1]),
                    ),
                )
                for position in range(3)
            ]
            facts = RequestFacts(
                "req_" + WIDE[:60] if number == 0 else f"req_{self._rng.getrandbits(96):024x}",
                now - timedelta(minutes=number + 1),
                "v1",
                agent=object_name("agent", 0),
                asked_model=f"task:{object_name('task', 0)}",
                task_type=object_name("task", 0),
                outcome="all_providers_failed" if failed else OK,
                status=502 if failed else 200,
                error=WIDE if failed else "",
                duration_ms=1234.0,
                usage=Usage(12_345, 678, 13_023),
                revision=self._state.revision,
            )
            log_entries([build_entry(facts, attempts)])

    def note_evidence(self) -> None:
        """Write what a server writes after calls: when keys were last used, and which files the models rejected."""
        for key, moment in self._last_uses.items():
            last_uses().note(self._keys[key], moment)
        last_uses().write()
        refusal_buffer().write()


def log_entries(entries: Sequence[Entry]) -> None:
    """Write log entries as the product does, but in larger batches and without changing this process's metrics."""
    write(entries)
    call_outcomes().note(entries)
    note_refused_files(entries)


def _fields(need: RefusedNeed) -> dict[str, Any]:
    return {name: getattr(need, name) for name in ("who", "meter", "limit", "left", "need", "currency")}


def stable_hash(text: str) -> int:
    """Return a hash of the text that is the same in all processes."""
    return sum(text.encode()) + len(text) * 31
