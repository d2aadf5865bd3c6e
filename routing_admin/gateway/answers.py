"""Answer an admitted call, complete or streamed: run the fallback chain, settle limits, name the answering model."""

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
from routing_admin.dispatch.reasoning_cache import build_answered_turn, reasoning_cache
from routing_admin.dispatch.recorded import headers_of_attempts, record_answer, record_stream
from routing_admin.dispatch.send import Dispatch
from routing_admin.gateway.chat_api import ChatApi, ChatCall
from routing_admin.gateway.errors import (
    GatewayError,
    limit_gateway_error,
    to_gateway_error,
)
from routing_admin.gateway.http import HttpCall, HttpReply
from routing_admin.gateway.keep_alive import KeepAlive
from routing_admin.gateway.streaming import AnswerStream
from routing_admin.limits.reservations import LimitReachedError, Reservation
from routing_admin.request_log.recorder import RequestRecorder
from routing_admin.upstream import Stream

# This header prevents nginx from buffering the stream.
STREAM_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


@value_class
class AdmittedCall:
    """A call that `principal` made to `api`, parsed and planned.

    `name` is the model name in the answer; if it is empty, the answer contains the answering model's name. `labels`
    name the team, project and user for whom the call is made. `reservation` is what the call has reserved of the
    agent's limits.
    """

    api: ChatApi
    dispatch: Dispatch
    parsed: ChatCall
    name: str
    principal: Principal
    labels: Labels = NO_LABELS
    reservation: Reservation | None = None

    @property
    def agent(self) -> str:
        return self.principal.agent

    def name_in(self, result: RunResult[Answer] | RunResult[Stream]) -> str:
        return self.name or result.candidate.model

    def answer_origin(self, result: RunResult[Answer] | RunResult[Stream]) -> str:
        return self.dispatch.planned.endpoint(result.candidate.index).origin


async def enter(reservation: Reservation, call: HttpCall, size: int) -> None:
    """Count the call against request limits until it ends; raise `GatewayError` if a limit is reached."""
    if call.slot is not None:
        # The call's slot closes the reservation, however the call ends.
        callback = call.slot.at_end
        call.slot.at_end = reservation.close if callback is None else partial(_close_all, callback, reservation.close)
    try:
        await reservation.enter(size)
    except LimitReachedError as error:
        raise limit_gateway_error(error) from None


def _close_all(*callbacks: Callable[[], None]) -> None:
    for close in callbacks:
        close()


async def reserve_tokens(reservation: Reservation, admitted: AdmittedCall) -> AdmittedCall:
    """Reserve the tokens that the call may use; raise `GatewayError` if that would exceed a limit.

    Return the call with its reservation.
    """
    try:
        await reserve_planned(reservation, admitted.dispatch.planned)
    except LimitReachedError as error:
        raise limit_gateway_error(error) from None
    admitted.dispatch.reservation = reservation
    return replace(admitted, reservation=reservation)


async def answer_limited(reservation: Reservation, work: Awaitable[HttpReply]) -> HttpReply:
    """Await the reply and add headers with the remaining limits; close the reservation if `work` raises an error."""
    try:
        reply = await work
    except BaseException:
        reservation.close()
        raise
    reply.headers.update(reservation.headers())
    return reply


async def answer_whole(call: HttpCall, admitted: AdmittedCall, recorder: RequestRecorder) -> HttpReply:
    """Return a reply with the complete answer; raise `GatewayError` if no candidate answers."""
    written: list[HttpReply] = []

    def write(result: RunResult[Answer]) -> None:
        origin, name = admitted.answer_origin(result), admitted.name_in(result)
        written.append(admitted.api.answer(result.answer, admitted.parsed, name, origin))

    try:
        result = await record_answer(admitted.dispatch, recorder, write)
    except RouterError as error:
        _charge(admitted, error.attempts)
        raise to_gateway_error(error) from None
    _charge(admitted, result.attempts)
    if admitted.parsed.choice is not None:
        # Several answers may be merged into one body, which then contains their summed usage.
        admitted.parsed.choice.of.end(result.answer.usage)
    if admitted.reservation is not None:
        answer = result.answer
        settle_planned(admitted.reservation, admitted.dispatch.planned, result.candidate, answer.usage, answer)
    if result.answer.tool_calls:
        reasoning_cache().keep(admitted.agent, build_answered_turn(result.answer), admitted.answer_origin(result))
    await note_answer(admitted.dispatch, result.answer.text, [tool_call.id for tool_call in result.answer.tool_calls])
    reply = written[0]
    _add_route_headers(reply.headers, call, result)
    return reply


async def answer_streamed(call: HttpCall, admitted: AdmittedCall, recorder: RequestRecorder) -> HttpReply:
    """Return a streaming reply once it has content; raise `GatewayError` if no candidate returns any content."""
    if call.keep_alive is not None and admitted.api.keep_alive:
        start_keep_alive(call, call.keep_alive, admitted, recorder)
    try:
        result = await record_stream(admitted.dispatch, recorder)
    except RouterError as error:
        _charge(admitted, error.attempts)
        raise to_gateway_error(error) from None
    finally:
        if call.keep_alive is not None:
            await call.keep_alive.stop()
    _charge(admitted, result.attempts)
    if admitted.reservation is not None and admitted.reservation.currencies:
        admitted.reservation.expect(prices_at(admitted.reservation, admitted.dispatch.planned, result.candidate))
    events = admitted.api.events(admitted.parsed, admitted.name_in(result), admitted.answer_origin(result))
    reply = HttpReply(200, {"Content-Type": admitted.api.stream_type, **STREAM_HEADERS})
    stream = AnswerStream(
        result=result,
        dispatch=admitted.dispatch,
        recorder=recorder,
        events=events,
        request_id=call.request_id,
        agent=admitted.agent,
        reservation=admitted.reservation,
    )
    stream.principal = admitted.principal
    if admitted.parsed.keep is not None:
        # Only answers of the Responses API have items that must be stored.
        stream.at_end = getattr(events, "keep_items", None)
    reply.blocks, reply.is_whole = stream.blocks(), stream.is_whole
    _add_route_headers(reply.headers, call, result)
    return reply


def start_keep_alive(call: HttpCall, keep_alive: KeepAlive, admitted: AdmittedCall, recorder: RequestRecorder) -> None:
    """Start the response with keep-alive comments after the delay that the route sets."""
    seconds = admitted.dispatch.planned.route.keep_alive_seconds
    if seconds is None:
        seconds = settings.KEEP_ALIVE_SECONDS
    # A delay of 0 disables keep-alive comments.
    if seconds <= 0:
        return

    def headers() -> Mapping[str, str]:
        id_headers = dict.fromkeys(("x-request-id", admitted.api.id_header or "x-request-id"), call.request_id)
        limits = admitted.reservation.headers() if admitted.reservation is not None else {}
        return {
            "Content-Type": admitted.api.stream_type,
            **STREAM_HEADERS,
            "x-content-type-options": "nosniff",
            **id_headers,
            **limits,
        }

    def write_error(error: GatewayError) -> bytes:
        # The error ends the whole stream, not only one of several answers.
        alone = replace(admitted.parsed, choice=None)
        events = admitted.api.events(alone, admitted.name or alone.model, "")
        return events.write_error(error, call.request_id)

    block, delay = admitted.api.keep_alive, seconds - recorder.elapsed_ms() / 1000
    keep_alive.start(delay, block, headers=headers, begun=recorder.mark_early_begin, write_error=write_error)


def _charge(admitted: AdmittedCall, attempts: tuple[Attempt, ...]) -> None:
    # Failed attempts may also have used tokens that cost money.
    if admitted.reservation is not None:
        charge_failures(admitted.reservation, admitted.dispatch.planned, attempts)


def _add_route_headers(
    headers: MutableMapping[str, str], call: HttpCall, result: RunResult[Answer] | RunResult[Stream]
) -> None:
    headers["x-request-id"] = call.request_id
    headers.update(headers_of_attempts(result.attempts))
