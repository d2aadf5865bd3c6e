"""Handle a chat call: authenticate, parse, plan, run the fallback chain, and return a complete or streamed answer.

A call with a cached key and without stored or large files stays on the event loop. Work that needs the database or
files runs in a thread. If a candidate fails before its first content, the next one is called. Nothing is sent before
that content, so that the status and the `x-routing-*` headers can still be set. Exceptions are calls that have already
taken a long time (`keep_alive`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import orjson

from artifacts.storage.content import RowStore
from capabilities.access import Principal
from capabilities.actors import Actor
from capabilities.core.permissions import call_methods
from capabilities.core.services.agent_limits import AgentLimits
from capabilities.core.services.agents import NO_LABELS, LabelKind, Labels, clean_label
from capabilities.core.services.limit_holders import LimitHolder
from capabilities.core.translatable import Translatable, translatable
from capabilities.core.wire import Fault
from capabilities.fair_slots import requester
from capabilities.json_bodies import is_quick
from routing_admin.configuration import snapshot
from routing_admin.core.fallback.chain import CANCELLED
from routing_admin.core.fallback.table import TABLE
from routing_admin.core.planning.model_names import (
    NOT_ALLOWED,
    ModelNotAllowedError,
    NamedRoute,
    UnknownModelError,
    check_allowed,
    task_name,
)
from routing_admin.core.planning.plan import NoRouteError
from routing_admin.dispatch.decisions import cached_decisions
from routing_admin.dispatch.generated_media import store_generated
from routing_admin.dispatch.plan import plan_request, record_plan
from routing_admin.dispatch.reasoning_cache import reasoning_cache
from routing_admin.dispatch.send import Dispatch, pass_through
from routing_admin.gateway.admission import admit_known_caller, check_method, fault_error
from routing_admin.gateway.answers import (
    AdmittedCall,
    answer_limited,
    answer_streamed,
    answer_whole,
    enter,
    reserve_tokens,
)
from routing_admin.gateway.authentication import look_up_caller
from routing_admin.gateway.body import is_packed, unpack
from routing_admin.gateway.chat_api import ChatApi
from routing_admin.gateway.choices import answer_several
from routing_admin.gateway.counts import is_crowded
from routing_admin.gateway.errors import (
    BadRequestError,
    GatewayError,
    error_reply,
    limit_gateway_error,
)
from routing_admin.gateway.fields import Object
from routing_admin.gateway.http import HttpCall, HttpReply
from routing_admin.gateway.idempotency import HEADER, answer_once
from routing_admin.gateway.media import store_inline
from routing_admin.gateway.streaming import retriable_error
from routing_admin.gateway.threads import run_in_own_share, run_in_thread
from routing_admin.limits.reservations import LimitReachedError, Reservation, keeper, make_reservation
from routing_admin.limits.rows import list_label_holders
from routing_admin.platform.server.draining import DrainingError
from routing_admin.platform.server.fair_semaphore import OverloadedError, parses, slot
from routing_admin.request_log.kept_answers import kept_answers
from routing_admin.request_log.recorder import ABANDONED_STATUS, RequestRecorder, failure_facts
from routing_admin.request_log.tracing import tracing

# Labels in a call's body: OpenAI's `user` and `metadata`, Anthropic's `user_id`, Gemini's `labels`. They may contain
# anything, so they are truncated, treated as text, and used only if the key has no such label.

SESSION = "_session_"
"""Separator in Claude Code's `user_id`, before the part that identifies the session."""
PERSON_FIELDS = ("account_uuid", "device_id")
"""Fields that identify the user in newer versions of Claude Code's `user_id`, which are JSON objects."""


def call_labels(key: Labels, body: Object) -> Labels:
    in_body = read_labels(body)
    return key if in_body is NO_LABELS else in_body if key is NO_LABELS else key.with_fallback(in_body)


def read_labels(body: Object) -> Labels:
    """Return the labels in a body; if there are none, return the object `NO_LABELS`, so that callers can use `is`."""
    user, metadata = body.get("safety_identifier") or body.get("user"), body.get("metadata") or body.get("labels")
    if user is None and metadata is None:
        return NO_LABELS
    fields: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
    labels = Labels(
        clean_label(LabelKind.TEAM, fields.get("team")),
        clean_label(LabelKind.PROJECT, fields.get("project")),
        clean_label(LabelKind.USER, user or fields.get("user") or _person(fields.get("user_id"))),
    )
    return NO_LABELS if labels == NO_LABELS else labels


def _person(user_id: Any) -> Any:
    # Drop the part that identifies the session, so that each user has one label.
    if not isinstance(user_id, str):
        return None
    if user_id.startswith("{") and len(user_id) < 2000:
        try:
            identity = orjson.loads(user_id)
        except orjson.JSONDecodeError:
            return user_id
        return next((identity[name] for name in PERSON_FIELDS if identity.get(name)), user_id)
    return user_id.partition(SESSION)[0] or user_id


AFFINITY_HEADER = "x-routing-affinity"
"""Header that a caller uses to name its conversation. All calls of a conversation use the same provider key."""

BLOCKED = TABLE[Fault.CONTENT_POLICY].code
ONE_ANSWER = translatable("%(param)s must be 1: each request gets one answer, unless its route allows more (allowN).")


async def complete(api: ChatApi, call: HttpCall) -> HttpReply:
    """Return the reply to a call, which may be an error; raise an exception only if the caller disconnects."""
    work = partial(_complete, api, call)
    if HEADER in call.headers:
        work = partial(answer_once, call, api, partial(_reply, api, call, work))
    reply = await _reply(api, call, work)
    if api.id_header:
        reply.headers[api.id_header] = call.request_id
    return reply


async def _reply(api: ChatApi, call: HttpCall, work: Callable[[], Awaitable[HttpReply]]) -> HttpReply:
    try:
        check_method(call.method, call.path, call_methods(api.path))
        return await work()
    except (DrainingError, OverloadedError) as error:
        refusal = retriable_error(error)
    except GatewayError as error:
        refusal = error
    except Exception as error:  # API clients must never receive an HTML error page.
        refusal = fault_error(error)
    reply = error_reply(refusal, call.request_id, api.error)
    # Gemini reports a blocked prompt as a 200 response without candidates.
    if api.blocked is not None and refusal.code == BLOCKED:
        reply.headers["Content-Type"], reply.body = api.blocked(refusal)
        reply.status = 200
    # The status has already been sent, so the error becomes the stream's content.
    if call.keep_alive is not None and call.keep_alive.has_begun:
        reply.status, reply.blocks = 200, _write_once(call.keep_alive.write_error(refusal))
    return reply


async def _write_once(block: bytes) -> AsyncGenerator[bytes, None]:
    yield block


async def _complete(api: ChatApi, call: HttpCall) -> HttpReply:
    recorder = RequestRecorder(call.request_id, api.surface)
    if tracing().writer is not None:
        recorder.add_trace(api.path, call.headers)
    try:
        admitted = await _admit(api, call, recorder)
        work = answer_streamed if admitted.dispatch.planned.stream else answer_whole
        if admitted.parsed.count > 1:
            work = answer_several
        if admitted.reservation is not None:
            return await answer_limited(admitted.reservation, work(call, admitted, recorder))
        return await work(call, admitted, recorder)
    except asyncio.CancelledError:
        # The caller disconnected, or the server is shutting down.
        recorder.end(outcome=CANCELLED, status=ABANDONED_STATUS)
        raise
    except (GatewayError, DrainingError, OverloadedError):
        raise
    except Exception as error:
        recorder.end(**failure_facts(error))
        raise


async def _admit(api: ChatApi, call: HttpCall, recorder: RequestRecorder) -> AdmittedCall:
    # Most calls need only what is in memory. A call that needs the database or files runs in a thread.
    principal = admit_known_caller(call.method, call.query, call.headers, api.path)
    if principal is None:
        principal = await look_up_caller(call, api.path)
    recorder.add_facts(agent=principal.agent, key=principal.key)
    # Slots for heavy work and for the extraction process are divided fairly between agents, which this name identifies.
    requester.set(principal.key_owner)
    reservation = make_reservation(principal.holders) if principal.holders else None
    try:
        if call.slot is not None:
            await call.slot.enter(principal.key_owner)
        packed, size = is_packed(call), len(call.body.data)
        if reservation is not None:
            await enter(reservation, call, size)
        is_large = packed or not is_quick(call.body.data)
        body = await _read_large(api, call, principal.key_owner) if is_large else api.read(call)
        if api.resolve is not None:
            body = await api.resolve(call, principal.agent, body)
        state = snapshot.newest().fresh()
        if state is None:
            state = await run_in_thread(call, snapshot.current)
        is_heavy = is_large or is_crowded(body)
        decide = partial(_decide, api, call, principal, state, body, recorder, is_heavy=is_heavy)
        in_thread = is_heavy or api.needs_thread(body, size)
        admitted = await run_in_own_share(call, decide, is_heavy=is_heavy) if in_thread else decide()
        # The labels are known only after parsing, so the limits on these labels are added here.
        label_holders = list_label_holders(state.configuration, principal.key_owner, admitted.labels)
        if label_holders:
            reservation = await _join(reservation, call, label_holders)
        return admitted if reservation is None else await reserve_tokens(reservation, admitted)
    except BaseException as error:
        if reservation is not None:
            reservation.close()
        # The agent is known at this point, so log the refused call under its name.
        if isinstance(error, GatewayError | OverloadedError | DrainingError):
            recorder.end(outcome=error.code, status=error.status, error=error.message)
        raise


async def _read_large(api: ChatApi, call: HttpCall, name: str) -> Object:
    # Parsing a large body takes a long time, so it requires a slot for heavy work.
    async with slot(parses(), name):
        if is_packed(call):
            await unpack(call, name)
        return await run_in_thread(call, partial(api.read, call))


async def _join(reservation: Reservation | None, call: HttpCall, holders: Sequence[LimitHolder]) -> Reservation:
    if reservation is None:
        reservation = Reservation(holders, keeper())
        await enter(reservation, call, 0)
        return reservation
    try:
        await reservation.join(holders)
    except LimitReachedError as error:
        raise limit_gateway_error(error) from None
    return reservation


def _decide(
    api: ChatApi,
    call: HttpCall,
    principal: Principal,
    state: snapshot.Snapshot,
    body: Object,
    recorder: RequestRecorder,
    *,
    is_heavy: bool,
) -> AdmittedCall:
    chat_call = api.parse(body, RowStore(principal.agent).part)
    if chat_call.is_stored:
        chat_call = replace(chat_call, keep=partial(kept_answers().keep, principal.agent, chat_call.turn), turn=None)
    recorder.add_facts(asked_model=chat_call.model or task_name(chat_call.task_type or ""), stream=chat_call.stream)
    labels = call_labels(principal.labels, body)
    if labels is not NO_LABELS:
        recorder.add_facts(labels=labels)
    target = resolve_model(state, chat_call.model, chat_call.task_type, principal.rights)
    if chat_call.count > 1 and not target.route.allow_n:
        # Each answer is a paid call, so the route must allow several answers.
        sentence = Translatable(ONE_ANSWER.template, {"param": api.count_field})
        raise BadRequestError(sentence, api.count_field, "unsupported_value")
    actor = Actor("agent", principal.agent, call.address, call.request_id)
    planned = plan_request(
        state,
        target.route,
        reasoning_cache().complete(principal.agent, chat_call.chat),
        matched=target.matched,
        language=chat_call.language,
        agent=principal.agent,
        stream=chat_call.stream,
        keep=partial(store_inline, actor),
        service=target.service,
        # If the caller does not allow fields to be dropped, use only candidates that support every field.
        refuses_drops=call.headers.get("x-routing-strict", "").strip().lower() == "true",
        direct=target.direct or chat_call.passing is not None,
        passing=chat_call.passing,
    )
    if chat_call.passing is not None:
        planned = pass_through(planned, chat_call.passing)
    if planned.plan.has_pools:
        # The calls of a conversation use the same provider key, whose prompt cache contains its earlier turns.
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
    name = chat_call.model if target.keeps_requested_name else ""
    return AdmittedCall(api, dispatch, chat_call, name, principal, labels)


def resolve_model(
    state: snapshot.Snapshot, model: str, task_type: str | None, limits: AgentLimits | None = None
) -> NamedRoute:
    """Return the route for a model name or task type.

    Raise `GatewayError`, with status 403 if the limits forbid the route.
    """
    try:
        target = cached_decisions(state).resolve(model, task_type)
        if limits is not None:
            check_allowed(limits, state.configuration, target, model or task_name(task_type or ""))
        return target
    except ModelNotAllowedError as error:
        raise GatewayError(403, NOT_ALLOWED, error.sentence, "model") from None
    except UnknownModelError as error:
        raise GatewayError(404, "model_not_found", error.sentence, "model") from None
    except NoRouteError as error:
        raise GatewayError(503, "no_route", error.sentence) from None
