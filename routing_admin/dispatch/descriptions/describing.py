"""Let models on the route `describe` describe files that a candidate cannot read.

Each description is a separate request, with its own chain and log entry, and counts against the agent's limits. If it
fails, the candidate receives the file's properties instead, and the original request continues.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from capabilities.core.delivery.adaptation import CannotRead, PartDelivery
from capabilities.core.delivery.model_description import DescriberCall, DescriptionState, ModelDescription
from capabilities.core.delivery.model_endpoint import ModelEndpoint, Prepared
from capabilities.core.delivery.reader import Reader
from capabilities.core.describing.prompt import DescriptionKey, describing_chat
from capabilities.core.message import ChatRequest, FilePart, UnreadableError
from capabilities.core.wire import Answer
from capabilities.runtime import owned
from routing_admin.core.fallback.chain import Call, RunResult
from routing_admin.core.fallback.endings import BROKEN, UNAVAILABLE
from routing_admin.core.fallback.errors import RouterError
from routing_admin.core.limits.sentences import BUDGET_EXCEEDED, RATE_EXCEEDED, UNPRICED
from routing_admin.dispatch.descriptions.cache import DescriptionCache, SingleFlight
from routing_admin.dispatch.descriptions.store import DescriptionOutcome, store_description
from routing_admin.dispatch.estimates import charge_failures, reserve_planned, settle_planned
from routing_admin.dispatch.model_endpoints import describing_route
from routing_admin.dispatch.plan import PlannedRequest, plan_request, prepare_for, record_plan
from routing_admin.limits.reservations import LimitReachedError
from routing_admin.platform.databases.unavailable import is_unavailable
from routing_admin.platform.server.draining import DrainingError
from routing_admin.request_log.operations import DESCRIBE
from routing_admin.request_log.recorder import RequestRecorder

if TYPE_CHECKING:
    from routing_admin.dispatch.send import Dispatch

R = TypeVar("R")
log = logging.getLogger(__name__)

MAX_AT_ONCE = 3
"""Maximum number of a request's files for which models write descriptions at the same time."""
MAX_SECONDS = 90.0
TIME_SHARE = 0.5
"""A candidate waits for descriptions for at most `MAX_SECONDS`, and at most this fraction of its remaining time."""
SLACK_SECONDS = 1.0
NO_TIME, NO_DESCRIBER = "deadline_exceeded", "no_describer"
OWN_FAULTS = frozenset({NO_TIME, NO_DESCRIBER, UNAVAILABLE, BUDGET_EXCEEDED, RATE_EXCEEDED, UNPRICED})
"""Faults that affect only this caller, and not others that wait for the same description."""

Record = Callable[["Dispatch", RequestRecorder], Awaitable[RunResult[Answer]]]


@owned
def process_single_flight() -> SingleFlight[DescriptionOutcome]:
    return SingleFlight()


@dataclass(slots=True)
class Describing:
    """The descriptions for a request that is being sent.

    `record` sends the request for a description and logs it. `keeps_failures` is set if the original request belongs to
    a conversation, because failed descriptions are stored for the conversation.
    """

    dispatch: Dispatch
    recorder: RequestRecorder
    record: Record
    keeps_failures: bool = True
    descriptions: DescriptionCache = field(init=False)
    _count: int = 0

    def __post_init__(self) -> None:
        self.descriptions = DescriptionCache(self.dispatch.planned)

    async def prepare(self, chat: ChatRequest, endpoint: ModelEndpoint, call: Call) -> Prepared | CannotRead:
        in_thread = self.dispatch.in_thread
        work = partial(prepare_for, self.descriptions.plan_for(endpoint.reader), chat, endpoint, call)
        prepared = await in_thread(work)
        if not isinstance(prepared, CannotRead) and prepared.to_describe:
            await self._ask_all(prepared.to_describe, endpoint.reader, call.timeouts.total)
            prepared = await in_thread(work)
        if self.keeps_failures and any(outcome.unsettled for outcome in self.descriptions.outcomes.values()):
            await write_rows(self.dispatch, self.descriptions.settle)
        return prepared

    @property
    def delivered_failures(self) -> DescriptionCache | None:
        """Return the cache if it contains failed descriptions to store for the conversation, otherwise None."""
        has_failures = self.keeps_failures and any(outcome.fault for outcome in self.descriptions.outcomes.values())
        return self.descriptions if has_failures else None

    async def describe(self, delivery: PartDelivery, reader: Reader, seconds: float) -> ModelDescription:
        """Return the description of one file, requesting it if necessary. Raise `UnreadableError`."""
        in_thread = self.dispatch.in_thread
        find = partial(self.descriptions.find, reader, delivery.file, delivery.delivery.describer, delivery.message)
        description = await in_thread(find)
        if description.state is not DescriptionState.NOT_ASKED:
            return description
        await self._ask_all((delivery,), reader, seconds)
        return await in_thread(find)

    async def _ask_all(self, deliveries: Sequence[PartDelivery], reader: Reader, seconds: float) -> None:
        clock = self.dispatch.run_context.clock
        ends_at = clock() + min(MAX_SECONDS, seconds * TIME_SHARE)
        semaphore = asyncio.Semaphore(MAX_AT_ONCE)
        requested = {
            key.digest: (key, delivery)
            for delivery in deliveries
            if (key := await self._description_key(reader, delivery))
        }

        async def ask(key: DescriptionKey, delivery: PartDelivery) -> None:
            async with semaphore:
                await self._ask(
                    key, delivery.file, self.descriptions.find_question(reader, delivery.message), ends_at - clock()
                )

        await asyncio.gather(*(ask(*entry) for entry in requested.values()))

    async def _description_key(self, reader: Reader, delivery: PartDelivery) -> DescriptionKey | None:
        work = partial(
            self.descriptions.description_key, reader, delivery.file, delivery.delivery.describer, delivery.message
        )
        try:
            return await self.dispatch.in_thread(work)
        except UnreadableError:  # The file was deleted in the meantime; the next lookup reports this.
            return None

    async def _ask(self, key: DescriptionKey, file: FilePart, question: str | None, seconds: float) -> None:
        walk = partial(self._walk, key, file, question, seconds)
        outcome = await process_single_flight().join(key.digest, walk, lambda result: result.fault not in OWN_FAULTS)
        drill = self.dispatch.planned.state.drill
        is_drill = drill is not None and drill.lasts(time.time())  # No failures are stored during a fire drill.
        if outcome.fault and (is_drill or not self.keeps_failures):
            self.descriptions.outcomes[key.digest] = outcome
            self.descriptions.lookups.pop(key.digest, None)
            return
        answered = self.descriptions.lookups[key.digest][1]
        keep = partial(store_description, key, self.descriptions.conversation, outcome, answered)
        self.descriptions.outcomes[key.digest] = await write_rows(self.dispatch, keep) or outcome

    async def _walk(
        self, key: DescriptionKey, file: FilePart, question: str | None, seconds: float
    ) -> DescriptionOutcome:
        failed = DescriptionOutcome(describer=key.describer)
        if seconds <= 0:
            return replace(failed, fault=NO_TIME)
        self._count += 1
        began, request_id = self.dispatch.elapsed_ms(), f"{self.dispatch.request_id[:56]}.d{self._count}"
        outcome = failed
        try:
            planned = await self.dispatch.in_thread(partial(self._plan, file, question, key.language, seconds))
            async with asyncio.timeout(seconds + SLACK_SECONDS):
                outcome = await self._send(planned, self.recorder.beside(request_id, DESCRIBE), request_id)
        except (RouterError, LimitReachedError) as error:
            outcome = replace(failed, fault=error.code)
        except TimeoutError:
            outcome = replace(failed, fault=NO_TIME)
        except (LookupError, UnreadableError):
            outcome = replace(failed, fault=NO_DESCRIBER)
        except DrainingError:
            raise
        # A failed description must never make the original request fail.
        except Exception:
            log.exception("describing a file for request %s failed", self.dispatch.request_id)
            outcome = replace(failed, fault=BROKEN)
        took = self.dispatch.elapsed_ms() - began
        tokens = outcome.prompt_tokens, outcome.completion_tokens
        self.descriptions.calls[key.digest] = DescriberCall(request_id, began, took, *tokens)
        return outcome

    def _plan(self, file: FilePart, question: str | None, language: str, seconds: float) -> PlannedRequest:
        """Return the planned request for a description, with a time limit of `seconds`.

        Raise `LookupError` if there is no describing route.
        """
        state = self.dispatch.planned.state
        route = describing_route(state)
        if route is None:
            raise LookupError("there is no route that describes")
        chat = describing_chat(file, question, language)
        if route.max_tokens or any(candidate.max_tokens for candidate in route.candidates):
            # Omit this request's default token limit, because it would override the limits of the route and its
            # candidates.
            chat = replace(chat, max_tokens=None)
        planned = plan_request(state, route, chat, agent=self.dispatch.planned.agent, direct=True)
        timeouts = planned.plan.timeouts
        limited = replace(timeouts, total=min(timeouts.total, seconds))
        return replace(planned, plan=replace(planned.plan, timeouts=limited))

    async def _send(self, planned: PlannedRequest, recorder: RequestRecorder, request_id: str) -> DescriptionOutcome:
        record_plan(recorder, planned, planned.plan.task_type)
        reservation = self.dispatch.reservation.beside() if self.dispatch.reservation else None
        try:
            if reservation is not None:
                await reserve_planned(reservation, planned)
            result = await self.record(self.dispatch.beside(planned, request_id), recorder)
        except RouterError as error:
            if reservation is not None:
                charge_failures(reservation, planned, error.attempts)
            raise
        except LimitReachedError as error:
            recorder.end(outcome=error.code, status=error.status, error=error.message)
            raise
        else:
            if reservation is not None:
                charge_failures(reservation, planned, result.attempts)
                settle_planned(reservation, planned, result.candidate, result.answer.usage, result.answer)
        finally:
            if reservation is not None:
                reservation.close()
        name = planned.endpoint(result.candidate.index).name
        usage = result.answer.usage
        return DescriptionOutcome(
            describer=name,
            words=result.answer.text,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
        )


async def note_answer(dispatch: Dispatch, text: str, calls: Iterable[str]) -> None:
    """Store the failed descriptions that a model received, for the conversation that continues with its answer."""
    if (descriptions := dispatch.delivered_failures) is not None:
        await write_rows(dispatch, partial(descriptions.settle_answer, descriptions.conversation_after(text, calls)))


async def write_rows(dispatch: Dispatch, work: Callable[[], R]) -> R | None:
    """Run a database write in a thread; return None if the database is unavailable."""
    try:
        return await dispatch.in_thread(work)
    except Exception as error:
        if not is_unavailable(error):
            raise
        return None
