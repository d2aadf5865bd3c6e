"""POST /v1/chat/completions: parse, decide, walk, answer; whole or streamed.

Nothing is sent before the first real content, no keep-alive comment either: until then the status and the
`x-routing-*` headers are still open, and a start that fails can go to the next candidate.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from urllib.parse import quote

from asgiref.sync import sync_to_async
from django.db import DatabaseError, close_old_connections
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse

from artifacts.storage.content import RowStore
from capabilities.core.wire import Answer, Delta, Failure, Finish, StreamEvent, Usage
from routing_admin.configuration import snapshot
from routing_admin.core.fallback.chain import OK, Attempt, RunResult, cut_short
from routing_admin.core.fallback.errors import RouterError
from routing_admin.core.fallback.policy import caller_of
from routing_admin.core.fallback.run import end_stream
from routing_admin.core.planning.model_names import NamedRoute, UnknownModelError, resolve_model, task_name
from routing_admin.core.planning.plan import NoRouteError
from routing_admin.databases.router import renew_connections
from routing_admin.dispatch.plan import plan_request
from routing_admin.dispatch.recorded import record_answer, record_plan, record_stream
from routing_admin.dispatch.send import Dispatch
from routing_admin.gateway.admission import actor_for, admit_caller, async_endpoint
from routing_admin.gateway.body import read_object
from routing_admin.gateway.chat.parsing import parse
from routing_admin.gateway.chat.rendering import Chunks, completion, event
from routing_admin.gateway.errors import GatewayError, body_of, json_response, of_router
from routing_admin.gateway.media import keeper
from routing_admin.request_log.recorder import LEFT, LEFT_STATUS, RequestRecorder, facts_of_fault
from routing_admin.server.draining import DRAINED, DRAINED_MESSAGE, DrainingError, draining
from routing_admin.server.request_id import request_id_of
from routing_admin.upstream import Stream

PATH = "/v1/chat/completions"
SAFE = " !#$&'()*+,/:;=?@[]~"
STREAM_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


@dataclass(frozen=True, slots=True)
class Ready:
    """A call that is parsed and decided."""

    dispatch: Dispatch
    include_usage: bool


@async_endpoint(PATH)
async def completions(request: HttpRequest) -> HttpResponseBase:
    """The answer of whichever candidate gives one.

    Raises `GatewayError` when none does or the call is refused, and whatever went wrong in us; the log has it by then.
    """
    recorder = RequestRecorder(request_id_of(request), "v1")
    try:
        ready = await _off_the_loop(request, recorder)
        work = _stream if ready.dispatch.planned.stream else _whole
        return await work(request, ready, recorder)
    except DrainingError as error:
        raise draining_error(error) from None
    except asyncio.CancelledError:
        recorder.end(outcome=LEFT, status=LEFT_STATUS)
        raise
    except GatewayError:
        raise
    except Exception as error:
        recorder.end(**facts_of_fault(error))
        raise


async def _off_the_loop(request: HttpRequest, recorder: RequestRecorder) -> Ready:
    """`admit` in a thread: in any one where the request allows it, else in the one that Django gave the request."""
    if not getattr(request, "in_own_threads", False):
        return await sync_to_async(admit)(request, recorder)
    return await sync_to_async(admit_here, thread_sensitive=False)(request, recorder)


def admit_here(request: HttpRequest, recorder: RequestRecorder) -> Ready:
    """`admit` in a thread that outlives the request, whose database connections are renewed now and then."""
    renew_connections()
    try:
        return admit(request, recorder)
    except DatabaseError:
        close_old_connections()
        raise


def admit(request: HttpRequest, recorder: RequestRecorder) -> Ready:
    """Everything that reads rows or looks at files, in one go: the key, the configuration, the request, the plan.

    Raises `GatewayError`; once the agent is known the log says so.
    """
    principal = admit_caller(request, PATH)
    recorder.add_facts(agent=principal.agent, key=principal.key)
    try:
        state = snapshot.current()
        asked = parse(read_object(request), RowStore(principal.agent).part)
        recorder.add_facts(asked_model=asked.model or task_name(asked.task_type or ""), stream=asked.stream)
        named = _resolve_model(state, asked.model, asked.task_type)
        planned = plan_request(
            state,
            named.route,
            asked.chat,
            matched=named.matched,
            language=asked.language,
            agent=principal.agent,
            stream=asked.stream,
            keep=keeper(actor_for(request, principal)),
            service=named.service,
        )
    except GatewayError as error:
        recorder.end(outcome=error.code, status=error.status, error=error.message)
        raise
    record_plan(recorder, planned, named.task_type)
    return Ready(Dispatch(planned), asked.include_usage)


def _resolve_model(state: snapshot.Snapshot, model: str, task_type: str | None) -> NamedRoute:
    try:
        return resolve_model(state.configuration, model, task_type)
    except UnknownModelError as error:
        raise GatewayError(404, "model_not_found", error.sentence, "model") from None
    except NoRouteError as error:
        raise GatewayError(503, "no_route", error.sentence) from None


def draining_error(error: DrainingError) -> GatewayError:
    """503 that a client may try again at once: another process takes it."""
    told = GatewayError(error.status, error.code, error.message)
    told.should_retry, told.retry_after = error.should_retry, error.retry_after
    return told


async def _whole(request: HttpRequest, ready: Ready, recorder: RequestRecorder) -> HttpResponse:
    try:
        done = await record_answer(ready.dispatch, recorder)
    except RouterError as error:
        raise of_router(error) from None
    response = json_response(completion(done.answer, done.candidate.model))
    _say_route(response, request, done)
    return response


async def _stream(request: HttpRequest, ready: Ready, recorder: RequestRecorder) -> StreamingHttpResponse:
    try:
        done = await record_stream(ready.dispatch, recorder)
    except RouterError as error:
        raise of_router(error) from None
    chunks = Chunks(done.candidate.model, ready.include_usage)
    body = ChatStream(done, ready.dispatch, recorder, chunks, request_id_of(request)).events()
    response = StreamingHttpResponse(body, content_type="text/event-stream", headers=STREAM_HEADERS)
    _say_route(response, request, done)
    return response


def _say_route(response: HttpResponseBase, request: HttpRequest, done: RunResult[Answer] | RunResult[Stream]) -> None:
    """The headers of CONTRACT §6: who answered, after how many attempts, and in which form it got the files."""
    said = {
        "x-request-id": request_id_of(request),
        "x-routing-provider": done.candidate.provider,
        "x-routing-model": done.candidate.model,
        "x-routing-attempts": str(len(done.attempts)),
        "x-routing-adaptation": done.attempts[-1].adaptation,
    }
    for name, value in said.items():
        if value:
            response.headers[name] = quote(value, safe=SAFE)


@dataclass(slots=True)
class ChatStream:
    """A stream on its way to the caller; however it ends, the upstream is closed and the log told."""

    done: RunResult[Stream]
    dispatch: Dispatch
    recorder: RequestRecorder
    chunks: Chunks
    request_id: str
    usage: Usage = field(default_factory=Usage)
    failure: Failure | None = None
    finished: bool = False
    drained: bool = False
    heard: list[str] = field(default_factory=list)

    async def events(self) -> AsyncIterator[bytes]:
        """Server-sent events; a break is an error event, and it is the last: no reason to stop, no `[DONE]`."""
        try:
            events = aiter(self.done.answer)
            while (each := await self._next(events)) is not None:
                data = self._event(each)
                if data:
                    yield data
        except DrainingError as error:
            self.drained = True
            yield event(body_of(draining_error(error), self.request_id))
        finally:
            await self.done.answer.aclose()
            self._tell()

    async def _next(self, events: AsyncIterator[StreamEvent]) -> StreamEvent | None:
        async with draining.limit():
            return await anext(events, None)

    def _event(self, each: StreamEvent) -> bytes:
        if isinstance(each, Delta):
            if self.dispatch.planned.state.record_bodies:
                self.heard.append(each.text)
            return self.chunks.delta(each)
        self.finished = True
        if isinstance(each, Finish):
            self.usage = each.usage
            return self.chunks.finish(each)
        self.failure = each
        return event(body_of(self._error(each), self.request_id))

    def _error(self, failure: Failure) -> GatewayError:
        status, code = caller_of(failure)
        message = f"The answer broke off: {failure.message or failure.fault.value}"
        return GatewayError(status, code, message, attempts=self._attempts())

    def _attempts(self) -> tuple[Attempt, ...]:
        took = self.recorder.elapsed_ms() - self.done.attempts[-1].started_ms
        return (*self.done.attempts[:-1], cut_short(self.done.attempts[-1], self.failure, took))

    def _tell(self) -> None:
        planned, took = self.dispatch.planned, self.recorder.elapsed_ms() - self.done.attempts[-1].started_ms
        attempts = end_stream(self.done, self.failure, took, planned.plan, self.dispatch.run_context)
        answer = Answer("".join(self.heard))
        if self.failure is not None:
            code = caller_of(self.failure)[1]
            self.recorder.end(
                attempts, self.dispatch.prepared, answer, outcome=code, status=200, error=self.failure.message
            )
        elif self.drained:
            self.recorder.end(
                attempts, self.dispatch.prepared, answer, outcome=DRAINED, status=200, error=DRAINED_MESSAGE
            )
        elif self.finished:
            self.recorder.end(attempts, self.dispatch.prepared, answer, outcome=OK, usage=self.usage)
        else:
            self.recorder.end(attempts, self.dispatch.prepared, answer, outcome=LEFT, status=LEFT_STATUS)
