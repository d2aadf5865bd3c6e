"""One request on its way along its chain, prepared for each candidate.

The data plane, `/llm/send`, a person's "send for real" and the demo all use this. Previews call the same
`prepare`, so what was previewed is what is sent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from capabilities.core.delivery.adaptation import CannotRead, is_sent_as_it_came, summary
from capabilities.core.delivery.reader import ContentPolicy
from capabilities.core.delivery.receiver import Prepared, Receiver, with_callers_headers
from capabilities.core.message import ChatRequest, Role, UnreadableError
from capabilities.core.protocols.stream import events_of
from capabilities.core.wire import Answer, Failure, Fault, Media, Usage
from capabilities.runtime import owned
from routing_admin.core.fallback.chain import Attempt, Call, Reply, RunResult, Timeouts
from routing_admin.core.fallback.context import RunContext, process_context
from routing_admin.core.fallback.drivers import drive_async
from routing_admin.core.fallback.run import FallbackRun
from routing_admin.core.planning.params import apply_params
from routing_admin.dispatch.generated_media import KeepMedia, join_sounds
from routing_admin.dispatch.plan import PlannedRequest
from routing_admin.dispatch.prepare import list_dropped, mark_unreadable, prepare_for
from routing_admin.dispatch.receivers import with_key, without_describing
from routing_admin.dispatch.transport import NetworkTransport, Transport
from routing_admin.limits.reservations import Reservation
from routing_admin.platform.databases.router import borrowed_connections
from routing_admin.upstream import Stream

if TYPE_CHECKING:
    from routing_admin.dispatch.descriptions.cache import DescriptionCache
    from routing_admin.dispatch.descriptions.describing import Describing

T = TypeVar("T", Answer, Stream)
R = TypeVar("R")


class InThread(Protocol):
    """Runs in a thread what may read files, or store them."""

    async def __call__(self, work: Callable[[], R], /) -> R:
        """What `work` gives."""


END_OF_TURN = "end_turn"
"""Anthropic's word for a turn that its model ended by itself."""
Send = Callable[[Prepared, Receiver, Timeouts, str], Awaitable[T | Failure]]


async def run_in_own_thread(work: Callable[[], R], /) -> R:
    """What `work` gives, in a thread that outlives the request and its database connections."""
    return await asyncio.to_thread(partial(_with_rows, work))


def _with_rows(work: Callable[[], R]) -> R:
    with borrowed_connections():
        return work()


@owned
def process_run_context() -> RunContext:
    """The clock, the randomness, the cooldowns and the memory of this process."""
    return process_context()


@dataclass(slots=True)
class Dispatch:
    """A planned request on its way; `prepared` says what each candidate was sent, by its place in the chain.

    `request_id` and `caller_headers` are for providers that are told of them. `hold` is what is reserved of limits;
    `begin_describing` gives what has models asked about files that a candidate cannot read, nobody is asked without it;
    `describing` is that, from the first such file on. `told_failures` knows in the end of those that a model was told.
    What `is_heavy` is prepared in a thread, with files or without.
    """

    planned: PlannedRequest
    transport: Transport = field(default_factory=NetworkTransport)
    run_context: RunContext = field(default_factory=process_run_context)
    prepared: dict[int, Prepared] = field(default_factory=dict)
    in_thread: InThread = run_in_own_thread
    keep_media: KeepMedia | None = None
    request_id: str = ""
    caller_headers: Mapping[str, str] = field(default_factory=dict)
    run: FallbackRun[Answer] | FallbackRun[Stream] | None = None
    hold: Reservation | None = None
    begin_describing: Callable[[], Describing] | None = None
    describing: Describing | None = None
    is_heavy: bool = False
    told_failures: DescriptionCache | None = None

    def beside(self, planned: PlannedRequest, request_id: str) -> Dispatch:
        """A request that is sent for this one, the same way out."""
        return Dispatch(planned, self.transport, self.run_context, in_thread=self.in_thread, request_id=request_id)

    def elapsed_ms(self) -> float:
        """Milliseconds since it began on its way."""
        return self.run.elapsed_ms() if self.run else 0.0

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """The candidates left so far."""
        return tuple(self.run.attempts) if self.run else ()

    async def answer(self) -> RunResult[Answer]:
        """The whole answer. Raises `RouterError` with every attempt."""
        run: FallbackRun[Answer] = FallbackRun(self.planned.plan, self.run_context)
        return await self._drive(run, self.transport.call, lambda silence: silence)

    async def open(self) -> RunResult[Stream]:
        """The stream, at its first content. Raises `RouterError` with every attempt."""
        run: FallbackRun[Stream] = FallbackRun(self.planned.plan, self.run_context, stream=True)
        return await self._drive(run, self.transport.open, lambda silence: Stream(events_of(silence)))

    async def keep(self, media: Sequence[Media], maker: str) -> tuple[Media, ...]:
        """What a model made, its sounds whole; stored in a thread, where whoever asked can have artifacts."""
        return await self.in_thread(partial(_keep_all, tuple(media), self.keep_media, maker))

    async def _drive(self, run: FallbackRun[T], send: Send[T], silent: Callable[[Answer], T]) -> RunResult[T]:
        self.run = run

        async def ask(call: Call) -> Reply[T]:
            chat = apply_params(self.planned.chat, call)
            try:
                reply = await self._try(call, chat, send)
            except UnreadableError:  # the bytes went away after the plan was made: the model is told so instead
                reply = await self._try(call, await self.in_thread(partial(mark_unreadable, chat)), send)
            silence = silence_of(reply.outcome, chat) if isinstance(reply.outcome, Failure) else None
            return replace(reply, outcome=silent(silence)) if silence else reply

        return await drive_async(run, ask, asyncio.sleep)

    async def _try(self, call: Call, chat: ChatRequest, send: Send[T]) -> Reply[T]:
        """One call of one candidate; in a fire drill of its provider nobody is called."""
        drill = self.planned.state.drill
        if drill is not None and drill.stops(call.candidate.provider, time.time()):
            return Reply(drill.failure())
        to = self.planned.receiver(call.candidate.index)
        if call.key is not None:
            to = with_key(to, self.planned.state, call.key)
        describes = ContentPolicy.DESCRIBER in to.reader.policies and chat.has_files
        began = self.elapsed_ms() if describes else 0.0
        prepared = await self._prepared(chat, to, call)
        if isinstance(prepared, CannotRead):
            return Reply(Failure(Fault.CAPABILITY_MISMATCH, prepared.reason.sentence()))
        self.prepared[call.candidate.index] = prepared
        if to.passes:
            headers = {**self.caller_headers, "x-request-id": self.request_id}
            prepared = with_callers_headers(prepared, to.passes, headers)
        timeouts = call.timeouts
        if describes:
            timeouts = shorten(timeouts, (self.elapsed_ms() - began) / 1000)
        outcome = await send(prepared, to, timeouts, self.planned.proxy(call.candidate.provider))
        dropped = list_dropped(self.planned.chat, prepared, call)
        return Reply(outcome, summary(prepared.deliveries), dropped)

    async def _prepared(self, chat: ChatRequest, to: Receiver, call: Call) -> Prepared | CannotRead:
        """Prepared here, or in a thread when files may be read or stored."""
        work = partial(prepare_for, self.planned, chat, to, call)
        if not chat.has_files or (not call.without_capabilities and is_sent_as_it_came(chat, to.reader)):
            return await self.in_thread(work) if self.is_heavy else work()
        if ContentPolicy.DESCRIBER not in to.reader.policies:
            return await self.in_thread(work)
        if self.describing is None and self.begin_describing is not None:
            self.describing = self.begin_describing()
        if self.describing is not None:
            return await self.describing.prepare(chat, to, call)
        return await self.in_thread(partial(prepare_for, self.planned, chat, without_describing(to), call))


def silence_of(failed: Failure, chat: ChatRequest) -> Answer | None:
    """The answer of no words with which Claude ends a turn after a tool's result; None for any other failure.

    Anthropic documents it (handling stop reasons, empty responses): the model has nothing to add, and another
    candidate, or another try, is paid for in vain.
    """
    after_tool = bool(chat.messages) and chat.messages[-1].role is Role.TOOL
    if failed.fault is Fault.EMPTY_CONTENT and failed.code == END_OF_TURN and after_tool:
        return Answer(usage=failed.usage or Usage())
    return None


def shorten(timeouts: Timeouts, seconds: float) -> Timeouts:
    """The times of a call that begins so much later."""
    total = max(timeouts.total - seconds, 0.0)
    return replace(timeouts, total=total, first_content=min(timeouts.first_content, total))


def _keep_all(media: tuple[Media, ...], keep: KeepMedia | None, maker: str) -> tuple[Media, ...]:
    whole = join_sounds(media)
    return tuple(keep(each, maker) for each in whole) if keep else whole


__all__ = ["Dispatch", "process_run_context"]
