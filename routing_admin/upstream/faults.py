"""Map exceptions of the HTTP client to faults by their causes, because the client wraps the exceptions that it catches.

`ORDER` lists all of these exceptions, which are also in `CLIENT_ERRORS`. Any other exception is a bug of ours and
propagates.
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
    """A host resolved to an address that is not allowed; `sentence` names the setting that would allow it."""

    def __init__(self, sentence: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence


def failure(fault: Fault, status: int | None = None) -> Failure:
    row = TABLE[fault]
    return Failure(fault, row.message or row.meaning, status)


def list_causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


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
"""Faults and their exception types, checked from top to bottom: the first type found among the causes determines the
fault.

The client's own types precede those of its transport. The last rows are base classes, so that types that a new version
adds also count as faults. The client raises a bare ValueError for a URL or a header that cannot be written.
"""

CLIENT_ERRORS = tuple(kind for _, kinds in ORDER for kind in kinds)
"""All exceptions that a provider, the network or the configuration can cause in a call."""


def classify_error(error: BaseException) -> Fault:
    """Return the fault for an exception that was raised while connecting, sending, or receiving headers.

    Re-raise an exception that is not from the HTTP client.
    """
    causes = list(list_causes(error))
    if _within_handshake(causes):
        return Fault.TLS_ERROR
    for fault, kinds in ORDER:
        if any(isinstance(cause, kinds) for cause in causes):
            return fault
    raise error


def _within_handshake(causes: list[BaseException]) -> bool:
    # If a connection is accepted but lost before it can be used, the TLS handshake has failed.
    connecting = any(isinstance(cause, aiohttp.ClientConnectorError) for cause in causes)
    return connecting and any(isinstance(cause, ConnectionResetError | ConnectionAbortedError) for cause in causes)


def connection_failure(error: BaseException) -> Failure:
    """Return the failure of a call that ended before any response headers."""
    fault = classify_error(error)
    forbidden = next((cause for cause in list_causes(error) if isinstance(cause, ForbiddenAddressError)), None)
    return Failure(fault, forbidden.sentence) if forbidden is not None else failure(fault)
