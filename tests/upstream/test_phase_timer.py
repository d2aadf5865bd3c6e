"""The timer that limits all waits of an upstream call, tested in an event loop with a simulated clock."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import pytest

from routing_admin.upstream.exchange import AHEAD_SECONDS, PhaseTimer, WaitTooLongError

T = TypeVar("T")


class SimulatedSelector(selectors.SelectSelector):
    """A selector that sets the simulated clock to the next timer instead of waiting."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        self.now += timeout or 0.0
        return super().select(0)


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop with a simulated clock that starts at zero."""

    def __init__(self) -> None:
        self.simulated_selector = SimulatedSelector()
        super().__init__(self.simulated_selector)

    def time(self) -> float:
        return self.simulated_selector.now


def run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(work())


def clock() -> float:
    return round(asyncio.get_running_loop().time(), 6)


def sleep_for(seconds: float) -> Coroutine[Any, Any, None]:
    """Return a coroutine that takes this many simulated seconds."""
    reached = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, reached.set)
    return wait_for(reached)


async def wait_for(reached: asyncio.Event) -> None:
    await reached.wait()


def never() -> Coroutine[Any, Any, None]:
    return wait_for(asyncio.Event())


async def wait(timer: PhaseTimer, work: Awaitable[T], seconds: float) -> T:
    with timer.within(seconds):
        return await work


async def wait_until_timeout(timer: PhaseTimer, seconds: float) -> tuple[float, bool]:
    """Wait until the timeout. Return the time at its end, and whether the total time limit caused it."""
    with pytest.raises(WaitTooLongError) as caught:
        await wait(timer, never(), seconds)
    return clock(), caught.value.total


@pytest.mark.parametrize(
    # Each case has waits as pairs of duration and limit, the limit of the last wait, and the time at which it times
    # out.
    ("waits", "last", "moment"),
    [
        ([], 3, 3),
        ([(2, 3), (2, 3)], 3, 7),
        ([(1, 60)], 2, 3),
        ([(1, 4)], 1, 2),
        ([(1, 2)], 10, 11),
        ([(1, 60), (1, 2), (1, 30)], 20, 23),
        ([], 4 * AHEAD_SECONDS, 4 * AHEAD_SECONDS),
    ],
)
def test_wait_ends_at_its_own_limit_after_any_previous_waits(waits, last, moment):
    async def exchange() -> tuple[float, bool]:
        timer = PhaseTimer(1000)
        for takes, seconds in waits:
            await wait(timer, sleep_for(takes), seconds)
        return await wait_until_timeout(timer, last)

    assert run(exchange) == (moment, False)


@pytest.mark.parametrize(("total", "seconds", "expected"), [(3, 10, (3, True)), (10, 3, (3, False)), (3, 3, (3, True))])
def test_total_time_limit_ends_every_wait(total, seconds, expected):
    async def exchange() -> tuple[float, bool]:
        return await wait_until_timeout(PhaseTimer(total), seconds)

    assert run(exchange) == expected


def test_wait_after_the_total_time_limit_ends_immediately():
    async def exchange() -> tuple[float, bool]:
        timer = PhaseTimer(2)
        await sleep_for(5)
        return await wait_until_timeout(timer, 10)

    assert run(exchange) == (5, True)


def test_results_and_exceptions_pass_through_the_timer():
    async def fail() -> None:
        raise LookupError("this one")

    async def exchange() -> int:
        timer = PhaseTimer(10)
        with pytest.raises(LookupError, match="this one"):
            await wait(timer, fail(), 1)
        return await wait(timer, give(), 1)

    async def give() -> int:
        return 7

    assert run(exchange) == 7


def test_timer_of_a_finished_wait_has_no_effect():
    async def exchange() -> tuple[float, bool]:
        timer = PhaseTimer(1000)
        await wait(timer, sleep_for(1), 2)
        await sleep_for(10)
        return await wait_until_timeout(timer, 3)

    assert run(exchange) == (14, False)


def test_closed_timer_never_fires():
    async def exchange() -> float:
        timer = PhaseTimer(3)
        await wait(timer, sleep_for(1), 2)
        timer.close()
        await sleep_for(100)
        return clock()

    assert run(exchange) == 101


@pytest.mark.parametrize("moment", [1, 3])
def test_cancellation_from_outside_is_never_lost(moment):
    async def exchange() -> tuple[float, bool]:
        timer = PhaseTimer(10)
        waiting = asyncio.ensure_future(wait(timer, never(), 3))
        asyncio.get_running_loop().call_at(moment, waiting.cancel)
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return clock(), waiting.cancelled()

    assert run(exchange) == (moment, True)


def test_wait_in_a_cancelled_task_still_times_out():
    """Cleanup after a cancellation may wait, but not longer than its own limit."""
    waits: list[tuple[float, bool]] = []

    async def clean_up() -> None:
        try:
            await never()
        finally:
            waits.append(await wait_until_timeout(PhaseTimer(10), 2))

    async def exchange() -> int:
        task = asyncio.ensure_future(clean_up())
        asyncio.get_running_loop().call_at(1, task.cancel)
        with pytest.raises(asyncio.CancelledError):
            await task
        return task.cancelling()

    assert run(exchange) == 1
    assert waits == [(3, False)]


async def break_off() -> None:
    """Raise another error when cancelled, like a client whose connection was closed."""
    try:
        await never()
    finally:
        raise ConnectionError("closed")


@pytest.mark.parametrize(("work", "raised"), [(never, WaitTooLongError), (break_off, ConnectionError)])
def test_timed_out_task_does_not_count_as_cancelled(work, raised):
    """The timer takes back its own cancellation, so a later `await` does not raise `CancelledError`."""

    async def exchange() -> int:
        with pytest.raises(raised):
            await wait(PhaseTimer(10), work(), 1)
        task = asyncio.current_task()
        return task.cancelling() if task else -1

    assert run(exchange) == 0
