"""Simulate a request: it runs like a real one, but with scripted outcomes, a simulated clock and no network.

The route may be stored or a draft. Payloads are prepared by the function that real requests use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from capabilities.core.delivery.adaptation import Adapted, CannotRead, PartDelivery, summary
from capabilities.core.delivery.model_endpoint import ModelEndpoint, Prepared
from capabilities.core.delivery.prefix import describe_prediction, predict_break
from capabilities.core.message import Blob, ChatRequest, Converted, ConvertTo, FilePart, PageImages, Text
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Answer, Failure, Fault
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.core.configuration.specs import RouteSpec
from routing_admin.core.fallback.candidate_run import CandidateRun
from routing_admin.core.fallback.chain import OK, Attempt, Call, PlannedCandidate, Reply, RunResult, Timeouts, cut_short
from routing_admin.core.fallback.context import local_context
from routing_admin.core.fallback.errors import RouterError
from routing_admin.core.fallback.memory import RefusalMemory
from routing_admin.core.fallback.policy import caller_status
from routing_admin.core.fallback.run import FallbackRun
from routing_admin.core.fallback.scripts import SCRIPTED, Script, drive
from routing_admin.core.planning.params import apply_params
from routing_admin.dispatch.descriptions.cache import DescriptionCache
from routing_admin.dispatch.plan import PlannedRequest, list_dropped, plan_request, prepare_for
from routing_admin.dispatch.send import process_run_context

NOT_REACHED = "not_reached"


@dataclass(frozen=True, slots=True)
class Stop:
    """A candidate in a simulation, with its payload and its result.

    Times are in milliseconds of the simulated clock. `payload` is the request body with `<N bytes>` instead of file
    data; it is None if the request cannot be prepared for the candidate. `wire` is the protocol, `url` the target,
    `bytes` the length of the body. `attempt` is None if the run did not reach the candidate. `prefix` says how another
    such file would change the prompt of the next turn; without files it is empty.
    """

    candidate: PlannedCandidate
    outcome: str
    attempt: Attempt | None = None
    payload: Any = None
    deliveries: tuple[PartDelivery, ...] = ()
    wire: str = ""
    url: str = ""
    bytes: int = 0
    reason: str = ""
    prefix: str = ""

    @property
    def waits(self) -> tuple[float, ...]:
        return self.attempt.waits if self.attempt else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """The result of a simulation: all candidates of the chain, and the response to the caller."""

    planned: PlannedRequest
    stops: tuple[Stop, ...]
    status: int
    code: str
    message: str
    answered_by: PlannedCandidate | None = None
    duration_ms: float = 0.0

    @property
    def ok(self) -> bool:
        return self.code == OK


@dataclass(slots=True)
class _Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@dataclass(slots=True)
class _Simulation:
    planned: PlannedRequest
    script: Script
    memory: RefusalMemory
    clock: _Clock
    prepared: dict[int, Prepared] = field(default_factory=dict)
    cut: Failure | None = None
    descriptions: DescriptionCache = field(init=False)

    def __post_init__(self) -> None:
        self.descriptions = DescriptionCache(self.planned)

    def call(self, call: Call) -> Reply[Answer]:
        index = call.candidate.index
        prepared = self.prepare(index, call)
        if isinstance(prepared, CannotRead):
            return Reply(Failure(Fault.CAPABILITY_MISMATCH, prepared.reason.sentence()))
        self.prepared[index] = prepared
        steps = self.script.get(index) or ("200",)
        step = SCRIPTED[steps[min(call.try_number, len(steps)) - 1]]
        self.clock.sleep(min(step.seconds, call.timeouts.first_content))
        self.cut = step.cut if self.planned.stream else None
        outcome = step.failure or Answer(f"{call.candidate.name} answers here.")
        dropped = list_dropped(self.planned.chat, prepared, call)
        return Reply(outcome, summary(prepared.deliveries), dropped)

    def prepare(self, index: int, call: Call) -> Prepared | CannotRead:
        endpoint = self.planned.endpoint(index)
        return prepare_for(
            self.descriptions.plan_for(endpoint.reader), apply_params(self.planned.chat, call), endpoint, call
        )


def simulate(
    state: Snapshot,
    route: RouteSpec,
    chat: ChatRequest,
    script: Script | None = None,
    *,
    language: str | None = None,
    stream: bool = False,
    agent: str | None = None,
    assume_usable: bool = False,
    memory: RefusalMemory | None = None,
) -> Simulated:
    """Simulate a request along a route; raise `KeyError` for a scripted outcome that is not in `SCRIPTED`.

    `assume_usable` ignores missing keys and forbidden origins, so that a chain can be tried before its keys are set.
    `memory` contains known refusals and defaults to this process's; it is copied and not changed.
    """
    unusable: Mapping[str, Any] | None = {} if assume_usable else None
    planned = plan_request(state, route, chat, language=language, agent=agent, stream=stream, unusable=unusable)
    clock = _Clock()
    memory_copy = (process_run_context().memory if memory is None else memory).copy(clock)
    play = _Simulation(planned, _check_script(script or {}), memory_copy, clock)
    # Cooldowns have no jitter and retries have average delays, so that a simulation always has the same result.
    run_context = replace(local_context(clock, lambda: 0.0, memory_copy), random=lambda: 0.5)
    run: FallbackRun[Answer] = FallbackRun(planned.plan, run_context, stream=stream)
    try:
        done = drive(run, play.call, play.clock.sleep)
    except RouterError as error:
        stops = _stops(play, error.attempts)
        return Simulated(
            planned=planned,
            stops=stops,
            status=error.status,
            code=error.code,
            message=error.message,
            duration_ms=play.clock.now * 1000,
        )
    return _from_answer(play, done)


def _check_script(script: Script) -> Script:
    for steps in script.values():
        for step in steps:
            SCRIPTED[step]
    return script


def _from_answer(play: _Simulation, result: RunResult[Answer]) -> Simulated:
    took = play.clock.now * 1000
    if play.cut is None:
        stops = _stops(play, result.attempts)
        return Simulated(
            planned=play.planned,
            stops=stops,
            status=200,
            code=OK,
            message=result.answer.text,
            answered_by=result.candidate,
            duration_ms=took,
        )
    attempts = (*result.attempts[:-1], cut_short(result.attempts[-1], play.cut, result.attempts[-1].duration_ms))
    code = caller_status(play.cut)[1]
    return Simulated(
        planned=play.planned,
        stops=_stops(play, attempts),
        status=200,
        code=code,
        message=play.cut.message,
        answered_by=result.candidate,
        duration_ms=took,
    )


def _stops(play: _Simulation, attempts: Sequence[Attempt]) -> tuple[Stop, ...]:
    return tuple(
        _stop(play, candidate, attempts[index] if index < len(attempts) else None)
        for index, candidate in enumerate(play.planned.plan.candidates)
    )


def _stop(play: _Simulation, candidate: PlannedCandidate, attempt: Attempt | None) -> Stop:
    outcome = attempt.outcome if attempt else NOT_REACHED
    reason = (attempt.error if attempt else None) or candidate.skip_detail
    if play.planned.state.configuration.provider(candidate.provider) is None:
        return Stop(candidate, outcome, attempt, reason=reason)
    index = candidate.index
    # For a candidate that was not called, show the payload that its first call would send.
    candidate_run = CandidateRun.from_memory(play.memory, candidate, play.clock(), retries=0)
    prepared = play.prepared.get(index) or play.prepare(index, candidate_run.call(Timeouts()))
    endpoint = play.planned.endpoint(index)
    if isinstance(prepared, CannotRead):
        refusal = reason or prepared.reason.sentence()
        return Stop(candidate, outcome, attempt, None, (prepared.delivery,), endpoint.protocol.name, reason=refusal)
    request = prepared.request
    return Stop(
        *(candidate, outcome, attempt, request.elide(), prepared.deliveries, endpoint.protocol.name),
        request.url,
        request.content_length,
        reason,
        _predict_next_turn(play.descriptions.plan_for(endpoint.reader), prepared, endpoint)
        if prepared.deliveries
        else "",
    )


def _predict_next_turn(planned: PlannedRequest, prepared: Prepared, endpoint: ModelEndpoint) -> str:
    adapted = Adapted(prepared.chat, prepared.deliveries)
    return describe_prediction(predict_break(planned.chat, adapted, endpoint.reader, planned.style))


# Placeholder files: they have a given kind and size, but no real content.

TYPES: Mapping[Kind, tuple[str, str]] = {
    Kind.IMAGE: ("image/png", "png"),
    Kind.AUDIO: ("audio/mpeg", "mp3"),
    Kind.VIDEO: ("video/mp4", "mp4"),
    Kind.DOCUMENT: ("application/pdf", "pdf"),
    Kind.TEXT: ("text/plain", "txt"),
    Kind.OTHER: ("application/zip", "zip"),
}
"""MIME type and file extension for each kind of file."""
FILLER_TEXTS = "lorem ipsum "
BYTES_PER_LETTER = 20
"""Bytes in a document file per character of its text."""
BLOCK = 65_536


@dataclass(frozen=True, slots=True)
class PlaceholderContent:
    """Content of a given length. It consists of zeros, with filler text for kinds of files that have text."""

    kind: Kind
    size: int

    def blob(self) -> Blob:
        return Blob(self.size, lambda: _zeros(self.size))

    def text(self) -> Text | None:
        """Return as much text as a file of this kind usually contains, or None if it contains no text."""
        if self.kind is Kind.TEXT:
            return Text(_filler_text(self.size), "utf-8")
        if self.kind is Kind.DOCUMENT:
            return Text(_filler_text(self.size // BYTES_PER_LETTER), "pdf")
        return None

    def convert(self, target: ConvertTo) -> Converted | None:
        if self.kind is not Kind.IMAGE:
            return None
        size = min(self.size, target.max_bytes or self.size)
        return Converted(Blob(size, lambda: _zeros(size)), target.mime_types[0])

    def draw(self, target: ConvertTo, count: int) -> PageImages | None:
        return None


def build_placeholder(kind: Kind, size: int, number: int = 1) -> FilePart:
    """Return a placeholder file; `number` distinguishes several files of the same kind."""
    mime_type, extension = TYPES[kind]
    name = f"stand-in-{number}.{extension}"
    return FilePart(kind, mime_type, name, size, content=PlaceholderContent(kind, size))


def _zeros(size: int) -> Iterator[bytes]:
    for start in range(0, size, BLOCK):
        yield bytes(min(BLOCK, size - start))


def _filler_text(letters: int) -> str:
    return (FILLER_TEXTS * (letters // len(FILLER_TEXTS) + 1))[:letters]
