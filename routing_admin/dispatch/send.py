"""One request on its way along its chain, prepared for each candidate.

The data plane, `/llm/send`, a person's "send for real" and the demo all use this. Previews call the same
`prepare`, so what was previewed is what is sent.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from artifacts.core.detection.kinds import kind_of
from capabilities.core.delivery.adaptation import CannotRead, is_sent_as_it_came, summary
from capabilities.core.delivery.model_endpoint import ModelEndpoint, Prepared, with_callers_headers
from capabilities.core.delivery.reader import ContentPolicy
from capabilities.core.delivery.vendor_items import restore_names, restore_names_in
from capabilities.core.message import ChatRequest, Message, NativePart, Role, TextPart, UnreadableError
from capabilities.core.operations.passing import SPEAKS, Passing
from capabilities.core.operations.table import FormFile
from capabilities.core.protocols.custom_tools import CustomCalls, restore_custom
from capabilities.core.protocols.echo import embedded
from capabilities.core.protocols.echo.stream import stream_of
from capabilities.core.protocols.stream import events_of
from capabilities.core.providers.origins import is_embedded
from capabilities.core.translatable import translatable
from capabilities.core.wire import Answer, Failure, Fault, Media, StreamEvent, Usage
from capabilities.runtime import owned
from routing_admin.core.fallback.chain import Attempt, Call, PlannedCandidate, Reply, RunResult, SkipReason, Timeouts
from routing_admin.core.fallback.context import RunContext, process_context
from routing_admin.core.fallback.cooldown import CooldownState, Key, LocalCooldowns
from routing_admin.core.fallback.key_pools import MAX_CONVERSATIONS, KeyPools
from routing_admin.core.fallback.run import FallbackRun
from routing_admin.core.fallback.scripts import drive_async
from routing_admin.core.planning.params import apply_params
from routing_admin.dispatch.generated_media import KeepMedia, join_sounds
from routing_admin.dispatch.model_endpoints import with_key, without_describing
from routing_admin.dispatch.plan import PlannedRequest, list_dropped, mark_unreadable, prepare_for
from routing_admin.limits.reservations import Reservation
from routing_admin.platform.databases.router import borrowed_connections
from routing_admin.platform.redis.news import Fields, News
from routing_admin.upstream import Stream, process_upstream

if TYPE_CHECKING:
    from routing_admin.dispatch.descriptions.cache import DescriptionCache
    from routing_admin.dispatch.descriptions.describing import Describing


# The way out to a provider: the network for everybody but the embedded one, which answers inside this process.


class Transport(Protocol):
    """The way out to a provider; `proxy` is the provider's setting."""

    async def call(self, prepared: Prepared, to: ModelEndpoint, timeouts: Timeouts, proxy: str) -> Answer | Failure:
        """A whole answer."""

    async def open(self, prepared: Prepared, to: ModelEndpoint, timeouts: Timeouts, proxy: str) -> Stream | Failure:
        """A stream that has its first content."""


class NetworkTransport:
    """The real way: the network for everybody but the embedded provider, which answers here."""

    async def call(self, prepared: Prepared, to: ModelEndpoint, timeouts: Timeouts, proxy: str) -> Answer | Failure:
        """A whole answer."""
        if is_embedded(to.target.endpoint):
            return embedded.answer(prepared.chat, to.target.model)
        outcome = await process_upstream().call(prepared.request, to.protocol, timeouts, proxy)
        if prepared.tool_names and isinstance(outcome, Answer):
            outcome = restore_names(outcome, prepared.tool_names)
        if prepared.custom_tools and isinstance(outcome, Answer):
            outcome = restore_custom(outcome, prepared.custom_tools)
        return outcome

    async def open(self, prepared: Prepared, to: ModelEndpoint, timeouts: Timeouts, proxy: str) -> Stream | Failure:
        """A stream that has its first content."""
        if is_embedded(to.target.endpoint):
            outcome = embedded.answer(prepared.chat, to.target.model)
            return outcome if isinstance(outcome, Failure) else Stream(stream_of(outcome))
        opened = await process_upstream().open(prepared.request, to.protocol, timeouts, proxy)
        if (prepared.tool_names or prepared.custom_tools) and isinstance(opened, Stream):
            return Stream((), _restore(opened, prepared.tool_names, CustomCalls(prepared.custom_tools)))
        return opened


async def _restore(
    stream: Stream, names: Mapping[str, str], custom: CustomCalls
) -> AsyncGenerator[list[StreamEvent], None]:
    try:
        async for batch in stream:
            yield custom.restore(restore_names_in(event, names) for event in batch)
    finally:
        await stream.aclose()


T = TypeVar("T", Answer, Stream)
R = TypeVar("R")


class InThread(Protocol):
    """Runs in a thread what may read files, or store them."""

    async def __call__(self, work: Callable[[], R], /) -> R:
        """What `work` gives."""


END_OF_TURN = "end_turn"
"""Anthropic's word for a turn that its model ended by itself."""
Send = Callable[[Prepared, ModelEndpoint, Timeouts, str], Awaitable[T | Failure]]


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
        to = self.planned.endpoint(call.candidate.index)
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

    async def _prepared(self, chat: ChatRequest, to: ModelEndpoint, call: Call) -> Prepared | CannotRead:
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


# A planned request as one that passes through: who of its chain may be asked, and why the others are passed by.

OTHER_PROTOCOL = translatable("%(call)s only works with providers that speak openai; %(provider)s speaks %(protocol)s.")
OTHER_MODEL = translatable(
    "%(call)s must stay on %(model)s, at any provider: results of different models cannot be mixed."
)
"""Why a candidate is passed by, as templates."""


def pass_through(planned: PlannedRequest, passing: Passing) -> PlannedRequest:
    """The request, which goes as its caller wrote it to candidates that have the call.

    Where only the same model may answer, it is that of the first candidate that has the call, be it callable now or
    not: so the same route always gives what the same model made. Nobody is told a language.
    """
    having = (each for each in planned.plan.candidates if each.protocol == SPEAKS)
    first = next(having, None)
    only = first.model if first is not None and passing.operation.same_model else None
    candidates = tuple(_judge(each, passing, only) for each in planned.plan.candidates)
    plan = replace(planned.plan, candidates=candidates, verbatim=True, language="")
    chat = _in_words(planned.chat) if planned.state.record_bodies else planned.chat
    return replace(planned, plan=plan, chat=chat)


def _in_words(chat: ChatRequest) -> ChatRequest:
    """The request with its fields as a message, and its files as facts beside them: what the log may record."""
    values = [(name, value if isinstance(value, tuple) else (value,)) for name, value in chat.extra.items()]
    texts = {name: kept for name, each in values if (kept := [one for one in each if not isinstance(one, FormFile)])}
    files = (one for _, each in values for one in each if isinstance(one, FormFile))
    plain = {name: kept[0] if len(kept) == 1 else kept for name, kept in texts.items()}
    facts = (NativePart(kind_of(one.mime_type), one.mime_type, filename=one.filename) for one in files)
    return replace(chat, messages=(Message(Role.USER, (TextPart(json.dumps(plain, ensure_ascii=False)), *facts)),))


def _judge(candidate: PlannedCandidate, passing: Passing, only: str | None) -> PlannedCandidate:
    """The candidate, passed by where it lacks the call, or is another model than the only one."""
    call = f"/v1{passing.operation.path}"
    if candidate.skip is SkipReason.MISSING:
        return candidate
    if candidate.protocol != SPEAKS:
        facts = {"call": call, "provider": candidate.provider, "protocol": candidate.protocol}
        return replace(
            candidate,
            skip=SkipReason.OTHER_PROTOCOL,
            skip_detail=translatable(OTHER_PROTOCOL, **facts),
            skip_param="model",
        )
    if only is not None and candidate.model != only:
        detail = translatable(OTHER_MODEL, call=call, model=only)
        return replace(candidate, skip=SkipReason.OTHER_MODEL, skip_detail=detail, skip_param="model")
    return candidate


# What this process finds of candidates and keys, and what others find: one knowledge, where there is a Redis.
#
# Calls read and write what is in memory; news of it are sent behind them, and what is heard is taken over.

CANDIDATES, KEYS, CONVERSATIONS = "candidates", "keys", "conversations"
MAX_AILMENTS = 2000
WELL = "null"


def share_health(run_context: RunContext, news: News) -> None:
    """Lets other processes know what this one finds, and this one what they find."""
    for topic, cooldowns in ((CANDIDATES, run_context.cooldowns), (KEYS, run_context.pools.health)):
        if isinstance(cooldowns, LocalCooldowns):
            SharedCooldowns(topic, cooldowns, news).begin()
    SharedConversations(run_context.pools, news).begin()


class SharedCooldowns:
    """The cooldowns of a topic: what was sent last of a candidate counts, wherever it was found."""

    def __init__(self, topic: str, cooldowns: LocalCooldowns, news: News) -> None:
        self._topic, self._cooldowns, self._news = topic, cooldowns, news

    def begin(self) -> None:
        """From now on."""
        self._cooldowns.watcher = self.tell
        self._news.follow(self._topic, MAX_AILMENTS, self.hear)

    def tell(self, key: Key) -> None:
        """Something about it has changed here."""
        self._news.tell(self._topic, json.dumps(key), lambda: self._render(key))

    def _render(self, key: Key) -> Fields:
        ailment = self._cooldowns.ailment_of(key)
        return {"key": json.dumps(key), "ailment": json.dumps(asdict(ailment)) if ailment else WELL}

    def hear(self, fields: Fields, age: float) -> None:
        """What a process found so many seconds ago, unless this one has found something since."""
        if self._news.is_waiting(self._topic, fields["key"]):
            return
        provider, model = json.loads(fields["key"])
        value = json.loads(fields["ailment"])
        self._cooldowns.take_over((provider, model), None if value is None else _ailment_in(value, age))


def _ailment_in(value: Mapping[str, Any], age: float) -> CooldownState:
    fields = value["failure"]
    typed = {"fault": Fault(fields["fault"]), "further_params": tuple(fields.get("further_params", ()))}
    failure = Failure(**fields | typed)
    seconds = None if value["seconds"] is None else value["seconds"] - age
    return CooldownState(
        failures=value["failures"],
        rounds=value["rounds"],
        seconds=seconds,
        probe_seconds=value["probe_seconds"] - age,
        failure=failure,
    )


class SharedConversations:
    """Which key a conversation has."""

    def __init__(self, pools: KeyPools, news: News) -> None:
        self._pools, self._news = pools, news

    def begin(self) -> None:
        """From now on."""
        self._pools.watcher = self.tell
        self._news.follow(CONVERSATIONS, MAX_CONVERSATIONS, self.hear)

    def tell(self, provider: str, affinity: str) -> None:
        """It has another key now."""
        subject = json.dumps([provider, affinity])
        self._news.tell(CONVERSATIONS, subject, lambda: self._render(provider, affinity))

    def _render(self, provider: str, affinity: str) -> Fields:
        return {"provider": provider, "affinity": affinity, "mark": self._pools.mark_of(provider, affinity)}

    def hear(self, fields: Fields, age: float) -> None:
        """What a process chose so many seconds ago."""
        if not self._news.is_own(fields):
            self._pools.take_over(fields["provider"], fields["affinity"], fields["mark"], age)
