"""A planned request and what each candidate gets of it. Files it gets as text are stored first, to have names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from capabilities.core.delivery.adaptation import Adapted, CannotRead, PartDelivery, TextStyle, adapt, text_style_for
from capabilities.core.delivery.decision import Outcome
from capabilities.core.delivery.model_description import without_describer
from capabilities.core.delivery.model_endpoint import ModelEndpoint, Prepared, prepare, rename_limit
from capabilities.core.delivery.reader import ContentPolicy
from capabilities.core.message import ChatRequest, FilePart, UnreadableError
from capabilities.core.protocols.parameters import brief_names
from capabilities.core.translatable import Translatable, translatable
from capabilities.core.values import value_class
from capabilities.core.wire import WireProtocol
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.core.configuration.specs import REFUSE, SKIP, RouteSpec, ServiceSpec
from routing_admin.core.fallback.chain import Call, Plan, PlannedCandidate, SkipReason, Timeouts
from routing_admin.core.planning.language import inject_directive
from routing_admin.core.planning.params import Params, apply_params, list_dropped_params
from routing_admin.core.planning.plan import RoutingQuery, Unusable, opening_of, plan_route
from routing_admin.dispatch.decisions import decisions_of
from routing_admin.dispatch.model_endpoints import readers_of, without_describing
from routing_admin.request_log.recorder import RequestRecorder

# Passing by the candidates that a request is too long for, where its route says so and another candidate takes it.


def pass_overflowed_by(
    plan: Plan, chat: ChatRequest, words: TextStyle, endpoint: Callable[[int], ModelEndpoint]
) -> Plan:
    """The plan without the candidates that the request does not fit, each of which says why.

    An estimate refuses nobody: where it fits none, the plan stays as it is, and the models judge for themselves.
    """
    called = [each for each in plan.candidates if each.skip is None]
    obstacles = {each.index: _find_obstacle(each, chat, words, endpoint(each.index)) for each in called}
    if all(obstacles.values()):
        return plan
    candidates = tuple(_judge_overflow(each, obstacles.get(each.index)) for each in plan.candidates)
    return replace(plan, candidates=candidates)


def _find_obstacle(
    candidate: PlannedCandidate, chat: ChatRequest, words: TextStyle, to: ModelEndpoint
) -> Translatable | None:
    adapted = adapt(apply_params(chat, Call(candidate, 1, Timeouts())), without_describer(to.reader), words)
    return to.tokens.obstacle(adapted, to.target.model) if isinstance(adapted, Adapted) else None


def _judge_overflow(candidate: PlannedCandidate, obstacle: Translatable | None) -> PlannedCandidate:
    return candidate if obstacle is None else replace(candidate, skip=SkipReason.TOO_LONG, skip_detail=obstacle)


WOULD_DROP = translatable("It would leave out %(names)s.")
"""Why a candidate is passed by where nothing may be left out."""

Keep = Callable[[FilePart], FilePart]
"""Stores media that came inside a request, so that its description can carry a reference; gives the part with it."""


@value_class
class PlannedRequest:
    """A request that is decided and not yet sent; `chat` is canonical, its language directive in place.

    `passing` reads and writes in place of the candidates' own protocols, where the call is not a chat's. `agent` asks.
    """

    state: Snapshot
    route: RouteSpec
    plan: Plan
    chat: ChatRequest
    words: TextStyle
    stream: bool = False
    keep: Keep | None = None
    service: ServiceSpec | None = None
    passing: WireProtocol | None = None
    agent: str = ""

    def proxy(self, provider: str) -> str:
        """The provider's proxy setting."""
        found = self.state.configuration.provider(provider)
        return found.proxy if found else "default"

    def endpoint(self, index: int) -> ModelEndpoint:
        """Who the candidate at that place of the chain is. Raises `LookupError` when its provider is not there."""
        found = decisions_of(self.state).endpoint(self.route, self.plan.candidates[index], self.service)
        return found if self.passing is None else replace(found, protocol=self.passing)

    def with_affinity(self, word: str, agent: str) -> PlannedRequest:
        """The request, asked with one key as long as its conversation goes on: by its agent's `word` for that, else by
        how it begins.
        """
        opening = "" if self.plan.verbatim else opening_of(self.chat)  # what passes through is no conversation
        name = f"{agent} {word}" if word else opening
        return replace(self, plan=replace(self.plan, affinity=name))


def plan_request(
    state: Snapshot,
    route: RouteSpec,
    chat: ChatRequest,
    *,
    matched: bool = True,
    language: str | None = None,
    agent: str | None = None,
    stream: bool = False,
    keep: Keep | None = None,
    unusable: Mapping[str, Unusable] | None = None,
    service: ServiceSpec | None = None,
    direct: bool = False,
    refuses_drops: bool = False,
    passing: WireProtocol | None = None,
) -> PlannedRequest:
    """The plan of a request along a route, which may be a draft; nothing is called.

    `agent` asks, so it is never named as another reader. `unusable` replaces what the keys say, for simulations.
    `service` is the one that was asked for by name, where several share its provider and model; `direct` says that the
    request names a model and no route. `refuses_drops` passes candidates by that would leave something out. With
    `passing` nothing is decided that only a chat's content decides.
    """
    asked = RoutingQuery(route.task_type, language, Params(chat.temperature, chat.max_tokens), direct)
    decisions = decisions_of(state)
    plan_with = partial(plan_route, state.configuration, route, asked, matched=matched, pools=decisions.pools)
    plan = decisions.plan(route, asked, matched=matched) if unusable is None else plan_with(unusable=unusable)
    words = text_style_for(chat, plan.language, partial(readers_of, state, but=agent, only_configured=True))
    led = inject_directive(chat, plan.directive)
    planned = PlannedRequest(state, route, plan, led, words, stream, keep, service, passing, agent or "")
    if passing is not None:
        return planned
    if chat.has_files and decisions.can_refuse_files(route):
        known = decisions.unusable if unusable is None else unusable
        planned = replace(planned, plan=plan_with(unusable=known, cannot_read=partial(_cannot_read, planned)))
    if route.on_overflow == SKIP:
        planned = replace(planned, plan=pass_overflowed_by(planned.plan, planned.chat, words, planned.endpoint))
    return _pass_droppers_by(planned) if refuses_drops or route.on_drop == REFUSE else planned


def _pass_droppers_by(planned: PlannedRequest) -> PlannedRequest:
    """The plan without the candidates that would leave something out, each of which says what."""
    candidates = tuple(_judge(planned, candidate) for candidate in planned.plan.candidates)
    return replace(planned, plan=replace(planned.plan, candidates=candidates, refuses_drops=True))


def _judge(planned: PlannedRequest, candidate: PlannedCandidate) -> PlannedCandidate:
    if candidate.skip is not None:
        return candidate
    chat = apply_params(planned.chat, Call(candidate, 1, Timeouts()))
    to = without_describing(planned.endpoint(candidate.index))
    prepared = prepare(chat, to, planned.words, stream=planned.stream)
    names = () if isinstance(prepared, CannotRead) else prepared.request.dropped_params
    if not names:
        return candidate
    detail = translatable(WOULD_DROP, names=tuple(brief_names(names)))
    return replace(candidate, skip=SkipReason.WOULD_DROP, skip_detail=detail, skip_param=names[0])


def _cannot_read(planned: PlannedRequest, provider: str, model: str) -> str | None:
    """Why a model that takes files natively or not at all is passed by; None where it is not (policy `native_only`)."""
    index = next(
        at for at, each in enumerate(planned.plan.candidates) if (each.provider, each.model) == (provider, model)
    )
    if planned.plan.candidates[index].skip is not None:
        return None
    reader = planned.endpoint(index).reader
    if ContentPolicy.NATIVE_ONLY not in reader.policies:
        return None
    adapted = adapt(planned.chat, reader, planned.words)
    return adapted.reason.sentence() if isinstance(adapted, CannotRead) else None


# What was decided about a request, as its log tells it.


def record_plan(recorder: RequestRecorder, planned: PlannedRequest, task_type: str) -> None:
    """Tells the log what was decided; the words of the request only where they are recorded."""
    recorder.add_plan(
        planned.plan,
        task_type=task_type,
        stream=planned.stream,
        revision=planned.state.revision,
        words=planned.chat if planned.state.record_bodies else None,
        chat=planned.chat,
    )


def prepare_for(planned: PlannedRequest, chat: ChatRequest, to: ModelEndpoint, call: Call) -> Prepared | CannotRead:
    """The request as this candidate gets it; media that it gets as words is stored first, so that they name it."""
    making = partial(
        prepare,
        to=rename_limit(to, call.limit_name),
        words=planned.words,
        stream=planned.stream,
        without_capabilities=call.without_capabilities,
    )
    prepared = making(chat)
    if isinstance(prepared, CannotRead) or planned.keep is None:
        return prepared
    nameless = [each for each in prepared.deliveries if _needs_name(each)]
    return making(_keep_files(chat, nameless, planned.keep)) if nameless else prepared


def list_dropped(chat: ChatRequest, prepared: Prepared, call: Call) -> tuple[str, ...]:
    """What a request says and this call does not: what its protocol has no place for, and what the model refused."""
    names = prepared.request.dropped_params + list_dropped_params(chat, call)
    return brief_names(names) if names else names


def _needs_name(delivery: PartDelivery) -> bool:
    """Whether words, or a part of the file, stand for bytes that nobody could fetch."""
    if delivery.file.artifact_id or delivery.file.content is None or delivery.file.unreadable:
        return False
    is_cut = delivery.delivery.loss is not None
    return delivery.delivery.outcome in (Outcome.DESCRIBED, Outcome.EXTRACTED) or is_cut


def _keep_files(chat: ChatRequest, nameless: list[PartDelivery], keep: Keep) -> ChatRequest:
    places = {(each.message, each.part): keep(each.file) for each in nameless}
    messages = tuple(
        replace(message, parts=tuple(places.get((at, place), part) for place, part in enumerate(message.parts)))
        for at, message in enumerate(chat.messages)
    )
    return replace(chat, messages=messages)


def mark_unreadable(chat: ChatRequest) -> ChatRequest:
    """The request with every file whose bytes cannot be read marked so."""
    messages = tuple(
        replace(
            message, parts=tuple(_mark_file(part) if isinstance(part, FilePart) else part for part in message.parts)
        )
        for message in chat.messages
    )
    return replace(chat, messages=messages)


def _mark_file(file: FilePart) -> FilePart:
    try:
        for _ in file.content.blob().blocks() if file.content else ():
            pass
    except UnreadableError as error:
        return replace(file, unreadable=error.reason)
    return file
