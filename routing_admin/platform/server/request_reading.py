"""How requests are read from a connection: uvicorn's parser, bounded and strict, by its public names alone.

What two servers in a row may read differently is refused (RFC 9112, 11.2), trailers are dropped, and what a caller
sends besides bodies is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from routing_admin.platform.server.refusals import refusal_parts
from routing_admin.platform.server.request_id import request_id_of_scope

# Which request heads are refused although the parser reads them (RFC 9112, 2.3, 3.2, 6.1).

MAX_HEADERS = 256
Headers = Sequence[tuple[bytes, bytes]]


class HeadProblem(NamedTuple):
    """Why a request is refused before it has an application."""

    status: int
    code: str
    message: str


MALFORMED = HeadProblem(400, "bad_request", "This is not a valid HTTP request.")
_VERSION = HeadProblem(505, "http_version_not_supported", "Send HTTP/1.1 or HTTP/1.0.")
_HOST = HeadProblem(400, "bad_host", "A request needs exactly one Host header.")
_CODING = HeadProblem(501, "unsupported_transfer_encoding", "The only Transfer-Encoding that is read is chunked.")
_LENGTHS = HeadProblem(400, "ambiguous_length", "Send a body by Content-Length, or chunked over HTTP/1.1, not by both.")
_TOO_MANY = HeadProblem(431, "head_too_large", f"A request may have {MAX_HEADERS} headers. Send fewer.")
_TUNNEL = HeadProblem(501, "method_not_implemented", "This server is no proxy. Use another method than CONNECT.")


def head_problem(version: str, method: bytes, headers: Headers, names: Sequence[bytes]) -> HeadProblem | None:
    """Return why a head is refused; `names` are those of its headers, in lower case."""
    if version not in ("1.1", "1.0"):
        return _VERSION
    if names.count(b"host") != 1 and (version == "1.1" or b"host" in names):
        return _HOST
    if len(names) > MAX_HEADERS:
        return _TOO_MANY
    if b"transfer-encoding" in names:
        if version == "1.0" or names.count(b"transfer-encoding") > 1 or b"content-length" in names:
            return _LENGTHS
        if dict(headers)[b"transfer-encoding"].strip().lower() != b"chunked":
            return _CODING
    return _TUNNEL if method == b"CONNECT" else None


def head_length(url: bytes, headers: Headers) -> int:
    """Return the bytes of a head as it is usually written."""
    return len(url) + sum(len(name) + len(value) + 4 for name, value in headers)


def head_without_upgrade(method: bytes, url: bytes, version: str, headers: Headers) -> bytes:
    """Return the head of the same request as one that does not ask for another protocol."""
    kept = [(name, value) for name, value in headers if name != b"upgrade"]
    lines = b"".join(b"%b: %b\r\n" % pair for pair in kept)
    return b"%b %b HTTP/%b\r\n%b\r\n" % (method, url, version.encode(), lines)


class _Dropped(list[tuple[bytes, bytes]]):
    """Keeps nothing: the trailers of a chunked body, which no part of the program reads."""

    def append(self, _: tuple[bytes, bytes]) -> None:
        """Drop it."""


TRAILERS = _Dropped()


MAX_PIPELINED = 32
"""Requests that may wait on a connection for the answers before theirs."""


class RequestReader(HttpToolsProtocol):
    """A connection whose requests are parsed, refused and started; how long they may take is not its concern."""

    _max_head = 65_536
    _whole = False
    """Whether all of the newest request is here."""
    _received = 0
    """Bytes of the part being received since its second block."""
    _block = 0
    _framing = 0
    """Bytes of a chunked body's framing, less those of the body itself."""
    _problem: HeadProblem | None = None
    _running: RequestResponseCycle | None = None
    """The request being answered; `cycle` is the newest, which may wait behind it."""
    url = b""

    def connection_lost(self, exc: Exception | None) -> None:
        """End the request being answered, which is not the newest where more are pipelined behind it."""
        super().connection_lost(exc)
        if self._running is not None and not self._running.response_complete:
            _disconnect(self._running)

    def data_received(self, data: bytes) -> None:
        """Read the next bytes, or refuse them."""
        self._block = len(data)
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None
        try:
            self._parse(data)
        except httptools.HttpParserError:
            self._refuse(*(self._problem or MALFORMED))
            return
        if self.headers is TRAILERS and not self._whole:
            self._count_framing()

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._whole = False

    def on_headers_complete(self) -> None:
        """Start the request. Raise `ValueError` where its head is refused."""
        version, method = self.parser.get_http_version(), self.parser.get_method()
        names = [name for name, _ in self.headers]
        if self._block + self._received > self._max_head and head_length(self.url, self.headers) > self._max_head:
            self._problem = self._too_large("request headers")
        else:
            self._problem = head_problem(version, method, self.headers, names)
        if self._problem or len(self.pipeline) >= MAX_PIPELINED:
            raise ValueError("this request is not read")
        if self.parser.should_upgrade():
            return
        if version == "1.0":
            self.expect_100_continue = False
        super().on_headers_complete()
        if not self.pipeline:
            self._running = self.cycle
        if b"transfer-encoding" in names:
            self.headers, self._framing = TRAILERS, -self._block

    def on_body(self, body: bytes) -> None:
        """Take some of a body."""
        super().on_body(body)
        if self.headers is TRAILERS:
            self._framing -= 2 * len(body)

    def on_message_complete(self) -> None:
        """End a request, except one that is parsed again without its upgrade."""
        if not self.parser.should_upgrade():
            super().on_message_complete()
            self._whole = True

    def on_response_complete(self) -> None:
        """Begin the next request that waits."""
        if self.pipeline:
            self._running = self.pipeline[-1][0]
        super().on_response_complete()

    def _parse(self, data: bytes) -> None:
        """Parse; a request for another protocol is read as one without, body and all, as RFC 9110, 7.8 allows."""
        while True:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                parser = self.parser
                head = head_without_upgrade(parser.get_method(), self.url, parser.get_http_version(), self.headers)
                data = head + data[upgrade.args[0] :]
                self.parser = httptools.HttpRequestParser(self)
            else:
                return

    def _count_framing(self) -> None:
        """Bound extensions of chunks and trailers: no more than the body and a head may have together."""
        self._framing += self._block
        if self._framing > self._max_head:
            self._refuse(*self._too_large("chunk extensions and trailers"))

    def _too_large(self, what: str) -> HeadProblem:
        return HeadProblem(431, "head_too_large", f"The {what} are larger than {self._max_head} bytes. Send fewer.")

    def _refuse(self, status: int, code: str, message: str) -> None:
        """Say why, where an answer can still be given, and close; answers to earlier requests are finished first."""
        running, begins = self._running, self.cycle is None or self.scope is not self.cycle.scope
        if running is None or running.response_complete:
            if begins:
                self._write_refusal(status, code, message, self.url)
        elif begins:
            self.cycle.keep_alive = False
            self.flow.pause_reading()
            self._stop_timer()
            return
        else:
            if running is self.cycle and not running.response_started:
                self._write_refusal(
                    status, code, message, running.scope["raw_path"], request_id_of_scope(running.scope)
                )
            _disconnect(running)
        self._close()

    def _write_refusal(self, status: int, code: str, message: str, url: bytes, request_id: str = "") -> None:
        if self.transport.is_closing():
            return
        headers, body = refusal_parts(url.decode("latin-1"), status, code, message, request_id)
        lines = b"".join(b"%s: %s\r\n" % pair for pair in [*self.server_state.default_headers, *headers])
        self.transport.write(STATUS_LINE[status] + lines + b"\r\n" + body)

    def _stop_timer(self) -> None:
        """Stop waiting for what a request still owes."""

    def _close(self) -> None:
        self._stop_timer()
        if not self.transport.is_closing():
            self.transport.close()


def _disconnect(cycle: RequestResponseCycle) -> None:
    cycle.disconnected = True
    cycle.message_event.set()
