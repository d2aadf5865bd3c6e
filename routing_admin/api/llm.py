# ruff: noqa: N815 - JSON keys are camelCase
"""The agents' API for model requests: `/llm/send` and `/llm/resolve`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import Field

from artifacts.core.artifact import REF_PREFIX
from artifacts.storage.content import RowStore
from capabilities.access import Principal, request_principal
from capabilities.actors import Actor
from capabilities.connections import release_connections
from capabilities.core.message import ChatRequest, FilePart, Message, Role, TextPart
from capabilities.core.services.agents import NO_LABELS
from capabilities.core.services.limit_holders import LimitHolder
from capabilities.core.values import MAX_TOKENS, TEMPERATURE
from capabilities.core.wire import Answer
from routing_admin.api.calls import CallError, answer, read_as, takes
from routing_admin.api.errors import Body
from routing_admin.api.schemas import (
    AttemptOut,
    CandidateOut,
    MediaOut,
    ResolveOut,
    SendOut,
    limit_call_error,
    request_size,
)
from routing_admin.api.service_schemas import AttachmentIn
from routing_admin.configuration import snapshot
from routing_admin.core.configuration.specs import DEFAULT_ROUTE
from routing_admin.core.fallback.chain import RunResult
from routing_admin.core.fallback.errors import RouterError, retry_headers
from routing_admin.core.planning.model_names import (
    NOT_ALLOWED,
    ModelNotAllowedError,
    NamedRoute,
    check_allowed,
    task_name,
)
from routing_admin.core.planning.plan import NoRouteError, resolve_plan, resolve_route
from routing_admin.dispatch.estimates import charge_failures, reserve_planned, settle_planned
from routing_admin.dispatch.generated_media import store_generated
from routing_admin.dispatch.plan import PlannedRequest, plan_request, record_plan
from routing_admin.dispatch.recorded import failure_headers, headers_of_attempts, record_answer
from routing_admin.dispatch.send import Dispatch, process_run_context
from routing_admin.limits.reservations import LimitReachedError, Reservation, make_reservation
from routing_admin.limits.rows import list_label_holders
from routing_admin.platform.server.draining import DrainingError
from routing_admin.platform.server.request_id import claim_request_id, read_request_id
from routing_admin.request_log.entries import token_details
from routing_admin.request_log.recorder import RequestRecorder
from routing_admin.request_log.tracing import tracing

router = Router()


class ResolveIn(Body):
    """The fields of a request that affect routing; all of them are optional."""

    prompt: str = ""
    systemPrompt: str | None = None
    maxTokens: int | None = Field(None, ge=MAX_TOKENS[0], le=MAX_TOKENS[1])
    temperature: float | None = Field(None, ge=TEMPERATURE[0], le=TEMPERATURE[1])
    taskType: str | None = Field(None, max_length=200)
    language: str | None = Field(None, max_length=35)
    attachments: list[AttachmentIn] = Field(default_factory=list, max_length=100)


class SendIn(ResolveIn):
    """A request for a model; only `prompt` is required."""

    prompt: str


@router.post("/llm/send", tags=["llm"], response=SendOut, openapi_extra=takes(SendIn))
async def send(request: HttpRequest) -> HttpResponse:
    """Send a prompt to the candidates of its task's route; return the answer, the answering model, and every attempt.

    If the caller disconnects, the request is cancelled. The status is 429 if a limit of the agent is reached.
    """
    principal = request_principal(request)
    holders = principal.holders
    if principal.labels is not NO_LABELS:
        holders = (*holders, *await sync_to_async(list_own_label_holders)(principal))
    reservation = make_reservation(holders)
    if reservation is None:
        return await _send(request, None)
    try:
        await reservation.enter(request_size(request))
        response = await _send(request, reservation)
        for name, value in reservation.headers().items():
            response[name] = value
        return response
    except LimitReachedError as error:
        # The request was refused before it was planned, so it is logged here.
        recorder = RequestRecorder(claim_request_id(request), "api")
        recorder.add_facts(agent=principal.agent, key=principal.key)
        recorder.end(outcome=error.code, status=error.status, error=error.message)
        raise limit_call_error(error) from None
    finally:
        reservation.close()


def list_own_label_holders(principal: Principal) -> Sequence[LimitHolder]:
    """Return a limit holder for each label on the agent's key that has a budget in the current configuration."""
    return list_label_holders(snapshot.current().configuration, principal.key_owner, principal.labels)


async def _send(request: HttpRequest, reservation: Reservation | None) -> HttpResponse:
    recorder, planned = await sync_to_async(plan_send)(request)
    if reservation is not None:
        await reserve_planned(reservation, planned)
    principal = request_principal(request)
    actor = Actor("agent", principal.agent, request.META.get("REMOTE_ADDR", ""), read_request_id(request))
    dispatch = Dispatch(
        planned,
        keep_media=partial(store_generated, actor),
        request_id=read_request_id(request),
        caller_headers=request_headers(request),
        reservation=reservation,
    )
    try:
        result = await record_answer(dispatch, recorder)
        if reservation is not None:
            charge_failures(reservation, planned, result.attempts)
            settle_planned(reservation, planned, result.candidate, result.answer.usage, result.answer)
        reply = answer(send_out(planned, result))
        for name, value in headers_of_attempts(result.attempts).items():
            reply.headers[name] = value
        return reply
    except (RouterError, DrainingError) as error:
        if reservation is not None and isinstance(error, RouterError):
            charge_failures(reservation, planned, error.attempts)
        response = answer({**error.as_json(), "requestId": read_request_id(request)}, error.status)
        attempt_headers = failure_headers(error.attempts) if isinstance(error, RouterError) else {}
        for name, value in {**retry_headers(error), **attempt_headers}.items():
            response.headers[name] = value
        return response


def request_headers(request: HttpRequest) -> dict[str, str]:
    return {name.lower(): value for name, value in request.headers.items()}


def plan_send(request: HttpRequest) -> tuple[RequestRecorder, PlannedRequest]:
    """Plan the request and do all of its database work; raise `CallError` or `InvalidError` if it is invalid."""
    try:
        return _plan_send(request)
    finally:
        # Sending the prompt may take minutes and must not occupy a database connection.
        release_connections()


def _plan_send(request: HttpRequest) -> tuple[RequestRecorder, PlannedRequest]:
    principal = request_principal(request)
    body = read_as(request, SendIn, any_text=True)
    recorder = RequestRecorder(claim_request_id(request), "api")
    if tracing().writer is not None:
        recorder.add_trace(request.path, request_headers(request))
    recorder.add_facts(agent=principal.agent, key=principal.key, asked_model=task_name(body.taskType or DEFAULT_ROUTE))
    recorder.add_facts(labels=principal.labels)
    planned = planned_request(body, principal)
    record_plan(recorder, planned, planned.plan.task_type)
    return recorder, planned


@router.post("/llm/resolve", tags=["llm"], response=ResolveOut, openapi_extra=takes(ResolveIn))
def resolve(request: HttpRequest) -> HttpResponse:
    """Make the same decision as `send` without calling a provider.

    Return the route, the language directive, and each candidate's outcome.
    """
    plan = planned_request(read_as(request, ResolveIn, any_text=True), request_principal(request)).plan
    resolved = resolve_plan(plan, process_run_context().cooldowns)
    return answer(
        ResolveOut(
            taskType=plan.task_type,
            matched=plan.matched,
            language=plan.language,
            directive=plan.directive,
            candidates=[
                CandidateOut(
                    provider=entry.candidate.provider,
                    model=entry.candidate.model,
                    temperature=entry.candidate.temperature,
                    maxTokens=entry.candidate.max_tokens,
                    outcome=entry.outcome,
                    reason=entry.reason,
                )
                for entry in resolved
            ],
        )
    )


def planned_request(body: ResolveIn, principal: Principal) -> PlannedRequest:
    """Return the planned request.

    Raise `CallError`: 403 for a route the agent may not use, 404 for an artifact that never existed, 503 if there is no
    route.
    """
    state, agent = snapshot.current(), principal.agent
    try:
        route, matched = resolve_route(state.configuration, body.taskType)
    except NoRouteError as error:
        raise CallError(503, "no_route", str(error)) from None
    try:
        name = task_name(body.taskType or route.task_type)
        check_allowed(principal.rights, state.configuration, NamedRoute(route), name)
    except ModelNotAllowedError as error:
        raise CallError(403, NOT_ALLOWED, error.sentence) from None
    files = tuple(file_part(attachment, RowStore(agent)) for attachment in body.attachments)
    system = (Message(Role.SYSTEM, (TextPart(body.systemPrompt),)),) if body.systemPrompt else ()
    messages = (*system, Message(Role.USER, (TextPart(body.prompt), *files)))
    chat = ChatRequest(messages, body.temperature, body.maxTokens)
    planned = plan_request(state, route, chat, matched=matched, language=body.language, agent=agent)
    return planned.with_affinity("", agent) if planned.plan.has_pools else planned


def file_part(attachment: AttachmentIn, rows: RowStore) -> FilePart:
    """Return the artifact of an attachment as a message part; the part says so if the artifact is deleted or expired.

    Raise `CallError` 404 if this agent never had such an artifact.
    """
    part = rows.part(attachment.artifactRef)
    if part is None:
        message = "This agent has no such artifact. Upload the file, or ask its owner for the reference."
        raise CallError(404, "artifact_not_found", message, ref=attachment.artifactRef)
    return part


def send_out(planned: PlannedRequest, result: RunResult[Answer]) -> SendOut:
    """Return the response of `/llm/send`; `media` and `annotations` are present only if they are not empty."""
    model_answer, usage = result.answer, result.answer.usage
    media = [
        MediaOut(
            kind=item.kind.value,
            mimeType=item.mime_type,
            size=item.size,
            artifactRef=f"{REF_PREFIX}{item.artifact_id}" if item.artifact_id else None,
            url=item.url,
        )
        for item in model_answer.media
    ]
    response = SendOut(
        content=model_answer.text,
        provider=result.candidate.provider,
        model=result.candidate.model,
        taskType=planned.plan.task_type,
        language=planned.plan.language,
        usage={
            "promptTokens": usage.prompt_tokens,
            "completionTokens": usage.completion_tokens,
            "totalTokens": usage.total_tokens,
            **token_details(usage),
        },
        finishReason=model_answer.finish_reason,
        attempts=[AttemptOut(**attempt.as_json()) for attempt in result.attempts],
    )
    if media:
        response.media = media
    if model_answer.annotations:
        response.annotations = [dict(annotation) for annotation in model_answer.annotations]
    return response
