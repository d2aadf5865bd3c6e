"""The number of concurrent calls to a store is lower while it does not respond, so that few calls hang."""

from __future__ import annotations

import threading

from artifacts.storage.bucket_client import MAX_CALLS, MAX_UNANSWERED, SLOW_SECONDS, CallSlots


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_store_that_does_not_answer_gets_few_calls() -> None:
    """The lower limit applies until the store responds again. A store that gets no calls does not count as slow."""
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


def test_call_waits_for_a_slot_while_others_are_answered() -> None:
    """As long as a busy store responds, calls wait for a slot instead of being refused."""
    slots, acquired = CallSlots(), threading.Event()
    assert all(slots.acquire() for _ in range(MAX_CALLS))

    def wait() -> None:
        while not slots.acquire():
            pass
        acquired.set()

    thread = threading.Thread(target=wait)
    thread.start()
    slots.release()
    thread.join()
    assert acquired.is_set()
