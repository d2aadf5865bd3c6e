"""The cache of extraction results runs the extraction process only once per cache key."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from threading import Barrier, Thread

import pytest
from samples import draw_picture, pdf

from artifacts import extract
from artifacts.extract.answer_cache import BUSY_SECONDS, FAILURE_SECONDS, OVERHEAD, AnswerCache
from artifacts.extract.process import Result
from capabilities.core.message import ConvertTo

SUCCESS = Result({"note": ""}, b"words")


@dataclass
class Process:
    """A fake extraction process that returns the results in turn, repeats the last one, and counts its calls."""

    results: list[Result] = field(default_factory=lambda: [SUCCESS])
    calls: int = 0

    def __call__(self) -> Result:
        self.calls += 1
        return self.results[min(self.calls, len(self.results)) - 1]


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def test_cached_result_is_reused_only_for_the_same_hash_operation_and_options() -> None:
    cache, process = AnswerCache(), Process()
    assert [cache.answer(("hash", "text", "{}"), process) for _ in range(3)] == [SUCCESS] * 3
    assert process.calls == 1
    for key in (("other", "text", "{}"), ("hash", "image", "{}"), ("hash", "text", '{"max_chars": 1}')):
        cache.answer(key, process)
    assert process.calls == 4


def test_cache_evicts_the_least_recently_used_result() -> None:
    large_result = Result({}, b"x" * 1000)
    cache = AnswerCache(max_bytes=2 * (1000 + OVERHEAD))
    for name in ("a", "b", "a", "c"):
        cache.answer((name,), Process([large_result]))
        assert cache.used <= 2 * (1000 + OVERHEAD)
    processes = {name: Process([large_result]) for name in "acb"}
    for name, process in processes.items():
        cache.answer((name,), process)
    assert {name: process.calls for name, process in processes.items()} == {"a": 0, "c": 0, "b": 1}
    used, huge = cache.used, Process([Result({}, b"x" * 4000)])
    cache.answer(("huge",), huge)
    cache.answer(("huge",), huge)
    assert (cache.used, huge.calls) == (used, 2)


def test_empty_results_count_towards_the_cache_size() -> None:
    """Each entry's overhead is counted, since cached failures could otherwise use unbounded memory."""
    cache = AnswerCache(max_bytes=10 * OVERHEAD)
    for number in range(100):
        cache.answer((str(number),), Process([Result(reason="failed")]))
    assert cache.used == 10 * OVERHEAD


@pytest.mark.parametrize(("reason", "seconds"), [("failed", FAILURE_SECONDS), ("busy", BUSY_SECONDS)])
def test_failure_is_cached_for_a_limited_time(reason: str, seconds: float) -> None:
    """Unlike a success, a failure may be temporary."""
    clock = Clock()
    cache, process = AnswerCache(clock=clock), Process([Result(reason=reason), SUCCESS])
    cache.answer(("hash",), process)
    clock.now = seconds - 0.001
    assert cache.answer(("hash",), process).reason == reason
    clock.now = seconds
    assert cache.answer(("hash",), process) == SUCCESS
    clock.now = 100 * FAILURE_SECONDS
    assert cache.answer(("hash",), process) == SUCCESS
    assert process.calls == 2


def test_concurrent_callers_share_one_extraction() -> None:
    cache, process, barrier = AnswerCache(), Process(), Barrier(4)

    def ask() -> None:
        barrier.wait()
        cache.answer(("hash",), process)

    threads = [Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert process.calls == 1


def test_result_of_a_known_hash_is_returned_without_reading_the_file(tmp_path: Path) -> None:
    document, image = tmp_path / "a.pdf", tmp_path / "a.bmp"
    document.write_bytes(pdf("Only once"))
    image.write_bytes(draw_picture("BMP"))
    to_png = ConvertTo(("image/png",))
    text = extract.extract_text(document, "application/pdf", cache_key="1" * 64)
    converted = extract.convert_image(image, to_png, cache_key="2" * 64)
    assert text is not None
    assert converted is not None
    document.unlink()
    image.unlink()
    assert extract.extract_text(document, "application/pdf", cache_key="1" * 64) == text
    cached = extract.convert_image(image, to_png, cache_key="2" * 64)
    assert cached is not None
    assert b"".join(cached.blob.blocks()) == b"".join(converted.blob.blocks())
    assert extract.convert_image(image, ConvertTo(("image/jpeg",)), cache_key="2" * 64) is None
    assert extract.extract_text(document, "application/pdf") is None
