"""Send a request along its chain, prepared separately for each candidate.

The chat APIs, `/llm/send`, the pages that really send requests, and the demo all use this. Previews call the same
`prepare`, so they show exactly what would be sent.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from artifacts.core.detection.kinds import mime_kind
from capabilities.core.delivery.adaptation import CannotRead, is_sent_unchanged, summary
from capabilities.core.delivery.model_endpoint import ModelEndpoint, Prepared, with_forwarded_headers
from capabilities.core.delivery.reader import ContentPolicy
from capabilities.core.delivery.vendor_items import restore_names, restore_names_in
from capabilities.core.message import ChatRequest, Message, NativePart, Role, TextPart, UnreadableError
from capabilities.core.operations.passthrough import REQUIRED_PROTOCOL, PassthroughCall
from capabilities.core.operations.table import FormFile
from capabilities.core.protocols.custom_tools import CustomCalls, restore_custom
from capabilities.core.protocols.echo import embedded
from capabilities.core.protocols.echo.stream import build_events
from capabilities.core.protocols.stream import answer_events
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
from routing_admin.platform.server.resources import short_switches
from routing_admin.upstream import Stream, process_upstream

if TYPE_CHECKING:
    from routing_admin.dispatch.descriptions.cache import DescriptionCache
    from routing_admin.dispatch.descriptions.describing import Describing


class Transport(Protocol):
    """Interface for calls to providers; `proxy` is the proxy setting of the provider."""

    async def call(
        self, prepared: Prepared, endpoint: ModelEndpoint, timeouts: Timeouts, proxy: str
    ) -> Answer | Failure:
        """Return the complete answer or the failure."""

    async def open(
        self, prepared: Prepared, endpoint: ModelEndpoint, timeouts: Timeouts, proxy: str
    ) -> Stream | Failure:
        """Return a stream once its first content has arrived, or the failure."""


class NetworkTransport:
    """Calls providers over the network. The built-in provider answers within this process."""

    async def call(
        self, prepared: Prepared, endpoint: ModelEndpoint, timeouts: Timeouts, proxy: str
    ) -> Answer | Failure:
        if is_embedded(endpoint.target.endpoint):
            return embedded.answer(prepared.chat, endpoint.target.model)
        outcome = await process_upstream().call(prepared.request, endpoint.protocol, timeouts, proxy)
        if prepared.tool_names and isinstance(outcome, Answer):
            outcome = restore_names(outcome, prepared.tool_names)
        if prepared.custom_tools and isinstance(outcome, Answer):
            outcome = restore_custom(outcome, prepared.custom_tools)
        return outcome

    async def open(
        self, prepared: Prepared, endpoint: ModelEndpoint, timeouts: Timeouts, proxy: str
    ) -> Stream | Failure:
        if is_embedded(endpoint.target.endpoint):
            outcome = embedded.answer(prepared.chat, endpoint.target.model)
            return outcome if isinstance(outcome, Failure) else Stream(build_events(outcome))
        opened = await process_upstream().open(prepared.request, endpoint.protocol, timeouts, proxy)
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
    """Function that runs work in a thread, because it may read or store files."""

    async def __call__(self, work: Callable[[], R], /) -> R: ...


END_OF_TURN = "end_turn"
"""Anthropic's stop reason for a turn that the model itself has ended."""
Send = Callable[[Prepared, ModelEndpoint, Timeouts, str], Awaitable[T | Failure]]


async def run_in_own_thread(work: Callable[[], R], /) -> R:
    """Run `work` in a thread, which continues even if the request ends.

    Afterwards, close the database connections of the thread.
    """
    with short_switches():
        return await asyncio.to_thread(partial(_with_rows, work))


def _with_rows(work: Callable[[], R]) -> R:
    with borrowed_connections():
        return work()


@owned
def process_run_context() -> RunContext:
    return process_context()


@dataclass(slots=True)
class Dispatch:
    """A planned request that is being sent.

    - `prepared`: the request as prepared for each candidate, by position in the chain
    - `request_id`, `caller_headers`: sent to providers that accept them
    - `reservation`: what this call has reserved of the agent's limits
    - `begin_describing`: creates `describing`, which asks a model to describe files that a candidate cannot read; if
      None, no model is asked
    - `is_heavy`: prepare the request in a thread even if it contains no files
    - `delivered_failures`: after the run, the failures to describe a file of which a model was informed
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
    reservation: Reservation | None = None
    begin_describing: Callable[[], Describing] | None = None
    describing: Describing | None = None
    is_heavy: bool = False
    delivered_failures: DescriptionCache | None = None

    def beside(self, planned: PlannedRequest, request_id: str) -> Dispatch:
        """Return a dispatch for an additional request, which uses the same transport."""
        return Dispatch(planned, self.transport, self.run_context, in_thread=self.in_thread, request_id=request_id)

    def elapsed_ms(self) -> float:
        return self.run.elapsed_ms() if self.run else 0.0

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        return tuple(self.run.attempts) if self.run else ()

    async def answer(self) -> RunResult[Answer]:
        """Return the complete answer; raise `RouterError` with all attempts."""
        run: FallbackRun[Answer] = FallbackRun(self.planned.plan, self.run_context)
        return await self._drive(run, self.transport.call, lambda answer: answer)

    async def open(self) -> RunResult[Stream]:
        """Return the stream once its first content has arrived; raise `RouterError` with all attempts."""
        run: FallbackRun[Stream] = FallbackRun(self.planned.plan, self.run_context, stream=True)
        return await self._drive(run, self.transport.open, lambda answer: Stream(answer_events(answer)))

    async def keep(self, media: Sequence[Media], maker: str) -> tuple[Media, ...]:
        return await self.in_thread(partial(_keep_all, tuple(media), self.keep_media, maker))

    async def _drive(self, run: FallbackRun[T], send: Send[T], wrap: Callable[[Answer], T]) -> RunResult[T]:
        self.run = run

        async def ask(call: Call) -> Reply[T]:
            chat = apply_params(self.planned.chat, call)
            try:
                reply = await self._try(call, chat, send)
            # A file's bytes were deleted after planning. Tell the model that the file is unreadable instead of failing.
            except UnreadableError:
                reply = await self._try(call, await self.in_thread(partial(mark_unreadable, chat)), send)
            empty_answer = find_empty_answer(reply.outcome, chat) if isinstance(reply.outcome, Failure) else None
            return replace(reply, outcome=wrap(empty_answer)) if empty_answer else reply

        return await drive_async(run, ask, asyncio.sleep)

    async def _try(self, call: Call, chat: ChatRequest, send: Send[T]) -> Reply[T]:
        drill = self.planned.state.drill
        # The candidate's provider is not called during a fire drill.
        if drill is not None and drill.stops(call.candidate.provider, time.time()):
            return Reply(drill.failure())
        endpoint = self.planned.endpoint(call.candidate.index)
        if call.key is not None:
            endpoint = with_key(endpoint, self.planned.state, call.key)
        describes = ContentPolicy.DESCRIBER in endpoint.reader.policies and chat.has_files
        began = self.elapsed_ms() if describes else 0.0
        prepared = await self._prepared(chat, endpoint, call)
        if isinstance(prepared, CannotRead):
            return Reply(Failure(Fault.CAPABILITY_MISMATCH, prepared.reason.sentence()))
        self.prepared[call.candidate.index] = prepared
        if endpoint.passes:
            # Add the caller's headers only now, so that the copy for the request log does not contain them.
            headers = {**self.caller_headers, "x-request-id": self.request_id}
            prepared = with_forwarded_headers(prepared, endpoint.passes, headers)
        timeouts = call.timeouts
        if describes:
            # Time spent on descriptions counts towards the candidate's timeouts.
            timeouts = shorten(timeouts, (self.elapsed_ms() - began) / 1000)
        outcome = await send(prepared, endpoint, timeouts, self.planned.proxy(call.candidate.provider))
        dropped = list_dropped(self.planned.chat, prepared, call)
        return Reply(outcome, summary(prepared.deliveries), dropped)

    async def _prepared(self, chat: ChatRequest, endpoint: ModelEndpoint, call: Call) -> Prepared | CannotRead:
        work = partial(prepare_for, self.planned, chat, endpoint, call)
        if not chat.has_files or (not call.without_capabilities and is_sent_unchanged(chat, endpoint.reader)):
            return await self.in_thread(work) if self.is_heavy else work()
        if ContentPolicy.DESCRIBER not in endpoint.reader.policies:
            return await self.in_thread(work)
        if self.describing is None and self.begin_describing is not None:
            self.describing = self.begin_describing()
        if self.describing is not None:
            return await self.describing.prepare(chat, endpoint, call)
        return await self.in_thread(partial(prepare_for, self.planned, chat, without_describing(endpoint), call))


def find_empty_answer(failed: Failure, chat: ChatRequest) -> Answer | None:
    """Return an empty answer if Claude ended its turn without text after a tool result, otherwise None."""
    # Anthropic documents this under "Handling stop reasons", "Empty responses": the model has nothing to add. A retry
    # or another candidate would only cost money.
    after_tool = bool(chat.messages) and chat.messages[-1].role is Role.TOOL
    if failed.fault is Fault.EMPTY_CONTENT and failed.code == END_OF_TURN and after_tool:
        return Answer(usage=failed.usage or Usage())
    return None


def shorten(timeouts: Timeouts, seconds: float) -> Timeouts:
    """Return the timeouts for a call that starts `seconds` later than planned."""
    total = max(timeouts.total - seconds, 0.0)
    return replace(timeouts, total=total, first_content=min(timeouts.first_content, total))


def _keep_all(media: tuple[Media, ...], keep: KeepMedia | None, maker: str) -> tuple[Media, ...]:
    joined = join_sounds(media)
    return tuple(keep(item, maker) for item in joined) if keep else joined


__all__ = ["Dispatch", "process_run_context"]


# For requests that are passed through unchanged: decide which candidates can be called, and why others are skipped.

OTHER_PROTOCOL = translatable("%(call)s only works with providers that speak openai; %(provider)s speaks %(protocol)s.")
OTHER_MODEL = translatable(
    "%(call)s must stay on %(model)s, at any provider: results of different models cannot be mixed."
)
"""`OTHER_PROTOCOL` and `OTHER_MODEL` are templates of the reasons for skipping a candidate."""


def pass_through(planned: PlannedRequest, passing: PassthroughCall) -> PlannedRequest:
    """Return the request for unchanged delivery, with skip reasons for candidates that do not support the call."""
    supported = (candidate for candidate in planned.plan.candidates if candidate.protocol == REQUIRED_PROTOCOL)
    first = next(supported, None)
    # The results of some calls, such as embeddings, cannot be mixed between models. For these, only the first
    # candidate's model is used, even while it cannot be called.
    required_model = first.model if first is not None and passing.operation.same_model else None
    candidates = tuple(_judge(candidate, passing, required_model) for candidate in planned.plan.candidates)
    plan = replace(planned.plan, candidates=candidates, verbatim=True, language="")
    # The request log stores the form fields as one message. For files it stores only type and name.
    chat = _as_message(planned.chat) if planned.state.record_bodies else planned.chat
    return replace(planned, plan=plan, chat=chat)


def _as_message(chat: ChatRequest) -> ChatRequest:
    values = [(name, value if isinstance(value, tuple) else (value,)) for name, value in chat.extra.items()]
    texts = {
        name: strings
        for name, entries in values
        if (strings := [entry for entry in entries if not isinstance(entry, FormFile)])
    }
    files = (entry for _, entries in values for entry in entries if isinstance(entry, FormFile))
    fields = {name: entries[0] if len(entries) == 1 else entries for name, entries in texts.items()}
    facts = (NativePart(mime_kind(file.mime_type), file.mime_type, filename=file.filename) for file in files)
    return replace(chat, messages=(Message(Role.USER, (TextPart(json.dumps(fields, ensure_ascii=False)), *facts)),))


def _judge(candidate: PlannedCandidate, passing: PassthroughCall, required_model: str | None) -> PlannedCandidate:
    call = f"/v1{passing.operation.path}"
    if candidate.skip is SkipReason.MISSING:
        return candidate
    if candidate.protocol != REQUIRED_PROTOCOL:
        facts = {"call": call, "provider": candidate.provider, "protocol": candidate.protocol}
        return replace(
            candidate,
            skip=SkipReason.OTHER_PROTOCOL,
            skip_detail=translatable(OTHER_PROTOCOL, **facts),
            skip_param="model",
        )
    if required_model is not None and candidate.model != required_model:
        detail = translatable(OTHER_MODEL, call=call, model=required_model)
        return replace(candidate, skip=SkipReason.OTHER_MODEL, skip_detail=detail, skip_param="model")
    return candidate


# If Redis is configured, processes share cooldowns and the keys that conversations use. Requests read this state from
# memory. Changes are sent in the background, and changes by other processes are adopted.

CANDIDATES, KEYS, CONVERSATIONS = "candidates", "keys", "conversations"
MAX_COOLDOWNS = 2000
NO_COOLDOWN = "null"


def share_health(run_context: RunContext, news: News) -> None:
    """Share cooldowns, and the keys that conversations use, with other processes."""
    for topic, cooldowns in ((CANDIDATES, run_context.cooldowns), (KEYS, run_context.pools.health)):
        if isinstance(cooldowns, LocalCooldowns):
            SharedCooldowns(topic, cooldowns, news).begin()
    SharedConversations(run_context.pools, news).begin()


class SharedCooldowns:
    """Cooldowns that processes share through one Redis topic.

    For each candidate the latest state applies, whichever process sent it.
    """

    def __init__(self, topic: str, cooldowns: LocalCooldowns, news: News) -> None:
        self._topic, self._cooldowns, self._news = topic, cooldowns, news

    def begin(self) -> None:
        self._cooldowns.watcher = self.publish
        self._news.follow(self._topic, MAX_COOLDOWNS, self.adopt)

    def publish(self, key: Key) -> None:
        self._news.publish(self._topic, json.dumps(key), lambda: self._render(key))

    def _render(self, key: Key) -> Fields:
        cooldown = self._cooldowns.read_state(key)
        return {"key": json.dumps(key), "ailment": json.dumps(asdict(cooldown)) if cooldown else NO_COOLDOWN}

    def adopt(self, fields: Fields, age: float) -> None:
        """Adopt the state of a candidate that another process sent `age` seconds ago."""
        # If this process has a state that has not been sent yet, that state is newer and takes precedence.
        if self._news.is_waiting(self._topic, fields["key"]):
            return
        provider, model = json.loads(fields["key"])
        value = json.loads(fields["ailment"])
        self._cooldowns.take_over((provider, model), None if value is None else _parse_cooldown(value, age))


def _parse_cooldown(value: Mapping[str, Any], age: float) -> CooldownState:
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
    """Shares between processes, through one Redis topic, which provider key each conversation uses."""

    def __init__(self, pools: KeyPools, news: News) -> None:
        self._pools, self._news = pools, news

    def begin(self) -> None:
        self._pools.watcher = self.publish
        self._news.follow(CONVERSATIONS, MAX_CONVERSATIONS, self.adopt)

    def publish(self, provider: str, affinity: str) -> None:
        subject = json.dumps([provider, affinity])
        self._news.publish(CONVERSATIONS, subject, lambda: self._render(provider, affinity))

    def _render(self, provider: str, affinity: str) -> Fields:
        return {"provider": provider, "affinity": affinity, "mark": self._pools.find_mark(provider, affinity)}

    def adopt(self, fields: Fields, age: float) -> None:
        """Adopt the key that another process chose for a conversation `age` seconds ago."""
        if not self._news.is_own(fields):
            self._pools.take_over(fields["provider"], fields["affinity"], fields["mark"], age)
