"""A fallback run over real sockets.

The run and its upstream session are connected as in the gateway, and the fault lab is the provider.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from capabilities.core.message import ChatRequest, Message, Role, TextPart
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.providers.origins import OriginPolicy
from capabilities.core.wire import Answer, Failure, StreamEvent, Target, UpstreamRequest, WireProtocol
from routing_admin.core.fallback.chain import Call, Plan, PlannedCandidate, RunResult, Timeouts
from routing_admin.core.fallback.errors import RouterError
from routing_admin.core.fallback.run import FallbackRun
from routing_admin.core.fallback.scripts import drive_async
from routing_admin.upstream import Stream, Upstream
from tests.fallback.scripted_runs import RealClock, Stage

QUICK = Timeouts(connect=1, first_content=0.5, between=0.6, total=5)
HELLO = ChatRequest((Message(Role.USER, (TextPart("hello"),)),), temperature=0.5)


def protocol(name: str) -> WireProtocol:
    return PROTOCOLS[name]


@dataclass
class NetworkRun:
    """A request's fallback run over the network. `urls` maps providers to URLs; all providers use the same protocol."""

    urls: Mapping[str, str]
    wire_protocol: WireProtocol
    stream: bool = False
    chat: ChatRequest = HELLO
    upstream: Upstream = field(default_factory=lambda: Upstream(OriginPolicy(everything=True)))
    stage: Stage = field(default_factory=lambda: Stage(RealClock()))
    keep: bool = False
    events: list[StreamEvent] = field(default_factory=list)

    def encode(self, call: Call) -> UpstreamRequest:
        candidate = call.candidate
        target = Target(candidate.provider, self.urls[candidate.provider], candidate.model, "sk-secret-key-1234567890")
        return self.wire_protocol.encode(self.chat, target, stream=self.stream)

    async def ask(self, call: Call) -> Answer | Stream | Failure:
        if self.stream:
            return await self.upstream.open(self.encode(call), self.wire_protocol, call.timeouts)
        return await self.upstream.call(self.encode(call), self.wire_protocol, call.timeouts)

    async def run(
        self, *candidates: PlannedCandidate, timeouts: Timeouts = QUICK
    ) -> RunResult[Answer | Stream] | RouterError:
        """Return the result or the error. A stream is read to its end, and its events are stored in `events`."""
        run: FallbackRun[Answer | Stream] = FallbackRun(
            Plan(candidates, timeouts=timeouts), self.stage.run_context, stream=self.stream
        )
        try:
            result = await drive_async(run, self.ask, self._sleep)
            if isinstance(result.answer, Stream):
                self.events = [event async for batch in result.answer for event in batch]
            return result
        except RouterError as error:
            return error
        finally:
            if not self.keep:
                await self.upstream.close()

    async def _sleep(self, seconds: float) -> None:
        self.stage.waits.append(seconds)
