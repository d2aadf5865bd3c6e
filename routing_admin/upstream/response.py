"""A response whose status and headers have arrived, and whose body has yet to be read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import field

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from capabilities.core.values import value_class
from capabilities.core.wire import Fault
from routing_admin.upstream.faults import CLIENT_ERRORS, classify_error

OWN_BODY_FAULTS = frozenset({Fault.BAD_HTTP, Fault.TOO_LARGE})
"""Faults of a body that are reported as they are; a body that is broken in any other way counts as truncated."""
READ_AFTER_END = "Connection closed."
"""Message of the plain RuntimeError that aiohttp raises if a body is read after its connection has been closed."""


class BrokenBodyError(Exception):
    """A body that ended early or violated HTTP; `fault` says which of the two."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.value)
        self.fault = fault


@value_class
class UpstreamResponse:
    """Head of a response with case-insensitive headers; `give_back` releases the connection."""

    status: int
    headers: Mapping[str, str]
    content: aiohttp.StreamReader = field(repr=False)
    give_back: Callable[[], None] = field(repr=False)

    async def block(self) -> bytes:
        """Return the next bytes of the body, still compressed, or b"" at its end.

        Of all errors that a provider can cause, this raises only `BrokenBodyError`.
        """
        try:
            return await self.content.readany()
        except CLIENT_ERRORS as error:
            fault = classify_error(error)
            raise BrokenBodyError(fault if fault in OWN_BODY_FAULTS else Fault.TRUNCATED_BODY) from error
        except RuntimeError as error:
            if str(error) != READ_AFTER_END:
                raise
            raise BrokenBodyError(Fault.BAD_HTTP) from error

    def close(self) -> None:
        """Return the connection to the pool, or close it if the body was not read to its end."""
        self.give_back()


def end_with(closed: asyncio.Future[None] | None, content: aiohttp.StreamReader) -> None:
    """Make pending reads of the body fail when the connection closes.

    `closed` is a future that is done when the connection closes, or None if it is already closed.
    """

    def fail_pending_reads(_: object) -> None:
        if not content.is_eof() and content.exception() is None:
            content.set_exception(HttpProcessingError(message="the connection was closed within the body"))

    def stop_watching() -> None:
        if closed is not None:
            closed.remove_done_callback(fail_pending_reads)

    if closed is None:
        fail_pending_reads(closed)
        return
    # Add only one callback per connection, no matter how many responses the connection carries.
    closed.remove_done_callback(note_end)
    closed.add_done_callback(note_end)
    closed.add_done_callback(fail_pending_reads)
    content.on_eof(stop_watching)


def note_end(closed: asyncio.Future[None]) -> None:
    # Retrieve the exception, because asyncio would otherwise log that it was never retrieved.
    if not closed.cancelled():
        closed.exception()
