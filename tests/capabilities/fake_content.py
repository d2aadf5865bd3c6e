"""Fake file contents with fixed results."""

from __future__ import annotations

from dataclasses import dataclass

from capabilities.core.message import Blob, Converted, ConvertTo, PageImages, Text, UnreadableError, make_blob


@dataclass(frozen=True)
class FakeContent:
    """A file's content with fixed results: `data`, the extracted `words` with a `note`, and the converted `image`.

    If `gone` is set, every read fails with this reason.
    """

    data: bytes = b"\x89PNG\r\n\x1a\n pixels that are never shown"
    words: str | None = None
    image: Converted | None = None
    gone: str | None = None
    note: str = ""

    def _check(self) -> None:
        if self.gone:
            raise UnreadableError(self.gone)

    def blob(self) -> Blob:
        self._check()
        return make_blob(self.data)

    def text(self) -> Text | None:
        self._check()
        return None if self.words is None else Text(self.words, "utf-8", self.note)

    def convert(self, target: ConvertTo) -> Converted | None:
        self._check()
        return self.image


@dataclass(frozen=True)
class FakePage(FakeContent):
    """A web page with the source `words` and the text `seen` that a browser would show."""

    seen: str | None = None

    def render(self) -> Text | None:
        self._check()
        return None if self.seen is None else Text(self.seen, "html")


@dataclass(frozen=True)
class FakeScan(FakeContent):
    """A document of `total` pages without text, each rendered as `page`."""

    page: Converted | None = None
    total: int = 3

    def draw(self, target: ConvertTo, count: int) -> PageImages | None:
        self._check()
        if self.page is None or count < 1:
            return None
        return PageImages(dict.fromkeys(range(1, min(count, self.total) + 1), self.page), self.total)
