"""Scripted outcomes for simulations; fire drills; and the two drivers that execute a fallback run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar, Union

from capabilities.core.translatable import translatable
from capabilities.core.wire import Failure, Fault
from routing_admin.core.fallback.chain import Call, Reply, RunResult, Step
from routing_admin.core.fallback.run import FallbackRun


@dataclass(frozen=True, slots=True)
class ScriptedOutcome:
    """A call's outcome after `seconds`: `failure`, or an answer if that is None. `cut` interrupts its stream."""

    failure: Failure | None = None
    seconds: float = 0.8
    cut: Failure | None = None


def _status(status: int, fault: Fault, message: str, seconds: float = 0.2, **fields: Any) -> ScriptedOutcome:
    return ScriptedOutcome(Failure(fault, message, status, **fields), seconds)


SCRIPTED: Mapping[str, ScriptedOutcome] = MappingProxyType(
    {
        "200": ScriptedOutcome(),
        "400": _status(400, Fault.HTTP_400, translatable("the request is not valid")),
        "context": _status(400, Fault.CONTEXT_LENGTH, translatable("the request is longer than the model's context")),
        "parameter": _status(
            400, Fault.UNSUPPORTED_PARAMETER, translatable("temperature is not supported"), param="temperature"
        ),
        "cannot_read": _status(
            400, Fault.CAPABILITY_MISMATCH, translatable("this model takes no images"), param="vision"
        ),
        "401": _status(401, Fault.HTTP_401, translatable("the key is not valid")),
        "402": _status(402, Fault.HTTP_402, translatable("the balance is used up")),
        "403": _status(403, Fault.HTTP_403, translatable("not allowed")),
        "404": _status(404, Fault.HTTP_404, translatable("there is no such model")),
        "413": _status(413, Fault.HTTP_413, translatable("the request is too large")),
        "429": _status(429, Fault.HTTP_429, translatable("too many requests")),
        "429_wait": _status(
            429, Fault.HTTP_429, translatable("too many requests; come back in a minute"), retry_after=60.0
        ),
        "quota": _status(429, Fault.HTTP_429_QUOTA, translatable("the quota is used up")),
        "500": _status(500, Fault.HTTP_500, translatable("internal error")),
        "503": _status(503, Fault.HTTP_503, translatable("unavailable")),
        "529": _status(529, Fault.HTTP_529, translatable("overloaded")),
        "timeout": ScriptedOutcome(Failure(Fault.READ_TIMEOUT, translatable("no answer in time")), 120.0),
        "refused": ScriptedOutcome(Failure(Fault.CONNECT_REFUSED, translatable("connection refused")), 0.01),
        "html": _status(200, Fault.BAD_CONTENT_TYPE, translatable("an HTML page instead of an answer")),
        "empty": _status(200, Fault.EMPTY_CONTENT, translatable("an empty answer")),
        "cut": ScriptedOutcome(
            seconds=0.5, cut=Failure(Fault.STREAM_TRUNCATED, translatable("the stream ended without a finish reason"))
        ),
    }
)
"""Every outcome that a user can choose for a simulation, by its name on the page."""

Script = Mapping[int, Sequence[str]]
"""Maps each candidate's position in the chain to the outcomes of its calls. The last outcome in a list repeats; a
candidate without a list answers with `200`.
"""


# In a fire drill, an administrator makes a provider fail for a short time, to test whether its routes fall back. During
# a drill the provider is not called and no cooldown is recorded. The clock alone ends a drill, even if the process that
# started it has stopped. Setting the clock back does not extend a drill.

CHOICES = (30, 60, 300)
"""Durations in seconds that an administrator can choose for a fire drill."""
USUAL_SECONDS = 60
SKEW_SECONDS = 10.0
"""Tolerated difference between the clocks of machines, in seconds."""
NOT_CALLED = translatable("Fire drill by %(actor)s: not called.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillWindow:
    """A fire drill at one provider; `began` and `ends` are seconds since 1970."""

    number: int
    provider: str
    actor: str
    began: float
    ends: float

    def lasts(self, now: float) -> bool:
        return self.began - SKEW_SECONDS <= now < self.ends

    def stops(self, provider: str, now: float) -> bool:
        return provider == self.provider and self.lasts(now)

    def seconds_left(self, now: float) -> int:
        """Return the remaining time in whole seconds, rounded up; 0 if the drill is over."""
        return max(0, -int(-(self.ends - now) // 1)) if self.lasts(now) else 0

    def failure(self) -> Failure:
        return Failure(Fault.FIRE_DRILL, translatable(NOT_CALLED, actor=self.actor))


# The two drivers execute the steps of a run; `run.py` makes all decisions.

T = TypeVar("T")

Outcome: TypeAlias = Union[T, Failure, Reply[T]]  # noqa: UP007  # a generic alias has no other spelling on 3.11
"""What a call returns to the driver: an answer, a failure, or a `Reply` that contains one of them."""


def drive(run: FallbackRun[T], call: Callable[[Call], Outcome[T]], sleep: Callable[[float], object]) -> RunResult[T]:
    """Run the chain synchronously; return its result or raise its error."""
    steps = run.steps()
    sent: Outcome[T] | None = None
    try:
        while True:
            step = steps.send(sent)
            sent = None
            if isinstance(step, Call):
                sent = call(step)
            else:
                sleep(step.seconds)
    except StopIteration as end:
        result: RunResult[T] = end.value
        return result
    except Exception as error:
        _throw(steps, error)
        raise
    finally:
        steps.close()


async def drive_async(
    run: FallbackRun[T], call: Callable[[Call], Awaitable[Outcome[T]]], sleep: Callable[[float], Awaitable[object]]
) -> RunResult[T]:
    """Run the chain on the event loop.

    If the task is cancelled, the run is closed and records its attempt as cancelled.
    """
    steps = run.steps()
    sent: Outcome[T] | None = None
    try:
        while True:
            try:
                step = steps.send(sent)
            except StopIteration as end:
                result: RunResult[T] = end.value
                return result
            sent = None
            if isinstance(step, Call):
                sent = await call(step)
            else:
                await sleep(step.seconds)
    except Exception as error:
        _throw(steps, error)
        raise
    finally:
        steps.close()


def _throw(steps: Generator[Step, Any, Any], error: Exception) -> None:
    # Tell the run that an error outside it ended the attempt. A run that raised the error itself has already ended.
    with suppress(type(error), StopIteration):
        steps.throw(error)
