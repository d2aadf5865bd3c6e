"""Stream an answer to the caller.

However the stream ends, the upstream connection is closed and the request is logged.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field

from capabilities.access import Principal
from capabilities.core.operations.stream import join_frames
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Answer, Delta, Failure, Finish, Media, Supplement
from routing_admin.core.fallback.chain import CANCELLED, OK, Attempt, RunResult, cut_short
from routing_admin.core.fallback.policy import caller_status
from routing_admin.core.fallback.run import end_stream
from routing_admin.dispatch.descriptions.describing import note_answer
from routing_admin.dispatch.estimates import settle_planned
from routing_admin.dispatch.generated_media import without_data
from routing_admin.dispatch.reasoning_cache import reasoning_cache
from routing_admin.dispatch.send import Dispatch
from routing_admin.gateway.admission import fault_error
from routing_admin.gateway.chat_api import AnswerEvents
from routing_admin.gateway.errors import GatewayError
from routing_admin.gateway.open_streams import KeyEndedError, open_streams
from routing_admin.limits.reservations import Reservation
from routing_admin.platform.server.draining import DrainingError, draining
from routing_admin.platform.server.fair_semaphore import OverloadedError
from routing_admin.request_log.recorder import ABANDONED_STATUS, RequestRecorder, failure_facts
from routing_admin.upstream import Stream


@dataclass(slots=True, kw_only=True)
class AnswerStream:
    """A streamed answer, and the part of the answer that has been received so far."""

    result: RunResult[Stream]
    dispatch: Dispatch
    recorder: RequestRecorder
    events: AnswerEvents
    request_id: str
    agent: str
    reservation: Reservation | None = None
    finish: Finish | None = None
    failure: Failure | None = None
    fault: Exception | None = None
    principal: Principal | None = None
    ended_by: DrainingError | KeyEndedError | None = None
    texts: list[str] = field(default_factory=list)
    other_texts: list[str] = field(default_factory=list)
    has_kept_sounds: bool = False
    sounds: list[Media] = field(default_factory=list)
    media: list[Media] = field(default_factory=list)
    citations: int = 0
    at_end: Callable[[], object] | None = None

    def is_whole(self) -> bool:
        return self.finish is not None and self.failure is None and self.fault is None

    async def blocks(self) -> AsyncGenerator[bytes, None]:
        """Yield server-sent events; events made from the same upstream block are joined.

        If the answer is interrupted, the last event is an error, without a finish reason or `[DONE]`.
        """
        waiting = draining().limit()
        open_stream = None
        if self.principal is not None:
            open_stream = open_streams().add(self.principal, self.dispatch.planned.state.stamp, waiting)
        try:
            batches = aiter(self.result.answer)
            # Collect the text only if it is needed after the stream has ended.
            records = (
                self.reservation is not None
                or self.dispatch.planned.state.record_bodies
                or self.dispatch.delivered_failures
            )
            delta = self._record_delta if records else self.events.write_delta
            while True:
                # Without this check, a stream that never waits would not notice that the server is draining.
                draining().check()
                if open_stream is not None:
                    open_stream.check()
                with waiting:
                    batch = await anext(batches, None)
                if batch is None:
                    return
                pieces = []
                for event in batch:  # Use a loop, because an asynchronous comprehension takes twice as long.
                    pieces.append(delta(event) if isinstance(event, Delta) else await self._write_other(event))  # noqa: PERF401
                block = b"".join(pieces)
                if block:
                    yield block
        except DrainingError as error:
            self.ended_by = error
            yield self.events.write_error(retriable_error(error), self.request_id)
        except KeyEndedError as error:
            # If the answer is already complete, it does not matter that the caller's key has become invalid in the
            # meantime.
            if self.finish is None:
                self.ended_by = error
                yield self.events.write_error(GatewayError(error.status, error.code, error.message), self.request_id)
        # This is a bug of ours, so report it to the caller, but do not log it as the provider's fault.
        except Exception as error:
            self.fault = error
            yield self.events.write_error(fault_error(error), self.request_id)
        finally:
            if open_stream is not None:
                open_streams().remove(open_stream)
            await self.result.answer.aclose()
            self._record_end()

    def _record_delta(self, delta: Delta) -> bytes:
        self.texts.append(delta.text)
        if delta.reasoning or delta.refusal or delta.tool_calls:
            self.other_texts += (delta.reasoning, delta.refusal)
            self.other_texts += [text for call in delta.tool_calls for text in (call.name or "", call.arguments)]
        return self.events.write_delta(delta)

    async def _write_other(self, event: Supplement | Finish | Failure) -> bytes:
        # Generated files are stored before they are sent, but audio is sent immediately and stored before the stream
        # ends.
        if isinstance(event, Supplement):
            return await self._write_supplement(event)
        # Store chunks of audio as one file after all of them have arrived.
        stored = await self._keep(self.sounds) if self.sounds else ()
        self.has_kept_sounds = True
        if isinstance(event, Finish):
            await note_answer(self.dispatch, "".join(self.texts), self.events.turn.signatures)
        return b"".join([self.events.write_sound(sound, reference=True) for sound in stored]) + self._write_end(event)

    async def _write_supplement(self, event: Supplement) -> bytes:
        sounds = [item for item in event.media if item.kind is Kind.AUDIO]
        self.sounds += sounds
        files = [item for item in event.media if item.kind is not Kind.AUDIO]
        stored = await self._keep(files) if files else ()
        self.citations += len(event.annotations)
        cited = self.events.write_annotations(event.annotations) if event.annotations else b""
        return b"".join([*map(self.events.write_sound, sounds), self.events.write_media(stored), cited])

    async def _keep(self, media: Sequence[Media]) -> tuple[Media, ...]:
        stored = await self.dispatch.keep(media, self.result.candidate.name)
        self.media += without_data(stored)
        return stored

    def _write_end(self, event: Finish | Failure) -> bytes:
        if isinstance(event, Finish):
            self.finish = event
            reasoning_cache().keep(self.agent, self.events.turn, self.events.origin)
            return self.events.write_finish(event)
        self.failure = event
        return self.events.write_error(self._build_error(event), self.request_id)

    def _build_error(self, failure: Failure) -> GatewayError:
        status, code = caller_status(failure)
        message = f"The answer broke off: {failure.message or failure.fault.value}"
        return GatewayError(status, code, message, attempts=self._list_attempts())

    def _list_attempts(self) -> tuple[Attempt, ...]:
        took = self.recorder.elapsed_ms() - self.result.attempts[-1].started_ms
        return (*self.result.attempts[:-1], cut_short(self.result.attempts[-1], self.failure, took))

    def _record_end(self) -> None:
        if self.at_end is not None:
            self.at_end()
        planned, took = self.dispatch.planned, self.recorder.elapsed_ms() - self.result.attempts[-1].started_ms
        attempts = end_stream(self.result, self.failure, took, planned.plan, self.dispatch.run_context)
        answer = Answer("".join(self.texts), media=tuple(self.media))
        if self.reservation is not None:
            self._settle(self.reservation)
        self.recorder.add_facts(media=answer.media, citations=self.citations)
        if self.failure is not None:
            # The status was sent before the failure, so the log contains a 200.
            facts = {"outcome": caller_status(self.failure)[1], "status": 200, "error": self.failure.message}
            if self.failure.usage is not None:
                facts["usage"] = self.failure.usage
            self.recorder.end(attempts, self.dispatch.prepared, answer, **facts)
        elif self.fault is not None:
            self.recorder.end(attempts, self.dispatch.prepared, answer, **failure_facts(self.fault) | {"status": 200})
        elif self.ended_by is not None:
            facts = {"outcome": self.ended_by.code, "status": 200, "error": self.ended_by.message}
            self.recorder.end(attempts, self.dispatch.prepared, answer, **facts)
        elif self.finish is not None:
            counts = {"usage": self.finish.usage, "details": self.finish.details}
            facts = {"outcome": OK, "finish_reason": self.finish.finish_reason, **counts}
            if self.finish.model is not None:
                facts["answered_model"] = self.finish.model
            self.recorder.end(attempts, self.dispatch.prepared, answer, **facts)
        else:
            self.recorder.end(attempts, self.dispatch.prepared, answer, outcome=CANCELLED, status=ABANDONED_STATUS)

    def _settle(self, reservation: Reservation) -> None:
        # If the provider reports no usage, estimate tokens from the content. Deltas of a passed-through operation are
        # raw events.
        end, planned = self.finish or self.failure, self.dispatch.planned
        texts = (join_frames(self.texts),) if planned.plan.verbatim else (*self.texts, *self.other_texts)
        sounds = () if self.has_kept_sounds else self.sounds
        answer = Answer("".join(texts), media=(*self.media, *sounds))
        usage = end.usage if end is not None else None
        settle_planned(reservation, planned, self.result.candidate, usage, answer, is_cut=not self.is_whole())


def retriable_error(error: DrainingError | OverloadedError) -> GatewayError:
    """Return a 503 that clients may retry.

    Another process will accept the request, or this process will accept it a little later.
    """
    refusal = GatewayError(error.status, error.code, error.message)
    refusal.should_retry, refusal.retry_after = error.should_retry, error.retry_after
    return refusal
