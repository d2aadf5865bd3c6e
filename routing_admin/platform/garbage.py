"""Tune the garbage collector for a program that loads many objects and never frees them."""

import gc


def collect_rarely() -> None:
    """Set thresholds far above Python's defaults, with which startup would traverse all loaded objects repeatedly."""
    gc.set_threshold(10_000, 20, 50)
