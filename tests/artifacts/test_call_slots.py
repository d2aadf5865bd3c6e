"""The number of concurrent calls to a store: fewer while it answers none, so that no call waits for a hanging one."""

from __future__ import annotations

import threading

from artifacts.storage.bucket_client import MAX_CALLS, MAX_UNANSWERED, SLOW_SECONDS, CallSlots


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_store_that_answers_nothing_gets_few_calls_and_further_ones_are_refused_at_once() -> None:
    """One answer ends the state; an idle store does not count as slow."""
    clock = Clock()
    slots = CallSlots(clock)
    assert all(slots.acquire() for _ in range(MAX_UNANSWERED))
    clock.now += SLOW_SECONDS + 1
    assert not slots.acquire()
    slots.release()
    assert slots.acquire()
    for _ in range(MAX_UNANSWERED):
        slots.release()
    clock.now += 1000
    assert all(slots.acquire() for _ in range(MAX_CALLS))


def test_a_call_waits_for_a_slot_while_others_are_answered() -> None:
    """A busy store still answers, so calls wait instead of being refused."""
    slots, got = CallSlots(), threading.Event()
    assert all(slots.acquire() for _ in range(MAX_CALLS))

    def wait() -> None:
        while not slots.acquire():
            pass
        got.set()

    thread = threading.Thread(target=wait)
    thread.start()
    slots.release()
    thread.join()
    assert got.is_set()
