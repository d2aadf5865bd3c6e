"""A fair semaphore: no caller can hold every slot, the queue is bounded, and every slot is released."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing_admin.platform.server.fair_semaphore import FairSemaphore, OverloadedError, Slot

SOON, NEVER = 0.01, 60.0


def names(places: FairSemaphore, wanted: str) -> str:
    """Return those of the names that got a slot at once."""
    return "".join(name for name in wanted if places.take(name))


@pytest.mark.parametrize(("most", "alone"), [(4, 3), (8, 6), (512, 384)])
def test_one_alone_gets_three_quarters_and_each_newcomer_finds_a_place(most: int, alone: int):
    """One caller gets at most three quarters of the slots; two get equal numbers."""
    assert len(names(FairSemaphore(most, 0), "a" * most)) == alone
    places = FairSemaphore(most, 0)
    assert names(places, "a" * most + "b") == "a" * alone + "b"
    shared = names(FairSemaphore(700, 0), "ab" * 700)
    assert (shared.count("a"), shared.count("b")) == (300, 300)


@given(st.lists(st.sampled_from("abcdefgh"), max_size=100))
def test_who_has_nothing_is_let_in_while_anything_is_free(wanted: list[str]):
    """A caller without a slot gets one while any is free."""
    places = FairSemaphore(16, 0)
    names(places, "".join(wanted))
    is_free = places.in_use < 16
    assert places.take("newcomer") == is_free


async def test_a_place_that_becomes_free_goes_to_whoever_holds_least():
    """A released slot goes to the waiting caller that holds the fewest, not to the first in the queue."""
    places = FairSemaphore(4, 8, NEVER)
    assert names(places, "aaab") == "aaab"
    waiting = [asyncio.create_task(places.wait(name)) for name in "ac"]
    while places.waiting < 2:
        await asyncio.sleep(0)
    places.leave("b")
    await waiting[1]
    assert not waiting[0].done()
    places.leave("a")
    await waiting[0]
    assert (places.in_use, places.waiting, places.refused) == (4, 0, 0)


async def test_who_left_the_line_a_moment_ago_takes_no_place():
    """A cancelled waiter gets no slot, even if it is released before the cancellation has run."""
    places = FairSemaphore(2, 4, NEVER)
    assert names(places, "ab") == "ab"
    leaving, staying = (asyncio.create_task(places.wait(name)) for name in "cd")
    while places.waiting < 2:
        await asyncio.sleep(0)
    leaving.cancel()
    places.leave("a")
    await staying
    assert (places.in_use, places.waiting) == (2, 0)
    places.leave("b")
    places.leave("d")
    assert places.in_use == 0


async def test_the_line_is_as_short_as_it_says_and_shared_like_the_places():
    """A caller beyond the queue's length is rejected at once, one that waits too long later."""
    places = FairSemaphore(1, 4, NEVER)
    assert places.take("a")
    waiting = [asyncio.create_task(places.wait(name)) for name in "aaa"]
    while places.waiting < 3:
        await asyncio.sleep(0)
    with pytest.raises(OverloadedError):
        await places.wait("a")
    for each in waiting:
        each.cancel()
    await asyncio.wait(waiting)
    places.wait_seconds = SOON
    with pytest.raises(OverloadedError):
        await places.wait("b")
    assert (places.in_use, places.waiting, places.refused) == (1, 0, 2)


async def test_a_place_that_came_at_the_last_moment_is_given_back():
    """A slot granted in the same iteration of the event loop in which the waiter was cancelled is released."""
    places = FairSemaphore(1, 4, NEVER)
    assert places.take("a")
    task = asyncio.create_task(Slot(places).enter("b"))
    while not places.waiting:
        await asyncio.sleep(0)
    places.leave("a")
    task.cancel()
    await asyncio.wait([task])
    assert (places.in_use, places.waiting) == (0, 0)
