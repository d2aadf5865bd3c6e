"""Tune the garbage collector for a program that loads many objects at startup and never frees them."""

import gc


def collect_rarely() -> None:
    """Set thresholds far above Python's defaults, because startup would otherwise traverse all objects repeatedly."""
    gc.set_threshold(10_000, 20, 50)
