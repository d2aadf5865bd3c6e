"""Read requests strictly and within limits, through the public names of uvicorn's parser.

Requests that a proxy and this server may interpret differently are rejected (RFC 9112, 11.2), trailers are dropped, and
bytes outside of bodies are bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from routing_admin.platform.server.answers import refusal_parts
from routing_admin.platform.server.request_id import read_scope_id

# Request heads that the parser accepts but this module rejects (RFC 9112, 2.3, 3.2, 6.1).

MAX_HEADERS = 256
Headers = Sequence[tuple[bytes, bytes]]


class HeadProblem(NamedTuple):
    """Status, code and message of the response to a request that is rejected before it reaches the application."""

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
    """Return why a request head is rejected, or None if it is valid; `names` are its header names in lower case."""
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
    """Return the approximate length of a request head in bytes."""
    return len(url) + sum(len(name) + len(value) + 4 for name, value in headers)


def head_without_upgrade(method: bytes, url: bytes, version: str, headers: Headers) -> bytes:
    """Return the request head without the header that requests an upgrade to another protocol."""
    remaining = [(name, value) for name, value in headers if name != b"upgrade"]
    lines = b"".join(b"%b: %b\r\n" % pair for pair in remaining)
    return b"%b %b HTTP/%b\r\n%b\r\n" % (method, url, version.encode(), lines)


class _Dropped(list[tuple[bytes, bytes]]):
    """List that drops what is appended to it: the trailers of a chunked body, which no part of the program reads."""

    def append(self, _: tuple[bytes, bytes]) -> None: ...


TRAILERS = _Dropped()


MAX_PIPELINED = 32
"""Maximum number of pipelined requests on a connection that may wait for earlier responses."""


class RequestReader(HttpToolsProtocol):
    """Connection that parses requests, and runs or rejects them; the subclass `Protocol` adds timeouts."""

    _max_head = 65_536
    _whole = False
    """Whether the newest request has been received completely."""
    _received = 0
    """Number of bytes received of the current head or body, without the first block."""
    _block = 0
    _framing = 0
    """Number of bytes that frame a chunked body (chunk sizes, extensions, trailers), minus the size of the body."""
    _problem: HeadProblem | None = None
    _running: RequestResponseCycle | None = None
    """The request that is being answered; `cycle` is the newest request, which may still be waiting."""
    url = b""

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        # uvicorn ends only the newest request, which is not the running one if requests are pipelined.
        if self._running is not None and not self._running.response_complete:
            _disconnect(self._running)

    def data_received(self, data: bytes) -> None:
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
        super().on_message_begin()
        self._whole = False

    def on_headers_complete(self) -> None:
        version, method = self.parser.get_http_version(), self.parser.get_method()
        names = [name for name, _ in self.headers]
        if self._block + self._received > self._max_head and head_length(self.url, self.headers) > self._max_head:
            self._problem = self._too_large("request headers")
        else:
            self._problem = head_problem(version, method, self.headers, names)
        if self._problem or len(self.pipeline) >= MAX_PIPELINED:
            # httptools turns this error into an HttpParserError, and `data_received` then rejects the request.
            raise ValueError("this request is not read")
        if self.parser.should_upgrade():
            return
        if version == "1.0":
            # HTTP/1.0 has no `100 Continue` response.
            self.expect_100_continue = False
        super().on_headers_complete()
        if not self.pipeline:
            self._running = self.cycle
        if b"transfer-encoding" in names:
            self.headers, self._framing = TRAILERS, -self._block

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        if self.headers is TRAILERS:
            self._framing -= 2 * len(body)

    def on_message_complete(self) -> None:
        # A request with an `Upgrade` header is parsed again, without that header.
        if not self.parser.should_upgrade():
            super().on_message_complete()
            self._whole = True

    def on_response_complete(self) -> None:
        if self.pipeline:
            self._running = self.pipeline[-1][0]
        super().on_response_complete()

    def _parse(self, data: bytes) -> None:
        while True:
            try:
                self.parser.feed_data(data)
            # RFC 9110, 7.8 allows ignoring an upgrade, so read the request as usual, including its body.
            except httptools.HttpParserUpgrade as upgrade:
                parser = self.parser
                head = head_without_upgrade(parser.get_method(), self.url, parser.get_http_version(), self.headers)
                data = head + data[upgrade.args[0] :]
                self.parser = httptools.HttpRequestParser(self)
            else:
                return

    def _count_framing(self) -> None:
        self._framing += self._block
        # Framing that exceeds the body by more than the maximum size of a head is refused.
        if self._framing > self._max_head:
            self._refuse(*self._too_large("chunk extensions and trailers"))

    def _too_large(self, subject: str) -> HeadProblem:
        return HeadProblem(431, "head_too_large", f"The {subject} are larger than {self._max_head} bytes. Send fewer.")

    def _refuse(self, status: int, code: str, message: str) -> None:
        """Send an error if a response is still possible; close the connection after earlier requests are answered."""
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
                self._write_refusal(status, code, message, running.scope["raw_path"], read_scope_id(running.scope))
            _disconnect(running)
        self._close()

    def _write_refusal(self, status: int, code: str, message: str, url: bytes, request_id: str = "") -> None:
        if self.transport.is_closing():
            return
        headers, body = refusal_parts(url.decode("latin-1"), status, code, message, request_id)
        lines = b"".join(b"%s: %s\r\n" % pair for pair in [*self.server_state.default_headers, *headers])
        self.transport.write(STATUS_LINE[status] + lines + b"\r\n" + body)

    def _stop_timer(self) -> None: ...

    def _close(self) -> None:
        self._stop_timer()
        if not self.transport.is_closing():
            self.transport.close()


def _disconnect(cycle: RequestResponseCycle) -> None:
    cycle.disconnected = True
    cycle.message_event.set()
