"""While the artifact store does not respond, fewer concurrent calls to it are allowed, so that only a few hang."""

from __future__ import annotations

import threading

from artifacts.storage.bucket_client import MAX_CALLS, MAX_UNRESPONSIVE_CALLS, SLOW_SECONDS, CallSlots


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_unresponsive_store_gets_few_concurrent_calls_until_it_responds() -> None:
    clock = Clock()
    slots = CallSlots(clock)
    assert all(slots.acquire() for _ in range(MAX_UNRESPONSIVE_CALLS))
    clock.now += SLOW_SECONDS + 1
    assert not slots.acquire()
    slots.release()
    assert slots.acquire()
    for _ in range(MAX_UNRESPONSIVE_CALLS):
        slots.release()
    clock.now += 1000
    assert all(slots.acquire() for _ in range(MAX_CALLS))


def test_calls_to_a_busy_store_wait_for_a_slot() -> None:
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
