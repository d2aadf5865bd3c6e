"""The way out to a provider: the network for everybody but the embedded one, which answers inside this process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Protocol

from capabilities.core.delivery.receiver import Prepared, Receiver
from capabilities.core.delivery.tool_rules import restore_names, restore_names_in
from capabilities.core.protocols.custom_tools import CustomCalls, restore_custom
from capabilities.core.protocols.echo import embedded
from capabilities.core.protocols.echo.stream import stream_of
from capabilities.core.providers.origins import is_embedded
from capabilities.core.wire import Answer, Failure, StreamEvent
from routing_admin.core.fallback.chain import Timeouts
from routing_admin.upstream import Stream, process_upstream


class Transport(Protocol):
    """The way out to a provider; `proxy` is the provider's setting."""

    async def call(self, prepared: Prepared, to: Receiver, timeouts: Timeouts, proxy: str) -> Answer | Failure:
        """A whole answer."""

    async def open(self, prepared: Prepared, to: Receiver, timeouts: Timeouts, proxy: str) -> Stream | Failure:
        """A stream that has its first content."""


class NetworkTransport:
    """The real way: the network for everybody but the embedded provider, which answers here."""

    async def call(self, prepared: Prepared, to: Receiver, timeouts: Timeouts, proxy: str) -> Answer | Failure:
        """A whole answer."""
        if is_embedded(to.target.endpoint):
            return embedded.answer(prepared.chat, to.target.model)
        outcome = await process_upstream().call(prepared.request, to.protocol, timeouts, proxy)
        if prepared.tool_names and isinstance(outcome, Answer):
            outcome = restore_names(outcome, prepared.tool_names)
        if prepared.custom_tools and isinstance(outcome, Answer):
            outcome = restore_custom(outcome, prepared.custom_tools)
        return outcome

    async def open(self, prepared: Prepared, to: Receiver, timeouts: Timeouts, proxy: str) -> Stream | Failure:
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
