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


def test_on_demand_nothing_is_done_that_nobody_asked_for() -> None:
    """It sleeps until there is something to do, and ends without having done anything when there never is."""
    rounds: list[str] = []
    repeating = RepeatingThread("rounds", 0.001, lambda: rounds.append("round"), lambda: None, on_demand=True)
    repeating.start()
    repeating.stop()
    assert rounds == []


def test_what_is_demanded_while_work_is_done_is_done_in_one_round_after_it() -> None:
    """No demand is lost, and many of them are one round."""
    begun, go_on, twice, rounds = threading.Event(), threading.Event(), threading.Event(), []

    def work() -> None:
        rounds.append("round")
        begun.set()
        assert go_on.wait(timeout=10)
        if len(rounds) == 2:
            twice.set()

    repeating = RepeatingThread("rounds", 0.001, work, lambda: None, on_demand=True)
    repeating.start()
    repeating.demand()
    assert begun.wait(timeout=10)
    for _ in range(5):
        repeating.demand()
    go_on.set()
    assert twice.wait(timeout=10)
    repeating.stop()
    assert rounds == ["round", "round"]
