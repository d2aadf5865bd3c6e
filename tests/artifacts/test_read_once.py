"""A preview extracts a file's text once, however many services it shows."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from artifacts.core.artifact import StoredArtifact
from capabilities.core.delivery.tokens import text_tokens
from capabilities.core.message import Blob, Converted, ConvertTo, Rendered, Text, UnreadableError, blob_of
from capabilities.core.vocabulary import Kind
from routing_admin.dispatch.preview import read_once


@dataclass
class Counting:
    """Content that records its calls and fails the first `failures` times."""

    failures: int = 0
    asked: list[str] = field(default_factory=list)

    def blob(self) -> Blob:
        return blob_of(b"words")

    def text(self) -> Text | None:
        self.asked.append("text")
        if len(self.asked) <= self.failures:
            raise UnreadableError("failed")
        return Text("words", "utf-8")

    def convert(self, target: ConvertTo) -> Converted | None:
        self.asked.append(target.mime_types[0])
        return None


def artifact(content: Counting) -> StoredArtifact:
    return StoredArtifact("a1", "text/plain", Kind.TEXT, False, 5, "a.txt", content=content)


def test_words_and_forms_are_taken_out_once() -> None:
    """Each result is cached by its arguments, and the wrapper adds no rendering to content without it."""
    content = Counting()
    once = read_once(artifact(content)).content
    assert {once.text() for _ in range(36)} == {Text("words", "utf-8")}
    assert [once.convert(ConvertTo((mime,))) for mime in ("image/png", "image/jpeg", "image/png")] == [None] * 3
    assert content.asked == ["text", "image/png", "image/jpeg"]
    assert not isinstance(once, Rendered)


def test_a_failure_is_not_kept() -> None:
    """Bytes that could not be read are tried again."""
    once = read_once(artifact(Counting(failures=1))).content
    with pytest.raises(UnreadableError):
        once.text()
    assert once.text() == Text("words", "utf-8")


def test_tokens_of_a_text_count_each_wide_character_as_one() -> None:
    """Other characters count as a quarter, rounded up."""
    assert [text_tokens(text).tokens for text in ("", "abcde", "你好", "你好abcde", "，🙂")] == [0, 2, 2, 4, 2]
