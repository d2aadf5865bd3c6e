"""Which request heads are refused although the parser reads them (RFC 9112, 2.3, 3.2, 6.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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
