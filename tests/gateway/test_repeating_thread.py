"""Work beside the requests: again and again while the process lives, and let go of in order when it ends."""

from __future__ import annotations

import threading

from routing_admin.server.repeating_thread import RepeatingThread


def test_work_is_done_again_and_again_until_the_end_and_its_thread_lets_go() -> None:
    """After `stop` no more work is done, and `close` was called once, in the thread that worked."""
    rounds, threads, third = [], [], threading.Event()

    def work() -> None:
        rounds.append(threading.current_thread())
        if len(rounds) == 3:
            third.set()

    repeating = RepeatingThread("rounds", 0.001, work, lambda: threads.append(threading.current_thread()))
    repeating.start()
    repeating.start()
    assert third.wait(timeout=10)
    repeating.stop()
    repeating.stop()
    assert threads == [rounds[0]]
    assert set(rounds) == {rounds[0]}
    assert not rounds[0].is_alive()


def test_it_can_be_started_again() -> None:
    """A thread that ended is followed by a new one."""
    worked = threading.Event()
    repeating = RepeatingThread("rounds", 0.001, worked.set, lambda: None)
    for _ in range(2):
        worked.clear()
        repeating.start()
        assert worked.wait(timeout=10)
        repeating.stop()
