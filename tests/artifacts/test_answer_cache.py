"""The cache of extraction results: the extraction process runs once per question."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from threading import Barrier, Thread

import pytest
from samples import pdf, picture

from artifacts import extract
from artifacts.extract.answer_cache import BUSY_SECONDS, FAILURE_SECONDS, OVERHEAD, AnswerCache
from artifacts.extract.process import Result
from capabilities.core.message import ConvertTo

GOOD = Result({"note": ""}, b"words")


@dataclass
class Process:
    """A fake extraction process that returns the results in turn, repeats the last and counts its calls."""

    results: list[Result] = field(default_factory=lambda: [GOOD])
    asked: int = 0

    def __call__(self) -> Result:
        self.asked += 1
        return self.results[min(self.asked, len(self.results)) - 1]


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_same_question_is_answered_from_memory() -> None:
    """Another hash, operation or option is another question."""
    kept, process = AnswerCache(), Process()
    assert [kept.answer(("hash", "text", "{}"), process) for _ in range(3)] == [GOOD] * 3
    assert process.asked == 1
    for key in (("other", "text", "{}"), ("hash", "image", "{}"), ("hash", "text", '{"max_chars": 1}')):
        kept.answer(key, process)
    assert process.asked == 4


def test_never_more_is_kept_than_there_is_room_for() -> None:
    """The least recently used answer is evicted first; one larger than the cache is not stored."""
    big = Result({}, b"x" * 1000)
    kept = AnswerCache(max_bytes=2 * (1000 + OVERHEAD))
    for name in ("a", "b", "a", "c"):
        kept.answer((name,), Process([big]))
        assert kept.used <= 2 * (1000 + OVERHEAD)
    asked = {name: Process([big]) for name in "acb"}
    for name, process in asked.items():
        kept.answer((name,), process)
    assert {name: process.asked for name, process in asked.items()} == {"a": 0, "c": 0, "b": 1}
    used, huge = kept.used, Process([Result({}, b"x" * 4000)])
    kept.answer(("huge",), huge)
    kept.answer(("huge",), huge)
    assert (kept.used, huge.asked) == (used, 2)


def test_many_empty_answers_fill_the_room_too() -> None:
    """Each entry has an overhead, so many failures do not use unbounded memory."""
    kept = AnswerCache(max_bytes=10 * OVERHEAD)
    for number in range(100):
        kept.answer((str(number),), Process([Result(reason="failed")]))
    assert kept.used == 10 * OVERHEAD


@pytest.mark.parametrize(("reason", "seconds"), [("failed", FAILURE_SECONDS), ("busy", BUSY_SECONDS)])
def test_a_failure_is_believed_for_a_while(reason: str, seconds: float) -> None:
    """A failure may be temporary and expires; a success does not."""
    clock = Clock()
    kept, process = AnswerCache(clock=clock), Process([Result(reason=reason), GOOD])
    kept.answer(("hash",), process)
    clock.now = seconds - 0.001
    assert kept.answer(("hash",), process).reason == reason
    clock.now = seconds
    assert kept.answer(("hash",), process) == GOOD
    clock.now = 100 * FAILURE_SECONDS
    assert kept.answer(("hash",), process) == GOOD
    assert process.asked == 2


def test_two_who_ask_at_once_get_one_answer() -> None:
    """The second caller waits for the first instead of starting another process."""
    kept, process, together = AnswerCache(), Process(), Barrier(4)

    def ask() -> None:
        together.wait()
        kept.answer(("hash",), process)

    threads = [Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert process.asked == 1


def test_a_file_known_by_its_hash_is_read_once(tmp_path: Path) -> None:
    """Cached text and images need no file; without a hash nothing is cached."""
    document, image = tmp_path / "a.pdf", tmp_path / "a.bmp"
    document.write_bytes(pdf("Only once"))
    image.write_bytes(picture("BMP"))
    to_png = ConvertTo(("image/png",))
    text = extract.extract_text(document, "application/pdf", cache_key="1" * 64)
    made = extract.convert_image(image, to_png, cache_key="2" * 64)
    assert text is not None
    assert made is not None
    document.unlink()
    image.unlink()
    assert extract.extract_text(document, "application/pdf", cache_key="1" * 64) == text
    again = extract.convert_image(image, to_png, cache_key="2" * 64)
    assert again is not None
    assert b"".join(again.blob.blocks()) == b"".join(made.blob.blocks())
    assert extract.convert_image(image, ConvertTo(("image/jpeg",)), cache_key="2" * 64) is None
    assert extract.extract_text(document, "application/pdf") is None
