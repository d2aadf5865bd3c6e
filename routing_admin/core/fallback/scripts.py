"""Scripted outcomes: what a simulation lets a candidate answer with, by the word its page uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from capabilities.core.wire import Failure, Fault
from capabilities.core.worded import worded


@dataclass(frozen=True, slots=True)
class ScriptedOutcome:
    """One scripted outcome: what comes back (None: an answer) after so many seconds; `cut` breaks a stream later."""

    failure: Failure | None = None
    seconds: float = 0.8
    cut: Failure | None = None


def _status(status: int, fault: Fault, message: str, seconds: float = 0.2, **more: Any) -> ScriptedOutcome:
    return ScriptedOutcome(Failure(fault, message, status, **more), seconds)


SCRIPTED: Mapping[str, ScriptedOutcome] = MappingProxyType(
    {
        "200": ScriptedOutcome(),
        "400": _status(400, Fault.HTTP_400, worded("the request is not valid")),
        "context": _status(400, Fault.CONTEXT_LENGTH, worded("the request is longer than the model's context")),
        "parameter": _status(
            400, Fault.UNSUPPORTED_PARAMETER, worded("temperature is not supported"), param="temperature"
        ),
        "cannot_read": _status(400, Fault.CAPABILITY_MISMATCH, worded("this model takes no images"), param="vision"),
        "401": _status(401, Fault.HTTP_401, worded("the key is not valid")),
        "402": _status(402, Fault.HTTP_402, worded("the balance is used up")),
        "403": _status(403, Fault.HTTP_403, worded("not allowed")),
        "404": _status(404, Fault.HTTP_404, worded("there is no such model")),
        "413": _status(413, Fault.HTTP_413, worded("the request is too large")),
        "429": _status(429, Fault.HTTP_429, worded("too many requests")),
        "429_wait": _status(429, Fault.HTTP_429, worded("too many requests; come back in a minute"), retry_after=60.0),
        "quota": _status(429, Fault.HTTP_429_QUOTA, worded("the quota is used up")),
        "500": _status(500, Fault.HTTP_500, worded("internal error")),
        "503": _status(503, Fault.HTTP_503, worded("unavailable")),
        "529": _status(529, Fault.HTTP_529, worded("overloaded")),
        "timeout": ScriptedOutcome(Failure(Fault.READ_TIMEOUT, worded("no answer in time")), 120.0),
        "refused": ScriptedOutcome(Failure(Fault.CONNECT_REFUSED, worded("connection refused")), 0.01),
        "html": _status(200, Fault.BAD_CONTENT_TYPE, worded("an HTML page instead of an answer")),
        "empty": _status(200, Fault.EMPTY_CONTENT, worded("an empty answer")),
        "cut": ScriptedOutcome(
            seconds=0.5, cut=Failure(Fault.STREAM_TRUNCATED, worded("the stream ended without a finish reason"))
        ),
    }
)
"""Every outcome a simulation can be told to have, by the word its page uses."""

Script = Mapping[int, Sequence[str]]
"""By place in the chain, the words of its tries in order; the last is repeated, none means `200`."""
