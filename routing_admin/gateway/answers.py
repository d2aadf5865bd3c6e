"""An admitted call answered, whole or streamed: the chain walked, what it took counted, who answered said."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import replace
from functools import partial

from django.conf import settings

from capabilities.access import Principal
from capabilities.core.services.agents import NO_LABELS, Labels
from capabilities.core.values import value_class
from capabilities.core.wire import Answer
from routing_admin.core.fallback.chain import Attempt, RunResult
from routing_admin.core.fallback.errors import RouterError
from routing_admin.dispatch.descriptions.describing import note_answer
from routing_admin.dispatch.estimates import charge_failures, prices_at, reserve_planned, settle_planned
from routing_admin.dispatch.reasoning_cache import reasoning_cache, turn_of
from routing_admin.dispatch.recorded import headers_of_attempts, record_answer, record_stream
from routing_admin.dispatch.send import Dispatch
from routing_admin.gateway.chat_api import ChatApi, ChatCall
from routing_admin.gateway.errors import (
    GatewayError,
    gateway_error_of,
    gateway_error_of_limit,
)
from routing_admin.gateway.http import HttpCall, HttpReply
from routing_admin.gateway.keep_alive import KeepAlive
from routing_admin.gateway.streaming import AnswerStream
from routing_admin.limits.reservations import LimitReachedError, Reservation
from routing_admin.request_log.recorder import RequestRecorder
from routing_admin.upstream import Stream

STREAM_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


@value_class
class AdmittedCall:
    """A call that is parsed and decided; `principal` makes it, by `api`.

    `name` is its model's in the answer, empty for that of who answers; `labels` say for whom it is made, `hold` is what
    it reserved of limits.
    """

    api: ChatApi
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
        return self.dispatch.planned.endpoint(result.candidate.index).origin


async def enter(hold: Reservation, call: HttpCall, size: int) -> None:
    """Lets the call in as far as its agent's limits say; however it ends, they are told. Raises `GatewayError`."""
    if call.place is not None:
        others = call.place.at_end
        call.place.at_end = hold.close if others is None else partial(_close_all, others, hold.close)
    try:
        await hold.enter(size)
    except LimitReachedError as error:
        raise gateway_error_of_limit(error) from None


def _close_all(*closes: Callable[[], None]) -> None:
    for close in closes:
        close()


async def reserve_tokens(hold: Reservation, admitted: AdmittedCall) -> AdmittedCall:
    """The call, once what it may take is reserved. Raises `GatewayError`."""
    try:
        await reserve_planned(hold, admitted.dispatch.planned)
    except LimitReachedError as error:
        raise gateway_error_of_limit(error) from None
    admitted.dispatch.hold = hold
    return replace(admitted, hold=hold)


async def answer_limited(hold: Reservation, work: Awaitable[HttpReply]) -> HttpReply:
    """The answer, which says what is left of the limits; where there is none, what was reserved is free again."""
    try:
        reply = await work
    except BaseException:
        hold.close()
        raise
    reply.headers.update(hold.headers())
    return reply


async def answer_whole(call: HttpCall, admitted: AdmittedCall, recorder: RequestRecorder) -> HttpReply:
    """Return the reply with the whole answer. Raise `GatewayError` where no candidate gives one."""
    written: list[HttpReply] = []

    def write(result: RunResult[Answer]) -> None:
        origin, name = admitted.origin_of(result), admitted.name_in(result)
        written.append(admitted.api.answer(result.answer, admitted.parsed, name, origin))

    try:
        result = await record_answer(admitted.dispatch, recorder, write)
    except RouterError as error:
        _charge(admitted, error.attempts)
        raise gateway_error_of(error) from None
    _charge(admitted, result.attempts)
    if admitted.parsed.choice is not None:
        admitted.parsed.choice.of.end(result.answer.usage)
    if admitted.hold is not None:
        answer = result.answer
        settle_planned(admitted.hold, admitted.dispatch.planned, result.candidate, answer.usage, answer)
    if result.answer.tool_calls:
        reasoning_cache().keep(admitted.agent, turn_of(result.answer), admitted.origin_of(result))
    await note_answer(admitted.dispatch, result.answer.text, [each.id for each in result.answer.tool_calls])
    reply = written[0]
    _add_route_headers(reply.headers, call, result)
    return reply


async def answer_streamed(call: HttpCall, admitted: AdmittedCall, recorder: RequestRecorder) -> HttpReply:
    """Return the reply that streams the answer, at its first content. Raise `GatewayError` where there is none."""
    if call.keep_alive is not None and admitted.api.keep_alive:
        start_keep_alive(call, call.keep_alive, admitted, recorder)
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
    events = admitted.api.events(admitted.parsed, admitted.name_in(result), admitted.origin_of(result))
    reply = HttpReply(200, {"Content-Type": admitted.api.stream_type, **STREAM_HEADERS})
    stream = AnswerStream(
        result=result,
        dispatch=admitted.dispatch,
        recorder=recorder,
        events=events,
        request_id=call.request_id,
        agent=admitted.agent,
        hold=admitted.hold,
    )
    stream.principal = admitted.principal
    if admitted.parsed.keep is not None:
        stream.at_end = getattr(events, "keep_items", None)
    reply.blocks, reply.is_whole = stream.blocks(), stream.is_whole
    _add_route_headers(reply.headers, call, result)
    return reply


def start_keep_alive(call: HttpCall, keep_alive: KeepAlive, admitted: AdmittedCall, recorder: RequestRecorder) -> None:
    """Begin the answer with comments once the caller has waited as long as the route says."""
    seconds = admitted.dispatch.planned.route.keep_alive_seconds
    if seconds is None:
        seconds = settings.KEEP_ALIVE_SECONDS
    if seconds <= 0:
        return

    def headers() -> Mapping[str, str]:
        id_headers = dict.fromkeys(("x-request-id", admitted.api.id_header or "x-request-id"), call.request_id)
        limits = admitted.hold.headers() if admitted.hold is not None else {}
        return {
            "Content-Type": admitted.api.stream_type,
            **STREAM_HEADERS,
            "x-content-type-options": "nosniff",
            **id_headers,
            **limits,
        }

    def write_error(error: GatewayError) -> bytes:
        alone = replace(admitted.parsed, choice=None)  # it is the only event
        events = admitted.api.events(alone, admitted.name or alone.model, "")
        return events.write_error(error, call.request_id)

    block, left = admitted.api.keep_alive, seconds - recorder.elapsed_ms() / 1000
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
