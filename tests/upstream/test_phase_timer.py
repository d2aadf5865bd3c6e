"""One timer for all the waits of an exchange, on a loop whose clock moves only when nothing else is to be done."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import pytest

from routing_admin.upstream.exchange import AHEAD_SECONDS, PhaseTimer, WaitTooLongError

T = TypeVar("T")


class Idle(selectors.SelectSelector):
    """Does not wait until the loop's next timer: the clock is there at once."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        """What is ready."""
        self.now += timeout or 0.0
        return super().select(0)


class Loop(asyncio.SelectorEventLoop):
    """An event loop with a clock of its own, which begins at zero."""

    def __init__(self) -> None:
        self.idle = Idle()
        super().__init__(self.idle)

    def time(self) -> float:
        """Seconds since it was made."""
        return self.idle.now


def run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """What the coroutine gives on such a loop."""
    with asyncio.Runner(loop_factory=Loop) as runner:
        return runner.run(work())


def clock() -> float:
    """What the loop's clock shows, to the microsecond."""
    return round(asyncio.get_running_loop().time(), 6)


def after(seconds: float) -> Coroutine[Any, Any, None]:
    """Something that takes so long by the loop's clock."""
    reached = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, reached.set)
    return until(reached)


async def until(reached: asyncio.Event) -> None:
    """Comes with the event."""
    await reached.wait()


def never() -> Coroutine[Any, Any, None]:
    """Something that does not come."""
    return until(asyncio.Event())


async def wait(timer: PhaseTimer, work: Awaitable[T], seconds: float) -> T:
    """What the work gives, if it comes within so many seconds."""
    with timer.within(seconds):
        return await work


async def ring(timer: PhaseTimer, seconds: float) -> tuple[float, bool]:
    """When waiting for what does not come ends, and whether the whole time was over."""
    with pytest.raises(WaitTooLongError) as caught:
        await wait(timer, never(), seconds)
    return clock(), caught.value.total


@pytest.mark.parametrize(
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
def test_a_wait_ends_at_its_own_moment_whatever_was_waited_for_before(waits, last, moment):
    """Waits that come in time move it; a shorter one after a longer one is not kept waiting by it, nor the reverse."""

    async def exchange() -> tuple[float, bool]:
        timer = PhaseTimer(1000)
        for takes, seconds in waits:
            await wait(timer, after(takes), seconds)
        return await ring(timer, last)

    assert run(exchange) == (moment, False)


@pytest.mark.parametrize(("total", "seconds", "found"), [(3, 10, (3, True)), (10, 3, (3, False)), (3, 3, (3, True))])
def test_the_whole_time_ends_every_wait_and_says_so(total, seconds, found):
    """What ends first is told: the time of this wait, or the whole exchange's."""

    async def exchange() -> tuple[float, bool]:
        return await ring(PhaseTimer(total), seconds)

    assert run(exchange) == found


def test_a_wait_after_the_whole_time_ends_at_once():
    """Time passes between waits, too."""

    async def exchange() -> tuple[float, bool]:
        timer = PhaseTimer(2)
        await after(5)
        return await ring(timer, 10)

    assert run(exchange) == (5, True)


def test_what_comes_in_time_is_given_and_what_it_raises_is_raised():
    """The timer changes nothing about either."""

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


def test_nobody_is_disturbed_while_nothing_is_waited_for():
    """The timer of a wait that is over rings into the void; the wait after it ends at its moment."""

    async def exchange() -> tuple[float, bool]:
        timer = PhaseTimer(1000)
        await wait(timer, after(1), 2)
        await after(10)
        return await ring(timer, 3)

    assert run(exchange) == (14, False)


def test_a_timer_that_is_closed_never_rings():
    """Neither for a wait that was over, nor after the last one."""

    async def exchange() -> float:
        timer = PhaseTimer(3)
        await wait(timer, after(1), 2)
        timer.close()
        await after(100)
        return clock()

    assert run(exchange) == 101


@pytest.mark.parametrize("moment", [1, 3])
def test_a_cancellation_by_somebody_else_stays_one(moment):
    """Also at the very moment when the wait is over: whoever cancels a task must be able to rely on it."""

    async def exchange() -> tuple[float, bool]:
        timer = PhaseTimer(10)
        waiting = asyncio.ensure_future(wait(timer, never(), 3))
        asyncio.get_running_loop().call_at(moment, waiting.cancel)
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return clock(), waiting.cancelled()

    assert run(exchange) == (moment, True)


def test_a_wait_within_a_task_that_is_being_cancelled_still_ends_by_its_time():
    """Cleaning up may take time, and no more than it is given."""
    found: list[tuple[float, bool]] = []

    async def leave() -> None:
        try:
            await never()
        finally:
            found.append(await ring(PhaseTimer(10), 2))

    async def exchange() -> int:
        leaving = asyncio.ensure_future(leave())
        asyncio.get_running_loop().call_at(1, leaving.cancel)
        with pytest.raises(asyncio.CancelledError):
            await leaving
        return leaving.cancelling()

    assert run(exchange) == 1
    assert found == [(3, False)]


async def break_off() -> None:
    """Makes a fault of its own of being cancelled, as a client may whose connection is closed by it."""
    try:
        await never()
    finally:
        raise ConnectionError("closed")


@pytest.mark.parametrize(("work", "raised"), [(never, WaitTooLongError), (break_off, ConnectionError)])
def test_a_task_whose_wait_was_too_long_counts_as_never_cancelled(work, raised):
    """What the task does next is not taken for the end of a task that somebody cancels."""

    async def exchange() -> int:
        with pytest.raises(raised):
            await wait(PhaseTimer(10), work(), 1)
        task = asyncio.current_task()
        return task.cancelling() if task else -1

    assert run(exchange) == 0
