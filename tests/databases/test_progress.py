"""A long task reports its progress and the remaining time. A short task reports nothing."""

from __future__ import annotations

import io

from django.core.management.base import OutputWrapper

from routing_admin.platform.databases.progress import WorkProgress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def progress_output(out: io.StringIO, seconds: list[float], total: int = 100) -> str:
    """Return what is printed if ten more items are complete at each of the given times (in seconds)."""
    moments = iter([0.0, *seconds])
    counter = WorkProgress("Rows", total, OutputWrapper(out), lambda: next(moments))
    for _ in seconds:
        counter.advance(10)
    counter.close()
    return out.getvalue()


def test_work_of_less_than_three_seconds_prints_no_progress() -> None:
    assert progress_output(io.StringIO(), [1, 2, 2.9]) == ""


def test_log_output_has_a_line_with_the_remaining_time_every_few_seconds() -> None:
    lines = progress_output(io.StringIO(), [2, 4, 6, 10]).splitlines()
    assert lines == ["Rows: 20 of 100, about 16 s left", "Rows: 40 of 100, about 15 s left"]


def test_terminal_progress_uses_one_line_that_is_cleared_at_the_end() -> None:
    text = progress_output(Terminal(), [4, 5])
    assert "\n" not in text
    assert text.endswith("20 of 100, about 20 s left\x1b[K\r\x1b[K")


def test_work_of_unknown_size_prints_the_completed_count() -> None:
    assert progress_output(io.StringIO(), [4], total=0) == "Rows: 10 so far, 4 s\n"


def test_work_without_countable_items_prints_only_its_duration() -> None:
    progress = WorkProgress("Creating the tables", 0, None, lambda: 0.0)
    assert progress.line(3.2) == "Creating the tables: 3 s"
