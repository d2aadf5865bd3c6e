"""An answer whose head is here: its status, its headers, and its body still to be read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import field

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from capabilities.core.values import value_class
from capabilities.core.wire import Fault
from routing_admin.upstream.faults import CLIENT_ERRORS, fault_of

OWN_BODY_FAULTS = frozenset({Fault.BAD_HTTP, Fault.TOO_LARGE})
"""What is told of a body that broke off, where the reason is known."""
READ_AFTER_END = "Connection closed."
"""What the client says, as a bare RuntimeError, to who reads on after the connection was closed within the body."""


class BrokenBodyError(Exception):
    """A body that came to no end of its own; `fault` says whether it broke off, or broke the rules of HTTP."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.value)
        self.fault = fault


@value_class
class UpstreamResponse:
    """The head of an answer; names of headers are found in any case. `give_back` is for the connection."""

    status: int
    headers: Mapping[str, str]
    content: aiohttp.StreamReader = field(repr=False)
    give_back: Callable[[], None] = field(repr=False)

    async def block(self) -> bytes:
        """What has come of the body, still encoded; empty at its end.

        Raises `BrokenBodyError`, and nothing else for what a provider does.
        """
        try:
            return await self.content.readany()
        except CLIENT_ERRORS as error:
            fault = fault_of(error)
            raise BrokenBodyError(fault if fault in OWN_BODY_FAULTS else Fault.TRUNCATED_BODY) from error
        except RuntimeError as error:
            if str(error) != READ_AFTER_END:
                raise
            raise BrokenBodyError(Fault.BAD_HTTP) from error

    def close(self) -> None:
        """Give the connection back, or close it when the body is not read to its end."""
        self.give_back()


def end_with(closed: asyncio.Future[None] | None, content: aiohttp.StreamReader) -> None:
    """Fails what still waits for the body once the connection is closed; None means that it is."""

    def over(_: object) -> None:
        if not content.is_eof() and content.exception() is None:
            content.set_exception(HttpProcessingError(message="the connection was closed within the body"))

    def no_more() -> None:
        if closed is not None:
            closed.remove_done_callback(over)

    if closed is None:
        over(closed)
        return
    closed.remove_done_callback(note_end)  # one for each connection, however many answers it carries
    closed.add_done_callback(note_end)
    closed.add_done_callback(over)
    content.on_eof(no_more)


def note_end(closed: asyncio.Future[None]) -> None:
    """Takes note of how a connection ended, so that nobody has to be told of it."""
    if not closed.cancelled():
        closed.exception()
