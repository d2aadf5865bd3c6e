"""Send a request and log its result: the answer, or the error with all attempts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TypeVar
from urllib.parse import quote

from capabilities.core.wire import Answer
from routing_admin.core.configuration.specs import DESCRIBE_ROUTE
from routing_admin.core.fallback.chain import CANCELLED, Attempt, RunResult
from routing_admin.core.fallback.errors import RouterError
from routing_admin.dispatch.descriptions.describing import Describing
from routing_admin.dispatch.generated_media import without_data
from routing_admin.dispatch.send import Dispatch
from routing_admin.platform.server.draining import DrainingError, draining
from routing_admin.request_log.entries import list_first
from routing_admin.request_log.recorder import ABANDONED_STATUS, RequestRecorder, failure_facts
from routing_admin.upstream import Stream, run_sync

T = TypeVar("T")


async def record_answer(
    dispatch: Dispatch, recorder: RequestRecorder, use: Callable[[RunResult[Answer]], None] | None = None
) -> RunResult[Answer]:
    """Return the complete answer and log it. `RouterError` is logged and re-raised.

    `use` builds the response for the caller before the answer is logged. If it raises, an internal error is logged.
    """
    done = await _record(dispatch.answer(), dispatch, recorder)
    if done.answer.media:
        stored = await dispatch.keep(done.answer.media, done.candidate.name)
        done = replace(done, answer=replace(done.answer, media=stored))
    if use is not None:
        try:
            use(done)
        except Exception as error:
            recorder.end(done.attempts, dispatch.prepared, done.answer, **failure_facts(error))
            raise
    answer = done.answer
    ending = {"finish_reason": answer.finish_reason, "usage": answer.usage, "details": answer.details}
    if answer.model is not None:
        ending["answered_model"] = answer.model
    media_facts = {"media": without_data(answer.media), "citations": len(answer.annotations)}
    recorder.end(done.attempts, dispatch.prepared, answer, **ending, **media_facts)
    return done


async def record_stream(dispatch: Dispatch, recorder: RequestRecorder) -> RunResult[Stream]:
    """Return the stream once it has content; the caller must log the end of the stream.

    `RouterError` is logged and re-raised.
    """
    done = await _record(dispatch.open(), dispatch, recorder)
    recorder.mark_first_content()
    return done


def record_answer_sync(dispatch: Dispatch, recorder: RequestRecorder) -> RunResult[Answer]:
    return run_sync(record_answer(dispatch, recorder))


async def _record(work: Awaitable[T], dispatch: Dispatch, recorder: RequestRecorder) -> T:
    prepared = dispatch.prepared
    # A describing model itself must not receive descriptions written by other models.
    if dispatch.planned.plan.task_type != DESCRIBE_ROUTE:
        dispatch.begin_describing = partial(Describing, dispatch, recorder, record_answer)
    try:
        # When the server stops, its drain time limits how long this waits.
        with draining().limit():
            return await work
    except RouterError as error:
        recorder.end(error.attempts, prepared, outcome=error.code, status=error.status, error=error.message)
        raise
    except DrainingError as error:
        recorder.end(dispatch.attempts, prepared, outcome=error.code, status=error.status, error=error.message)
        raise
    except asyncio.CancelledError:
        recorder.end(dispatch.attempts, prepared, outcome=CANCELLED, status=ABANDONED_STATUS)
        raise
    except Exception as error:
        recorder.end(dispatch.attempts, prepared, **failure_facts(error))
        raise
    # Break a reference cycle, so that the request's files are freed immediately.
    finally:
        dispatch.delivered_failures = dispatch.describing.delivered_failures if dispatch.describing else None
        dispatch.begin_describing = dispatch.describing = None


# Response headers about routing: provider, model, attempts, adaptation and dropped parameters.

SAFE = " !#$&'()*+,/:;=?@[]~"
SKIPPED = "skipped_"
MAX_SKIPS = 20


def headers_of_attempts(attempts: Sequence[Attempt]) -> dict[str, str]:
    """Return the routing headers of an answer; the last attempt is the one that answered."""
    last = attempts[-1]
    headers = {
        "x-routing-provider": header_value(last.provider),
        "x-routing-model": header_value(last.model),
        "x-routing-attempts": str(len(attempts)),
    }
    if len(attempts) > 1 and (skips := skips_in(attempts)):
        headers["x-routing-skipped"] = skips
    if last.adaptation:
        headers["x-routing-adaptation"] = header_value(last.adaptation)
    if last.dropped_params:
        headers["x-routing-dropped"] = header_value(", ".join(list_first(last.dropped_params)))
    return headers


def failure_headers(attempts: Sequence[Attempt]) -> dict[str, str]:
    """Return the routing headers of an error, which are empty if there were no attempts."""
    if not attempts:
        return {}
    skips = skips_in(attempts)
    return {"x-routing-attempts": str(len(attempts)), **({"x-routing-skipped": skips} if skips else {})}


def skips_in(attempts: Sequence[Attempt]) -> str:
    """Return the skipped candidates with their reasons, for the header `x-routing-skipped`, or "" if there are none."""
    skipped = [attempt for attempt in attempts if attempt.outcome.startswith(SKIPPED)]
    texts = [
        f"{attempt.provider}/{attempt.model}={attempt.outcome.removeprefix(SKIPPED)}" for attempt in skipped[:MAX_SKIPS]
    ]
    return header_value("; ".join(texts))


@lru_cache(maxsize=1000)
def header_value(text: str) -> str:
    """Return the text with everything except plain ASCII percent-encoded."""
    return quote(text, safe=SAFE)
