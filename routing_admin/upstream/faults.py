"""From a client's exception to a fault: read from its cause, since the client wraps what it met.

`ORDER` is the one map, and `CLIENT_ERRORS`, what is caught, is what stands in it. Anything else that is raised is a
fault of our own and goes on as the exception it is.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

import aiohttp
from aiohttp import http_exceptions

from capabilities.core.wire import Failure, Fault
from routing_admin.core.fallback.table import TABLE


class ForbiddenAddressError(OSError):
    """A host resolved to an address that may not be called; `sentence` says which setting would allow it."""

    def __init__(self, sentence: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence


def failure(fault: Fault, status: int | None = None) -> Failure:
    """A failure with the table's sentence."""
    row = TABLE[fault]
    return Failure(fault, row.message or row.meaning, status)


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """An exception and all it was raised from."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


ORDER: tuple[tuple[Fault, tuple[type[Exception], ...]], ...] = (
    (Fault.ORIGIN_REFUSED, (ForbiddenAddressError,)),
    (
        Fault.TLS_CERT_ERROR,
        (
            ssl.SSLCertVerificationError,
            aiohttp.ClientConnectorCertificateError,
            aiohttp.ServerFingerprintMismatch,
        ),
    ),
    (Fault.DNS_ERROR, (aiohttp.ClientConnectorDNSError, socket.gaierror)),
    (Fault.CONNECT_REFUSED, (ConnectionRefusedError,)),
    (Fault.TLS_ERROR, (aiohttp.ClientSSLError, ssl.SSLError)),
    (Fault.CONNECT_TIMEOUT, (aiohttp.ConnectionTimeoutError,)),
    (Fault.READ_TIMEOUT, (aiohttp.ServerTimeoutError,)),
    (Fault.TOO_LARGE, (http_exceptions.LineTooLong, http_exceptions.DecompressSizeError)),
    (Fault.TRUNCATED_BODY, (aiohttp.ClientPayloadError,)),
    (Fault.REDIRECT, (aiohttp.TooManyRedirects, aiohttp.RedirectClientError)),
    (Fault.CONNECT_REFUSED, (aiohttp.ClientHttpProxyError,)),
    (Fault.BAD_HTTP, (aiohttp.ClientResponseError, http_exceptions.HttpProcessingError)),
    (Fault.RESET_BEFORE_HEADERS, (aiohttp.ServerDisconnectedError, ConnectionResetError, BrokenPipeError)),
    (Fault.CONNECT_REFUSED, (aiohttp.ClientConnectorError,)),
    (Fault.ORIGIN_REFUSED, (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError)),
    (Fault.RESET_BEFORE_HEADERS, (aiohttp.ClientError,)),
    (Fault.READ_TIMEOUT, (TimeoutError,)),
    (Fault.RESET_BEFORE_HEADERS, (OSError,)),
    (Fault.ORIGIN_REFUSED, (ValueError,)),
)
"""Tried from top to bottom: the first kind found anywhere among the causes names the fault.

What the client says comes before what its transport makes of it; the last rows hold the bases, so that a kind a new
version adds is a fault, too. A bare ValueError is how the client refuses an address or a header it cannot write.
"""

CLIENT_ERRORS = tuple(kind for _, kinds in ORDER for kind in kinds)
"""All that a call can raise for what a provider, the network or the configuration does."""


def fault_of(error: BaseException) -> Fault:
    """What a failure to connect, send or get headers is; an error that is not the client's is raised again."""
    causes = list(chain_of(error))
    if _within_handshake(causes):
        return Fault.TLS_ERROR
    for fault, kinds in ORDER:
        if any(isinstance(cause, kinds) for cause in causes):
            return fault
    raise error


def _within_handshake(causes: list[BaseException]) -> bool:
    """A connection that was accepted and then lost while it was still being made: only encrypting is in between."""
    connecting = any(isinstance(cause, aiohttp.ClientConnectorError) for cause in causes)
    return connecting and any(isinstance(cause, ConnectionResetError | ConnectionAbortedError) for cause in causes)


def connection_failure(error: BaseException) -> Failure:
    """The failure of a call that never got headers."""
    fault = fault_of(error)
    forbidden = next((cause for cause in chain_of(error) if isinstance(cause, ForbiddenAddressError)), None)
    return Failure(fault, forbidden.sentence) if forbidden is not None else failure(fault)
