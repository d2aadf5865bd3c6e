"""Tune the garbage collector for a program that loads many objects and never frees them."""

import gc


def collect_rarely() -> None:
    """Set thresholds far above Python's own, with which the start repeatedly traverses everything loaded so far."""
    gc.set_threshold(10_000, 20, 50)
