"""From a client's exception to a fault: read from its cause, since the transport files most of them as timeouts."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

import aiohttp
import httpx

from capabilities.core.wire import Failure, Fault
from capabilities.core.worded import worded


class ForbiddenAddressError(OSError):
    """A host resolved to an address that may not be called; the sentence says which setting would allow it."""


SENTENCES = {
    Fault.DNS_ERROR: worded("The provider's host name does not resolve."),
    Fault.CONNECT_REFUSED: worded("Nothing listens at the provider's address."),
    Fault.CONNECT_TIMEOUT: worded("No connection to the provider within the time for it."),
    Fault.TLS_ERROR: worded("The encrypted connection to the provider could not be set up."),
    Fault.TLS_CERT_ERROR: worded("The provider's certificate is not valid."),
    Fault.RESET_BEFORE_HEADERS: worded("The provider closed the connection before it answered."),
    Fault.READ_TIMEOUT: worded("The provider sent nothing within the time for a first answer."),
    Fault.TTFT_TIMEOUT: worded("The provider began a stream and sent no content in time."),
    Fault.DEADLINE: worded("The total time of the request is used up."),
    Fault.TRUNCATED_BODY: worded("The provider's answer broke off before its end."),
    Fault.SLOW_BODY: worded("The provider's answer came too slowly."),
    Fault.TOO_LARGE: worded("The provider's answer is larger than is read."),
    Fault.REDIRECT: worded(
        "The provider answered with a redirect, and redirects are not followed. Correct its endpoint."
    ),
    Fault.STREAM_EMPTY: worded("The provider's stream ended without a word."),
    Fault.STREAM_STALL: worded("The provider's stream fell silent."),
    Fault.STREAM_BROKEN: worded("The provider's stream broke."),
    Fault.EMPTY_CONTENT: worded("The provider's answer says nothing."),
    Fault.BAD_CONTENT_TYPE: worded("The provider's answer is encoded in a way that was not asked for."),
}


def failure(fault: Fault, status: int | None = None) -> Failure:
    """A failure with its plain sentence."""
    return Failure(fault, SENTENCES[fault], status)


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """An exception and all it was raised from."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def fault_of(error: BaseException) -> Fault:
    """What a failure to connect, send or get headers is."""
    causes = list(chain_of(error))
    if _within_handshake(causes):
        return Fault.TLS_ERROR
    for fault, kinds in ORDER:
        if any(isinstance(cause, kinds) for cause in causes):
            return fault
    return Fault.RESET_BEFORE_HEADERS


def _within_handshake(causes: list[BaseException]) -> bool:
    """A connection that was accepted and then lost while it was still being made: only encrypting is in between."""
    connecting = any(isinstance(cause, aiohttp.ClientConnectorError) for cause in causes)
    return connecting and any(isinstance(cause, ConnectionResetError | ConnectionAbortedError) for cause in causes)


ORDER: tuple[tuple[Fault, tuple[type[BaseException], ...]], ...] = (
    (Fault.ORIGIN_REFUSED, (ForbiddenAddressError,)),
    (Fault.TLS_CERT_ERROR, (ssl.SSLCertVerificationError, aiohttp.ClientConnectorCertificateError)),
    (Fault.DNS_ERROR, (aiohttp.ClientConnectorDNSError, socket.gaierror)),
    (Fault.CONNECT_REFUSED, (ConnectionRefusedError,)),
    (Fault.TLS_ERROR, (aiohttp.ClientConnectorSSLError, ssl.SSLError)),
    (Fault.CONNECT_TIMEOUT, (aiohttp.ConnectionTimeoutError,)),
    (Fault.READ_TIMEOUT, (aiohttp.SocketTimeoutError, httpx.ReadTimeout)),
    (Fault.RESET_BEFORE_HEADERS, (aiohttp.ServerDisconnectedError, ConnectionResetError, BrokenPipeError)),
    (Fault.CONNECT_REFUSED, (aiohttp.ClientConnectorError,)),
)
"""Tried from top to bottom: the first kind found anywhere among the causes names the fault."""


def connection_failure(error: BaseException) -> Failure:
    """The failure of a call that never got headers."""
    fault = fault_of(error)
    forbidden = next((cause for cause in chain_of(error) if isinstance(cause, ForbiddenAddressError)), None)
    return Failure(fault, str(forbidden)) if forbidden is not None else failure(fault)
