"""Tune the garbage collector for a program that loads much and keeps it."""

import gc


def collect_rarely() -> None:
    """Set thresholds far above Python's own, with which a start looks through all that is loaded again and again."""
    gc.set_threshold(10_000, 20, 50)
