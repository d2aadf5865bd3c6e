"""A preview extracts a file's text only once, however many services it shows."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from artifacts.core.artifact import StoredArtifact
from capabilities.core.delivery.tokens import text_tokens
from capabilities.core.message import Blob, Converted, ConvertTo, Rendered, Text, UnreadableError, make_blob
from capabilities.core.vocabulary import Kind
from routing_admin.dispatch.preview import read_once


@dataclass
class CountingContent:
    """Content that records its calls and fails the first `failures` times."""

    failures: int = 0
    calls: list[str] = field(default_factory=list)

    def blob(self) -> Blob:
        return make_blob(b"words")

    def text(self) -> Text | None:
        self.calls.append("text")
        if len(self.calls) <= self.failures:
            raise UnreadableError("failed")
        return Text("words", "utf-8")

    def convert(self, target: ConvertTo) -> Converted | None:
        self.calls.append(target.mime_types[0])
        return None


def make_artifact(content: CountingContent) -> StoredArtifact:
    return StoredArtifact("a1", "text/plain", Kind.TEXT, False, 5, "a.txt", content=content)


def test_text_and_conversions_are_extracted_once() -> None:
    content = CountingContent()
    cached = read_once(make_artifact(content)).content
    assert {cached.text() for _ in range(36)} == {Text("words", "utf-8")}
    assert [cached.convert(ConvertTo((mime,))) for mime in ("image/png", "image/jpeg", "image/png")] == [None] * 3
    assert content.calls == ["text", "image/png", "image/jpeg"]
    assert not isinstance(cached, Rendered)


def test_extraction_failure_is_not_cached() -> None:
    cached = read_once(make_artifact(CountingContent(failures=1))).content
    with pytest.raises(UnreadableError):
        cached.text()
    assert cached.text() == Text("words", "utf-8")


def test_wide_characters_count_as_one_token_each() -> None:
    """All other characters count as a quarter of a token each, and the sum is rounded up."""
    assert [text_tokens(text).tokens for text in ("", "abcde", "你好", "你好abcde", "，🙂")] == [0, 2, 2, 4, 2]
