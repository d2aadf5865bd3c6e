"""A call to a model through one of the APIs: admit, parse, decide, walk the chain, answer; whole or streamed.

A call with a known key and without a stored or large file never leaves the event loop; work that needs the database
or files runs in a thread. Until the first real content a start that fails can go to the next candidate. Nothing is sent
before it, so that the status and the `x-routing-*` headers are open, but to a caller that has waited for long
(`keep_alive`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from functools import partial

from django.conf import settings

from artifacts.storage.content import RowStore
from capabilities.access import Principal
from capabilities.acts import Actor
from capabilities.core.permissions import methods_of_call
from capabilities.core.services.agent_limits import AgentLimits
from capabilities.core.services.labels import NO_LABELS, Labels
from capabilities.core.services.limit_holders import LimitHolder
from capabilities.core.values import value_class
from capabilities.core.wire import Answer
from capabilities.fair_slots import requester
from capabilities.json_bodies import is_quick
from routing_admin.configuration import snapshot
from routing_admin.core.fallback.chain import CANCELLED, Attempt, RunResult
from routing_admin.core.fallback.errors import RouterError
from routing_admin.core.planning.allowed import NOT_ALLOWED, ModelNotAllowedError, check_allowed
from routing_admin.core.planning.model_names import NamedRoute, UnknownModelError, task_name
from routing_admin.core.planning.plan import NoRouteError
from routing_admin.dispatch.decisions import decisions_of
from routing_admin.dispatch.describing import note_answer
from routing_admin.dispatch.estimates import charge_failures, prices_at, reserve_planned, settle_planned
from routing_admin.dispatch.generated_media import store_generated
from routing_admin.dispatch.passing import pass_through
from routing_admin.dispatch.plan import plan_request
from routing_admin.dispatch.plan_record import record_plan
from routing_admin.dispatch.recorded import record_answer, record_stream
from routing_admin.dispatch.route_headers import headers_of_attempts
from routing_admin.dispatch.send import Dispatch
from routing_admin.dispatch.turns import turn_memory, turn_of
from routing_admin.gateway.admission import admit_known_caller, check_method, error_of_fault
from routing_admin.gateway.body import is_packed, unpack
from routing_admin.gateway.callers import look_up_caller
from routing_admin.gateway.counts import is_crowded
from routing_admin.gateway.door import ChatCall, Door
from routing_admin.gateway.errors import GatewayError, gateway_error_of, gateway_error_of_limit, reply_of
from routing_admin.gateway.fields import Object
from routing_admin.gateway.http import HttpCall, HttpReply
from routing_admin.gateway.idempotency import HEADER, answer_once
from routing_admin.gateway.keep_alive import KeepAlive
from routing_admin.gateway.labels import labels_of_call
from routing_admin.gateway.media import store_inline
from routing_admin.gateway.streaming import AnswerStream, later_error
from routing_admin.gateway.threads import run_in_own_share, run_in_thread
from routing_admin.limits.gate import LimitReachedError, Reservation, keeper, reservation_of
from routing_admin.limits.labels import list_label_holders
from routing_admin.platform.server.draining import DrainingError
from routing_admin.platform.server.places import OverloadedError, parses, slot
from routing_admin.request_log.recorder import LEFT_STATUS, RequestRecorder, facts_of_fault
from routing_admin.request_log.tracing import tracing
from routing_admin.upstream import Stream

AFFINITY_HEADER = "x-routing-affinity"
"""The caller's own name of a conversation, whose calls stay with one of a provider's keys."""

STREAM_HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


@value_class
class AdmittedCall:
    """A call that is parsed and decided; `principal` makes it, at `door`.

    `name` is its model's in the answer, empty for that of who answers; `labels` say for whom it is made, `hold` is what
    it reserved of limits.
    """

    door: Door
    dispatch: Dispatch
    parsed: ChatCall
    name: str
    principal: Principal
    labels: Labels = NO_LABELS
    hold: Reservation | None = None

    @property
    def agent(self) -> str:
        """Who makes it."""
        return self.principal.agent

    def name_in(self, result: RunResult[Answer] | RunResult[Stream]) -> str:
        """How the answer names its model."""
        return self.name or result.candidate.model

    def origin_of(self, result: RunResult[Answer] | RunResult[Stream]) -> str:
        """The mark of whoever answered."""
        return self.dispatch.planned.receiver(result.candidate.index).origin


async def complete(door: Door, call: HttpCall) -> HttpReply:
    """The reply to a call, errors included; nothing is raised but the caller's leaving."""
    work = partial(_complete, door, call)
    if HEADER in call.headers:
        work = partial(answer_once, call, door, partial(_reply, door, call, work))
    reply = await _reply(door, call, work)
    if door.id_header:
        reply.headers[door.id_header] = call.request_id
    return reply


async def _reply(door: Door, call: HttpCall, work: Callable[[], Awaitable[HttpReply]]) -> HttpReply:
    try:
        check_method(call.method, call.path, methods_of_call(door.path))
        return await work()
    except (DrainingError, OverloadedError) as error:
        refusal = later_error(error)
    except GatewayError as error:
        refusal = error
    except Exception as error:  # the last line of defence of a machine's plane: never an HTML page
        refusal = error_of_fault(error)
    reply = reply_of(refusal, call.request_id, door.error)
    if call.keep_alive is not None and call.keep_alive.has_begun:  # its status has gone out
        reply.status, reply.blocks = 200, _write_once(call.keep_alive.write_error(refusal))
    return reply


async def _write_once(block: bytes) -> AsyncGenerator[bytes, None]:
    yield block


async def _complete(door: Door, call: HttpCall) -> HttpReply:
    """The answer of whichever candidate gives one.

    Raises `GatewayError` when none does or the call is refused, what says that the call comes too early, and whatever
    went wrong in us; the log has it by then.
    """
    recorder = RequestRecorder(call.request_id, door.surface)
    if tracing.writer is not None:
        recorder.add_trace(door.path, call.headers)
    try:
        admitted = await _admit(door, call, recorder)
        work = _answer_streamed if admitted.dispatch.planned.stream else _answer_whole
        if admitted.hold is not None:
            return await _answer_limited(admitted.hold, work(call, admitted, recorder))
        return await work(call, admitted, recorder)
    except asyncio.CancelledError:
        recorder.end(outcome=CANCELLED, status=LEFT_STATUS)
        raise
    except (GatewayError, DrainingError, OverloadedError):
        raise
    except Exception as error:
        recorder.end(**facts_of_fault(error))
        raise


async def _admit(door: Door, call: HttpCall, recorder: RequestRecorder) -> AdmittedCall:
    """The key, the configuration, the request, the plan: from memory, and in a thread what rows and files are read for.

    Raises `GatewayError`, and `OverloadedError` where the agent finds no place; once it is known the log says so.
    """
    principal = admit_known_caller(call.method, call.query, call.headers, door.path)
    if principal is None:
        principal = await look_up_caller(call, door.path)
    recorder.add_facts(agent=principal.agent, key=principal.key)
    requester.set(principal.key_owner)
    hold = reservation_of(principal.holders) if principal.holders else None
    try:
        if call.place is not None:
            await call.place.enter(principal.key_owner)
        packed, size = is_packed(call), len(call.body.data)
        if hold is not None:
            await _enter(hold, call, size)
        is_large = packed or not is_quick(call.body.data)
        body = await _read_large(door, call, principal.key_owner) if is_large else door.read(call)
        state = snapshot.newest.fresh()
        if state is None:
            state = await run_in_thread(call, snapshot.current)
        is_heavy = is_large or is_crowded(body)
        decide = partial(_decide, door, call, principal, state, body, recorder, is_heavy=is_heavy)
        in_thread = is_heavy or door.needs_thread(body, size)
        admitted = await run_in_own_share(call, decide, is_heavy=is_heavy) if in_thread else decide()
        further = list_label_holders(state.configuration, principal.key_owner, admitted.labels)
        if further:
            hold = await _join(hold, call, further)
        return admitted if hold is None else await _reserve_tokens(hold, admitted)
    except BaseException as error:
        if hold is not None:
            hold.close()
        if isinstance(error, GatewayError | OverloadedError | DrainingError):
            recorder.end(outcome=error.code, status=error.status, error=error.message)
        raise


async def _read_large(door: Door, call: HttpCall, name: str) -> Object:
    """The body, unpacked and parsed in a thread when its agent has a slot. Raises `GatewayError`, `OverloadedError`."""
    async with slot(parses(), name):
        if is_packed(call):
            await unpack(call, name)
        return await run_in_thread(call, partial(door.read, call))


async def _enter(hold: Reservation, call: HttpCall, size: int) -> None:
    """Lets the call in as far as its agent's limits say; however it ends, they are told. Raises `GatewayError`."""
    if call.place is not None:
        call.place.at_end = hold.close
    try:
        await hold.enter(size)
    except LimitReachedError as error:
        raise gateway_error_of_limit(error) from None


async def _join(hold: Reservation | None, call: HttpCall, holders: Sequence[LimitHolder]) -> Reservation:
    """What the call holds of limits, those of its labels, too. Raises `GatewayError`."""
    if hold is None:
        hold = Reservation(holders, keeper)
        await _enter(hold, call, 0)
        return hold
    try:
        await hold.join(holders)
    except LimitReachedError as error:
        raise gateway_error_of_limit(error) from None
    return hold


async def _reserve_tokens(hold: Reservation, admitted: AdmittedCall) -> AdmittedCall:
    """The call, once what it may take is reserved. Raises `GatewayError`."""
    try:
        await reserve_planned(hold, admitted.dispatch.planned)
    except LimitReachedError as error:
        raise gateway_error_of_limit(error) from None
    admitted.dispatch.hold = hold
    return replace(admitted, hold=hold)


def _decide(
    door: Door,
    call: HttpCall,
    principal: Principal,
    state: snapshot.Snapshot,
    body: Object,
    recorder: RequestRecorder,
    *,
    is_heavy: bool,
) -> AdmittedCall:
    """The request parsed and planned. Raises `GatewayError`."""
    chat_call = door.parse(body, RowStore(principal.agent).part)
    recorder.add_facts(asked_model=chat_call.model or task_name(chat_call.task_type or ""), stream=chat_call.stream)
    labels = labels_of_call(principal.labels, body)
    if labels is not NO_LABELS:
        recorder.add_facts(labels=labels)
    target = resolve_model(state, chat_call.model, chat_call.task_type, principal.rights)
    actor = Actor("agent", principal.agent, call.address, call.request_id)
    planned = plan_request(
        state,
        target.route,
        turn_memory.complete(principal.agent, chat_call.chat),
        matched=target.matched,
        language=chat_call.language,
        agent=principal.agent,
        stream=chat_call.stream,
        keep=partial(store_inline, actor),
        service=target.service,
        refuses_drops=call.headers.get("x-routing-strict", "").strip().lower() == "true",
        direct=target.direct or chat_call.passing is not None,
        passing=chat_call.passing,
    )
    if chat_call.passing is not None:
        planned = pass_through(planned, chat_call.passing)
    if planned.plan.has_pools:
        planned = planned.with_affinity(call.headers.get(AFFINITY_HEADER, ""), principal.agent)
    record_plan(recorder, planned, target.task_type)
    dispatch = Dispatch(
        planned,
        in_thread=partial(run_in_own_share, call, is_heavy=is_heavy),
        is_heavy=is_heavy,
        keep_media=partial(store_generated, actor),
        request_id=call.request_id,
        caller_headers=call.headers,
    )
    name = chat_call.model if target.stands_in_answers else ""
    return AdmittedCall(door, dispatch, chat_call, name, principal, labels)


def resolve_model(
    state: snapshot.Snapshot, model: str, task_type: str | None, limits: AgentLimits | None = None
) -> NamedRoute:
    """The route that a model's name or a task type means. Raises `GatewayError`, 403 where the limits forbid it."""
    try:
        target = decisions_of(state).resolve(model, task_type)
        if limits is not None:
            check_allowed(limits, state.configuration, target, model or task_name(task_type or ""))
        return target
    except ModelNotAllowedError as error:
        raise GatewayError(403, NOT_ALLOWED, error.sentence, "model") from None
    except UnknownModelError as error:
        raise GatewayError(404, "model_not_found", error.sentence, "model") from None
    except NoRouteError as error:
        raise GatewayError(503, "no_route", error.sentence) from None


async def _answer_limited(hold: Reservation, work: Awaitable[HttpReply]) -> HttpReply:
    """The answer, which says what is left of the limits; where there is none, what was reserved is free again."""
    try:
        reply = await work
    except BaseException:
        hold.close()
        raise
    reply.headers.update(hold.headers())
    return reply


async def _answer_whole(call: HttpCall, admitted: AdmittedCall, recorder: RequestRecorder) -> HttpReply:
    written: list[HttpReply] = []

    def write(result: RunResult[Answer]) -> None:
        origin, name = admitted.origin_of(result), admitted.name_in(result)
        written.append(admitted.door.answer(result.answer, admitted.parsed, name, origin))

    try:
        result = await record_answer(admitted.dispatch, recorder, write)
    except RouterError as error:
        _charge(admitted, error.attempts)
        raise gateway_error_of(error) from None
    _charge(admitted, result.attempts)
    if admitted.hold is not None:
        answer = result.answer
        settle_planned(admitted.hold, admitted.dispatch.planned, result.candidate, answer.usage, answer)
    if result.answer.tool_calls:
        turn_memory.keep(admitted.agent, turn_of(result.answer), admitted.origin_of(result))
    await note_answer(admitted.dispatch, result.answer.text, [each.id for each in result.answer.tool_calls])
    reply = written[0]
    _add_route_headers(reply.headers, call, result)
    return reply


async def _answer_streamed(call: HttpCall, admitted: AdmittedCall, recorder: RequestRecorder) -> HttpReply:
    if call.keep_alive is not None and admitted.door.keep_alive:
        _start_keep_alive(call, call.keep_alive, admitted, recorder)
    try:
        result = await record_stream(admitted.dispatch, recorder)
    except RouterError as error:
        _charge(admitted, error.attempts)
        raise gateway_error_of(error) from None
    finally:
        if call.keep_alive is not None:
            await call.keep_alive.stop()
    _charge(admitted, result.attempts)
    if admitted.hold is not None and admitted.hold.currencies:
        admitted.hold.expect(prices_at(admitted.hold, admitted.dispatch.planned, result.candidate))
    events = admitted.door.events(admitted.parsed, admitted.name_in(result), admitted.origin_of(result))
    reply = HttpReply(200, dict(STREAM_HEADERS))
    stream = AnswerStream(result, admitted.dispatch, recorder, events, call.request_id, admitted.agent, admitted.hold)
    stream.principal = admitted.principal
    reply.blocks, reply.is_whole = stream.blocks(), stream.is_whole
    _add_route_headers(reply.headers, call, result)
    return reply


def _start_keep_alive(call: HttpCall, keep_alive: KeepAlive, admitted: AdmittedCall, recorder: RequestRecorder) -> None:
    seconds = admitted.dispatch.planned.route.keep_alive_seconds
    if seconds is None:
        seconds = settings.KEEP_ALIVE_SECONDS
    if seconds <= 0:
        return

    def headers() -> Mapping[str, str]:
        id_headers = dict.fromkeys(("x-request-id", admitted.door.id_header or "x-request-id"), call.request_id)
        limits = admitted.hold.headers() if admitted.hold is not None else {}
        return {**STREAM_HEADERS, "x-content-type-options": "nosniff", **id_headers, **limits}

    def write_error(error: GatewayError) -> bytes:
        events = admitted.door.events(admitted.parsed, admitted.name or admitted.parsed.model, "")
        return events.write_error(error, call.request_id)

    block, left = admitted.door.keep_alive, seconds - recorder.elapsed_ms() / 1000
    keep_alive.start(left, block, headers=headers, begun=recorder.mark_early_begin, write_error=write_error)


def _charge(admitted: AdmittedCall, attempts: tuple[Attempt, ...]) -> None:
    """What its agent pays beside the answer."""
    if admitted.hold is not None:
        charge_failures(admitted.hold, admitted.dispatch.planned, attempts)


def _add_route_headers(
    headers: MutableMapping[str, str], call: HttpCall, result: RunResult[Answer] | RunResult[Stream]
) -> None:
    """The headers of CONTRACT §6: who answered, after how many attempts, with which files and without what."""
    headers["x-request-id"] = call.request_id
    headers.update(headers_of_attempts(result.attempts))
