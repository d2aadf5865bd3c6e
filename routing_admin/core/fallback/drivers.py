"""Two drivers of one run: they do what it says, and decide nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar, Union

from capabilities.core.wire import Failure
from routing_admin.core.fallback.chain import Call, Reply, RunResult, Step
from routing_admin.core.fallback.run import FallbackRun

T = TypeVar("T")

Outcome: TypeAlias = Union[T, Failure, Reply[T]]  # noqa: UP007  # a generic alias has no other spelling on 3.11
"""What a driver is told by its caller: an answer, a failure, or either with what is known of it."""


def drive(run: FallbackRun[T], call: Callable[[Call], Outcome[T]], sleep: Callable[[float], object]) -> RunResult[T]:
    """Follow the chain synchronously; returns and raises what the run does."""
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
        done: RunResult[T] = end.value
        return done
    except Exception as error:
        _tell(steps, error)
        raise
    finally:
        steps.close()


async def drive_async(
    run: FallbackRun[T], call: Callable[[Call], Awaitable[Outcome[T]]], sleep: Callable[[float], Awaitable[object]]
) -> RunResult[T]:
    """Follow the chain on the event loop; cancelling it closes the run, which records the attempt as cancelled."""
    steps = run.steps()
    sent: Outcome[T] | None = None
    try:
        while True:
            try:
                step = steps.send(sent)
            except StopIteration as end:
                done: RunResult[T] = end.value
                return done
            sent = None
            if isinstance(step, Call):
                sent = await call(step)
            else:
                await sleep(step.seconds)
    except Exception as error:
        _tell(steps, error)
        raise
    finally:
        steps.close()


def _tell(steps: Generator[Step, Any, Any], error: Exception) -> None:
    """Let the run write down that an error of ours ended it; a run that raised it itself is over already."""
    with suppress(type(error), StopIteration):
        steps.throw(error)
