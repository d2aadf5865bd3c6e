"""Two drivers of one walk: they do what it says, and decide nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar, Union

from capabilities.core.wire import Failure
from routing_admin.core.fallback.chain import Call, Done, Reply, Step
from routing_admin.core.fallback.run import FallbackRun

T = TypeVar("T")

Outcome: TypeAlias = Union[T, Failure, Reply[T]]  # noqa: UP007  # a generic alias has no other spelling on 3.11
"""What a driver is told by its caller: an answer, a failure, or either with what is known of it."""


def drive(walk: FallbackRun[T], call: Callable[[Call], Outcome[T]], sleep: Callable[[float], object]) -> Done[T]:
    """Walk the chain synchronously; returns and raises what the walk does."""
    steps = walk.steps()
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
        done: Done[T] = end.value
        return done
    except Exception as error:
        _tell(steps, error)
        raise
    finally:
        steps.close()


async def drive_async(
    walk: FallbackRun[T], call: Callable[[Call], Awaitable[Outcome[T]]], sleep: Callable[[float], Awaitable[object]]
) -> Done[T]:
    """Walk the chain on the event loop; cancelling it closes the walk, which records the attempt as cancelled."""
    steps = walk.steps()
    sent: Outcome[T] | None = None
    try:
        while True:
            try:
                step = steps.send(sent)
            except StopIteration as end:
                done: Done[T] = end.value
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
    """Let the walk write down that an error of ours ended it; a walk that raised it itself is over already."""
    with suppress(type(error), StopIteration):
        steps.throw(error)
