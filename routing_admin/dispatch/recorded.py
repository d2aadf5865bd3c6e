"""A request sent and its course written down, whoever asked: the answer, or the error with every attempt."""

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
from routing_admin.request_log.recorder import LEFT_STATUS, RequestRecorder, facts_of_fault
from routing_admin.upstream import Stream, run_sync

T = TypeVar("T")


async def record_answer(
    dispatch: Dispatch, recorder: RequestRecorder, use: Callable[[RunResult[Answer]], None] | None = None
) -> RunResult[Answer]:
    """The whole answer, and the log knows how it was had. Raises `RouterError` with every attempt; recorded too.

    `use` makes of it what the caller gets, before the log calls it answered; what it raises is a fault of ours there.
    """
    done = await _record(dispatch.answer(), dispatch, recorder)
    if done.answer.media:
        kept = await dispatch.keep(done.answer.media, done.candidate.name)
        done = replace(done, answer=replace(done.answer, media=kept))
    if use is not None:
        try:
            use(done)
        except Exception as error:
            recorder.end(done.attempts, dispatch.prepared, done.answer, **facts_of_fault(error))
            raise
    said = done.answer
    ending = {"finish_reason": said.finish_reason, "usage": said.usage, "details": said.details}
    if said.model is not None:
        ending["answered_model"] = said.model
    beside = {"media": without_data(said.media), "citations": len(said.annotations)}
    recorder.end(done.attempts, dispatch.prepared, said, **ending, **beside)
    return done


async def record_stream(dispatch: Dispatch, recorder: RequestRecorder) -> RunResult[Stream]:
    """The stream at its first content; its end is the caller's to record. Raises `RouterError`, which is recorded."""
    done = await _record(dispatch.open(), dispatch, recorder)
    recorder.mark_first_content()
    return done


def record_answer_sync(dispatch: Dispatch, recorder: RequestRecorder) -> RunResult[Answer]:
    """`record_answer` for a thread without an event loop."""
    return run_sync(record_answer(dispatch, recorder))


async def _record(work: Awaitable[T], dispatch: Dispatch, recorder: RequestRecorder) -> T:
    """What a run gives; when it gives nothing, the log says why: all failed, the caller left, or a fault of ours."""
    sent = dispatch.prepared
    if dispatch.planned.plan.task_type != DESCRIBE_ROUTE:  # who describes is not told what another one says
        dispatch.begin_describing = partial(Describing, dispatch, recorder, record_answer)
    try:
        with draining().limit():
            return await work
    except RouterError as error:
        recorder.end(error.attempts, sent, outcome=error.code, status=error.status, error=error.message)
        raise
    except DrainingError as error:
        recorder.end(dispatch.attempts, sent, outcome=error.code, status=error.status, error=error.message)
        raise
    except asyncio.CancelledError:
        recorder.end(dispatch.attempts, sent, outcome=CANCELLED, status=LEFT_STATUS)
        raise
    except Exception as error:
        recorder.end(dispatch.attempts, sent, **facts_of_fault(error))
        raise
    finally:  # they know each other: apart again, the request's files go when it does
        dispatch.told_failures = dispatch.describing.told_failures if dispatch.describing else None
        dispatch.begin_describing = dispatch.describing = None


# What an answer's headers say of its route: who answered, after how many attempts, with which files, without what.

SAFE = " !#$&'()*+,/:;=?@[]~"
SKIPPED = "skipped_"
MAX_SKIPS = 20


def headers_of_attempts(attempts: Sequence[Attempt]) -> dict[str, str]:
    """The headers of an answer (CONTRACT §6), whose attempts these are, who answered last."""
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


def headers_of_failure(attempts: Sequence[Attempt]) -> dict[str, str]:
    """Those of an error that these attempts led to; none where nobody was reached."""
    if not attempts:
        return {}
    skips = skips_in(attempts)
    return {"x-routing-attempts": str(len(attempts)), **({"x-routing-skipped": skips} if skips else {})}


def skips_in(attempts: Sequence[Attempt]) -> str:
    """Who was passed by without being asked, and why, as `x-routing-skipped` says it; empty where nobody was."""
    skipped = [each for each in attempts if each.outcome.startswith(SKIPPED)]
    told = [f"{each.provider}/{each.model}={each.outcome.removeprefix(SKIPPED)}" for each in skipped[:MAX_SKIPS]]
    return header_value("; ".join(told))


@lru_cache(maxsize=1000)
def header_value(text: str) -> str:
    """A text as a header may hold it: what is no plain ASCII is written as in a URL."""
    return quote(text, safe=SAFE)
