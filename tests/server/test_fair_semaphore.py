"""The fair semaphore: no caller can hold all slots, the queue is bounded, and every slot is released."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing_admin.platform.server.fair_semaphore import FairSemaphore, OverloadedError, Slot

SHORT, LONG = 0.01, 60.0


def admitted(semaphore: FairSemaphore, callers: str) -> str:
    """Return the names of the callers that got a slot immediately."""
    return "".join(name for name in callers if semaphore.take(name))


@pytest.mark.parametrize(("slots", "alone"), [(4, 3), (8, 6), (512, 384)])
def test_one_caller_gets_at_most_three_quarters_of_the_slots(slots: int, alone: int):
    assert len(admitted(FairSemaphore(slots, 0), "a" * slots)) == alone
    semaphore = FairSemaphore(slots, 0)
    assert admitted(semaphore, "a" * slots + "b") == "a" * alone + "b"
    shared = admitted(FairSemaphore(700, 0), "ab" * 700)
    assert (shared.count("a"), shared.count("b")) == (300, 300)


@given(st.lists(st.sampled_from("abcdefgh"), max_size=100))
def test_new_caller_gets_a_slot_while_any_slot_is_free(callers: list[str]):
    semaphore = FairSemaphore(16, 0)
    admitted(semaphore, "".join(callers))
    is_free = semaphore.in_use < 16
    assert semaphore.take("newcomer") == is_free


async def test_released_slot_is_granted_to_the_waiting_caller_with_the_fewest_slots():
    semaphore = FairSemaphore(4, 8, LONG)
    assert admitted(semaphore, "aaab") == "aaab"
    waiting = [asyncio.create_task(semaphore.wait(name)) for name in "ac"]
    while semaphore.waiting < 2:
        await asyncio.sleep(0)
    semaphore.leave("b")
    await waiting[1]
    assert not waiting[0].done()
    semaphore.leave("a")
    await waiting[0]
    assert (semaphore.in_use, semaphore.waiting, semaphore.refused) == (4, 0, 0)


async def test_cancelled_waiter_gets_no_slot():
    """A cancelled waiter gets no slot, even if one is released between the call of `cancel` and the task's end."""
    semaphore = FairSemaphore(2, 4, LONG)
    assert admitted(semaphore, "ab") == "ab"
    leaving, staying = (asyncio.create_task(semaphore.wait(name)) for name in "cd")
    while semaphore.waiting < 2:
        await asyncio.sleep(0)
    leaving.cancel()
    semaphore.leave("a")
    await staying
    assert (semaphore.in_use, semaphore.waiting) == (2, 0)
    semaphore.leave("b")
    semaphore.leave("d")
    assert semaphore.in_use == 0


async def test_caller_is_rejected_if_the_queue_is_full():
    semaphore = FairSemaphore(1, 4, LONG)
    assert semaphore.take("a")
    waiting = [asyncio.create_task(semaphore.wait(name)) for name in "aaa"]
    while semaphore.waiting < 3:
        await asyncio.sleep(0)
    with pytest.raises(OverloadedError):
        await semaphore.wait("a")
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    semaphore.wait_seconds = SHORT
    with pytest.raises(OverloadedError):
        await semaphore.wait("b")
    assert (semaphore.in_use, semaphore.waiting, semaphore.refused) == (1, 0, 2)


async def test_slot_granted_to_a_cancelled_waiter_is_released():
    """The slot is granted in the same event loop iteration in which the waiter is cancelled."""
    semaphore = FairSemaphore(1, 4, LONG)
    assert semaphore.take("a")
    task = asyncio.create_task(Slot(semaphore).enter("b"))
    while not semaphore.waiting:
        await asyncio.sleep(0)
    semaphore.leave("a")
    task.cancel()
    await asyncio.wait([task])
    assert (semaphore.in_use, semaphore.waiting) == (0, 0)
