"""A day of requests in the demo data, so that a new installation's pages have content.

The log entries are what the product itself would have logged: requests are really planned and run along the chains, and
the entries are written as the journal writes them. Only the outcomes, times and counts of the calls are invented, and
they are always the same for the same moment.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import itemgetter
from random import Random
from threading import get_ident
from typing import Any

from django.utils import timezone

from artifacts.models import Artifact
from artifacts.storage.content import build_file_part
from capabilities.core.delivery.adaptation import CannotRead, summary
from capabilities.core.delivery.model_endpoint import Prepared
from capabilities.core.message import ChatRequest, Message, Role, TextPart
from capabilities.core.services.agent_limits import Meter, parse_limits
from capabilities.core.services.agents import Labels
from capabilities.core.services.limit_holders import agent_holder_id
from capabilities.core.translatable import translatable
from capabilities.core.wire import Answer, Failure, Fault, Usage
from capabilities.models import Agent
from routing_admin.configuration import snapshot
from routing_admin.configuration.installation import read_retention_settings
from routing_admin.console.alerts.actions import end_alerts, record_condition
from routing_admin.core.alerts.kinds import AlertKind, build_condition
from routing_admin.core.fallback.chain import CANCELLED, Call, Reply
from routing_admin.core.fallback.context import local_context
from routing_admin.core.fallback.errors import RouterError
from routing_admin.core.fallback.policy import caller_status
from routing_admin.core.fallback.run import FallbackRun, end_stream
from routing_admin.core.fallback.scripts import SCRIPTED, Script, drive
from routing_admin.core.limits.sentences import RATE_EXCEEDED, RefusedNeed, refusal_sentence
from routing_admin.core.limits.shares import PERIODS, Order, window_at
from routing_admin.core.planning.model_names import TASK, UnknownModelError, resolve_model
from routing_admin.core.planning.params import apply_params
from routing_admin.dispatch.model_endpoints import without_describing
from routing_admin.dispatch.plan import PlannedRequest, list_dropped, plan_request, prepare_for
from routing_admin.limits.rows import RowLedger
from routing_admin.models import Alert, AuditEvent, LimitWindow, RequestLog
from routing_admin.request_log.costs import cost_columns
from routing_admin.request_log.entries import Entry, RequestFacts, build_entry
from routing_admin.request_log.insertion import write
from routing_admin.request_log.recorder import ABANDONED_STATUS
from routing_admin.request_log.removal import remove_requests

DEMO = "demo"
"""Value of the log's column `surface` for demo requests. They do not count as answered calls of a real program."""
PROJECT = "routing_admin demo"
AGENT_LABELS: Mapping[str, Labels] = {
    "text-agent": Labels(team="writing", project=PROJECT),
    "vision-agent": Labels(team="design", project=PROJECT),
    "multimodal-agent": Labels(team="research", project=PROJECT),
}
"""Labels of the demo agents' requests. The project label keeps their usage apart from real usage."""
BUDGETED = "multimodal-agent"
BUDGET: Mapping[str, Any] = {"moneyPerMonth": "0.50", "currency": "USD"}
"""A budget that one day of demo requests nearly uses up."""

COUNT = 320
HOURLY = (2, 1, 1, 1, 1, 2, 4, 8, 14, 20, 22, 21, 15, 18, 22, 23, 20, 16, 11, 8, 6, 5, 4, 3)
"""Relative number of requests in each hour of the day."""
EMPTY_ACCOUNT, OUTAGE_BEGAN, OUTAGE = "openai", timedelta(hours=7), timedelta(minutes=50)
"""A simulated outage: the provider, whose account is empty, how long ago the outage began, and how long it lasted.

The outage causes fallbacks and an alert.
"""
MODEL_SPEEDS: Mapping[str, tuple[float, float]] = {
    "openai": (0.9, 70.0),
    "anthropic": (1.3, 60.0),
    "echo": (0.02, 4000.0),
}
"""Median time to the first content, in seconds, and median tokens per second, by provider protocol."""
DEFAULT_SPEED = (0.6, 110.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Describes similar demo requests: agent, requested model, kind of file, and each candidate's scripted answers.

    If `refused` is set, no candidate is called. If `leaves` is true, the agent disconnects while the answer is
    streamed.
    """

    weight: int = 0
    agent: str
    asks: str
    file: str = ""
    script: Script = field(default_factory=dict)
    refused: str = ""
    leaves: bool = False


TEXT, VISION, MULTIMODAL = AGENT_LABELS
KINDS = (
    Kind(weight=70, agent=TEXT, asks="task:planning"),
    Kind(weight=40, agent=TEXT, asks="task:chapter_generation"),
    Kind(weight=24, agent=TEXT, asks="text-model"),
    Kind(weight=18, agent=TEXT, asks="task:one_shot_generation"),
    Kind(weight=10, agent=TEXT, asks="auto"),
    Kind(weight=44, agent=VISION, asks="vision-model", file="image"),
    Kind(weight=16, agent=VISION, asks="task:design", file="image", script={0: ("503",)}),
    Kind(weight=6, agent=VISION, asks="task:design", file="image", script={0: ("503",), 1: ("503",)}),
    Kind(weight=24, agent=MULTIMODAL, asks="multimodal-model", file="audio"),
    Kind(weight=20, agent=MULTIMODAL, asks="multimodal-model", file="document"),
    Kind(weight=24, agent=MULTIMODAL, asks="task:chapter_generation"),
    Kind(weight=12, agent=MULTIMODAL, asks="task:optimization"),
    # The following kinds are occasional failures, and callers that disconnect.
    Kind(weight=5, agent=TEXT, asks="task:planning", script={0: ("529",)}),
    Kind(weight=3, agent=TEXT, asks="task:planning", script={0: ("timeout",)}),
    Kind(weight=3, agent=TEXT, asks="task:planning", script={0: ("503",), 1: ("500",)}),
    Kind(weight=4, agent=TEXT, asks="task:chapter_generation", script={0: ("429", "200")}),
    Kind(weight=1, agent=MULTIMODAL, asks="task:chapter_generation", script={0: ("cut",)}),
    Kind(weight=3, agent=TEXT, asks="task:planning", leaves=True),
    Kind(weight=5, agent=VISION, asks="vision-model", file="image", script={0: ("503",)}),
    Kind(weight=3, agent=TEXT, asks="text-model", script={0: ("context",)}),
    Kind(weight=3, agent=TEXT, asks="gpt-4o-mini", refused="model_not_found"),
    Kind(weight=3, agent=TEXT, asks="task:planning", refused=RATE_EXCEEDED),
    Kind(weight=3, agent=VISION, asks="task:design", refused="invalid_value"),
)
NO_BALANCE = Kind(agent=TEXT, asks="task:planning", script={0: ("quota",)})
NO_BALANCE_COUNT = 8
QUESTION = TextPart("…")
BAD_BODY = translatable("%(param)s must be a string or a list of parts.", param="messages[0].content")


def load_day() -> None:
    """Log requests for the day before the demo was loaded, with the alert that they cause and their use of a budget.

    Do nothing if no demo was loaded, or if that day is older than the log's retention period.
    """
    loaded = _find_loading()
    retention = timedelta(days=read_retention_settings().request_days)
    if loaded is None or loaded.created_at < timezone.now() - retention:
        return
    began = loaded.created_at - OUTAGE_BEGAN
    with _silence_logs():
        entries = _Day(loaded).entries()
        record_condition(build_condition(AlertKind.BALANCE_GONE, EMPTY_ACCOUNT, status=429), began)
        end_alerts({(AlertKind.BALANCE_GONE, EMPTY_ACCOUNT): began + OUTAGE}, {}, began + OUTAGE)
    write(entries)
    _use_budget(entries)


@contextmanager
def _silence_logs() -> Iterator[None]:
    # The simulated failures must not appear in this thread's log output. Other threads continue to log.
    thread = get_ident()
    loggers = [logging.getLogger(name) for name in ("routing_admin.routing", end_alerts.__module__)]

    def is_other(record: logging.LogRecord) -> bool:
        return record.thread != thread

    for logger in loggers:
        logger.addFilter(is_other)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(is_other)


def count_requests() -> int:
    return RequestLog.objects.filter(surface=DEMO).count()


def remove_day() -> None:
    loaded = _find_loading()
    if loaded is not None:
        remove_requests(DEMO, PROJECT)
        alerts = Alert.objects.filter(kind=AlertKind.BALANCE_GONE, subject=EMPTY_ACCOUNT)
        alerts.filter(last_seen_at__lt=loaded.created_at).delete()
        LimitWindow.objects.filter(holder=agent_holder_id(BUDGETED)).delete()


def _find_loading() -> AuditEvent | None:
    return AuditEvent.objects.filter(action__in=("demo.load", "environment.load")).order_by("pk").first()


def _use_budget(entries: Sequence[Entry]) -> None:
    # All requests of the day count towards the current month, so that the demo always shows a nearly exhausted budget.
    row = Agent.objects.filter(agent_id=BUDGETED).first()
    limits = parse_limits(row.limits) if row else None
    if limits is None or (limit := limits.maximums.get(Meter.MONEY_PER_MONTH)) is None:
        return
    own = (cost_columns(entry)[0] for entry in entries if entry.facts.agent == BUDGETED)
    spent = sum(columns["cost_nanos"] or 0 for columns in own if columns["currency"] == limits.currency)
    now = timezone.now()
    window = window_at(PERIODS[Meter.MONEY_PER_MONTH], now, timezone.get_default_timezone())
    order = Order(agent_holder_id(BUDGETED), Meter.MONEY_PER_MONTH, window, limit, committed=min(spent, limit))
    RowLedger().exchange(DEMO, [order], now)
    RowLedger().leave(DEMO)


@dataclass(slots=True)
class _Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class _Day:
    def __init__(self, loaded: AuditEvent) -> None:
        self._until, self._revision = loaded.created_at, loaded.revision
        self._state, self._rng, self._clock = snapshot.current(), Random(DEMO), _Clock()  # noqa: S311
        self._context = local_context(self._clock, lambda: 0.5)
        self._chats = {kind: _chat_with(kind) for kind in ("", "image", "audio", "document")}
        self._plans: dict[tuple[str, str, bool], PlannedRequest] = {}
        self._prepared: dict[tuple[str, str, Any], Prepared | CannotRead] = {}

    def entries(self) -> list[Entry]:
        return [
            self._play(kind, began, request_id)
            for began, kind, request_id in sorted(self._moments(), key=itemgetter(0))
        ]

    def _moments(self) -> list[tuple[datetime, Kind, str]]:
        rng = Random(DEMO)  # noqa: S311  # the same day each time
        hours = [self._until - timedelta(hours=hour) for hour in range(24, 0, -1)]
        weights = [HOURLY[timezone.localtime(hour).hour] for hour in hours]
        kinds = [*KINDS, *rng.choices(KINDS, [kind.weight for kind in KINDS], k=COUNT - len(KINDS))]
        moments = [
            (hour + timedelta(seconds=rng.uniform(0, 3500)), kind)
            for hour, kind in zip(rng.choices(hours, weights, k=COUNT), kinds, strict=True)
        ]
        began, step = self._until - OUTAGE_BEGAN, OUTAGE / NO_BALANCE_COUNT
        moments += [(began + step * at, NO_BALANCE) for at in range(NO_BALANCE_COUNT)]
        return [(began, kind, f"{DEMO}_{rng.getrandbits(64):016x}") for began, kind in moments]

    def _play(self, kind: Kind, began: datetime, request_id: str) -> Entry:
        # Seed the random numbers only with the request's id, so that the request's cost does not depend on the hour at
        # which the demo was loaded.
        rng = self._rng = Random(request_id)  # noqa: S311
        facts = RequestFacts(
            request_id,
            began,
            DEMO,
            agent=kind.agent,
            asked_model=kind.asks,
            labels=AGENT_LABELS[kind.agent],
            revision=self._revision,
        )
        if kind.refused:
            facts.outcome, facts.status, facts.error = kind.refused, *self._refusal(kind, began)
            facts.duration_ms = rng.uniform(1, 4)
            return build_entry(facts)
        planned = self._plan(kind, stream=kind.leaves or bool(kind.script) or rng.random() < 0.5)
        facts.task_type, facts.stream, facts.language = planned.plan.task_type, planned.stream, planned.plan.language
        if not kind.asks.startswith(TASK) and kind.asks != "auto":
            facts.task_type = ""
        return self._run(kind, planned, facts)

    def _refusal(self, kind: Kind, began: datetime) -> tuple[int, str]:
        if kind.refused == RATE_EXCEEDED:
            need = RefusedNeed(who=kind.agent, meter=Meter.REQUESTS_PER_MINUTE, limit=60, left=0, need=1)
            return 429, refusal_sentence(need, began + timedelta(seconds=24), began)
        return (404, UnknownModelError(kind.asks).sentence) if kind.refused == "model_not_found" else (400, BAD_BODY)

    def _plan(self, kind: Kind, *, stream: bool) -> PlannedRequest:
        key = kind.asks, kind.file, stream
        if key not in self._plans:
            named = resolve_model(self._state.configuration, kind.asks)
            # The plan assumes that no provider is unusable, so that missing keys do not matter.
            self._plans[key] = plan_request(
                self._state,
                named.route,
                self._chats[kind.file],
                agent=kind.agent,
                stream=stream,
                service=named.service,
                direct=named.direct,
                unusable={},
            )
        return self._plans[key]

    def _run(self, kind: Kind, planned: PlannedRequest, facts: RequestFacts) -> Entry:
        """Run the request along its chain, and advance the clock to the end of the answer."""
        rng, clock = self._rng, self._clock
        clock.now = facts.began.timestamp()
        run: FallbackRun[Answer] = FallbackRun(planned.plan, self._context, stream=planned.stream)
        prepared: dict[int, Prepared] = {}
        cut: list[Failure] = []

        def call(step: Call) -> Reply[Answer]:
            at, name = step.candidate.index, step.candidate.provider
            ready = self._prepare(planned, step)
            if isinstance(ready, CannotRead):
                return Reply(Failure(Fault.CAPABILITY_MISMATCH, ready.reason.sentence()))
            prepared[at] = ready
            steps = kind.script.get(at) or ("200",)
            outcome = SCRIPTED[steps[min(step.try_number, len(steps)) - 1]]
            cut[:] = [outcome.cut] if outcome.cut and planned.stream else []
            median, _speed = MODEL_SPEEDS.get(name, DEFAULT_SPEED)
            clock.sleep(outcome.seconds if outcome.failure else rng.lognormvariate(math.log(median), 0.4))
            dropped = list_dropped(planned.chat, ready, step)
            return Reply(outcome.failure or Answer("…"), summary(ready.deliveries), dropped)

        chat = planned.chat if planned.chat.has_files else None
        try:
            result = drive(run, call, clock.sleep)
        except RouterError as error:
            facts.outcome, facts.status, facts.error = error.code, error.status, error.message
            facts.duration_ms = run.elapsed_ms()
            return build_entry(facts, error.attempts, prepared, chat)
        first, own_start = run.elapsed_ms(), result.attempts[-1].started_ms
        usage = self._usage(kind)
        _median, speed = MODEL_SPEEDS.get(result.candidate.provider, DEFAULT_SPEED)
        writing = (usage.completion_tokens or 0) / speed * 1000 * (0.4 if cut or kind.leaves else 1)
        facts.duration_ms = first + writing
        failure = cut[0] if cut else None
        attempts = end_stream(result, failure, facts.duration_ms - own_start, planned.plan, self._context)
        if planned.stream:
            facts.first_content_ms = first
        if failure is not None:
            facts.outcome, facts.error = caller_status(failure)[1], failure.message
        elif kind.leaves:
            facts.outcome, facts.status = CANCELLED, ABANDONED_STATUS
        else:
            facts.usage, facts.finish_reason = usage, "stop"
        return build_entry(facts, attempts, prepared, chat)

    def _usage(self, kind: Kind) -> Usage:
        reads = int(self._rng.lognormvariate(math.log(5200), 0.8)) + (1400 if kind.file else 0)
        writes = int(self._rng.lognormvariate(math.log(700), 0.7)) + 1
        cached = int(reads * self._rng.uniform(0.3, 0.8)) if self._rng.random() < 0.3 else None
        return Usage(reads, writes, reads + writes, cached_tokens=cached)

    def _prepare(self, planned: PlannedRequest, call: Call) -> Prepared | CannotRead:
        key = (call.candidate.name, planned.plan.task_type, planned.chat.messages[-1])
        if key not in self._prepared:
            endpoint = without_describing(planned.endpoint(call.candidate.index))
            self._prepared[key] = prepare_for(planned, apply_params(planned.chat, call), endpoint, call)
        return self._prepared[key]


def _chat_with(kind: str) -> ChatRequest:
    file = Artifact.objects.living().filter(kind=kind).order_by("created_at").first() if kind else None
    return ChatRequest((Message(Role.USER, (QUESTION, *((build_file_part(file),) if file else ()))),))
