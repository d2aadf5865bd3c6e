"""Format byte sizes and durations for users, in the most readable unit."""

from __future__ import annotations


def size_text(count: int) -> str:
    """Return a size in bytes as `1023 B`, `1.0 KB`, `1.2 MB`."""
    if count < 1024:
        return f"{count} B"
    units = ("KB", "MB", "GB", "TB")
    power = next((n for n in range(1, 4) if round(count / 1024**n, 1) < 1024), 4)
    return f"{count / 1024**power:.1f} {units[power - 1]}"


def duration_text(milliseconds: float) -> str:
    """Return a duration in milliseconds as `35 ms`, `1.24 s`, `34.1 s`, `2 min 5 s`."""
    seconds = milliseconds / 1000
    if seconds < 0.1:
        return f"{milliseconds:.0f} ms"
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"
