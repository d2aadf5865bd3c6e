"""A model can describe a file if it gets the file natively, converted or as pages, within the limits."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from fake_content import FakeContent, FakeScan

from capabilities.core.delivery.obstacles import ReasonCode
from capabilities.core.delivery.reader import Reader, parse_policies
from capabilities.core.delivery.slot_choice import slots_for
from capabilities.core.describing.describable import obstacle_to_describing
from capabilities.core.message import Converted, FilePart, Inspection, make_blob
from capabilities.core.vocabulary import Capabilities, Kind

PAGE = Converted(make_blob(b"p" * 900), "image/png", 1000, 1400)
PNG = FilePart(Kind.IMAGE, "image/png", "dot.png", 44, content=FakeContent())
TIFF = replace(PNG, mime_type="image/tiff", filename="dot.tiff", content=FakeContent(image=PAGE))
SCAN = FilePart(Kind.DOCUMENT, "application/pdf", "scan.pdf", 44, content=FakeScan(page=PAGE, total=3))
CLIP = FilePart(Kind.VIDEO, "video/mp4", "clip.mp4", 44, seconds=60, content=FakeContent())
VOICE = FilePart(Kind.AUDIO, "audio/mpeg", "voice.mp3", 44, seconds=60, content=FakeContent())
SHEET = FilePart(Kind.DOCUMENT, "application/vnd.ms-excel", "sheet.xls", 44, content=FakeContent(words="a | b"))
NOTHING = Inspection()


@dataclass(frozen=True)
class Inspected(FakeScan):
    """A scan's or clip's content, with a given inspection result."""

    found: Inspection = NOTHING

    def inspect(self) -> Inspection:
        self._check()
        return self.found


def reader(*capabilities: str, protocol: str = "gemini", policy: str = "describe") -> Reader:
    return Reader(slots_for(protocol), Capabilities(("text", *capabilities)), parse_policies(policy))


EVERYTHING = reader("vision", "audio", "video", "file")
SEEING = reader("vision", protocol="openai")


@pytest.mark.parametrize(
    ("file", "describer"),
    [
        *((file, EVERYTHING) for file in (PNG, TIFF, SCAN, CLIP, VOICE)),
        *((file, SEEING) for file in (PNG, TIFF, SCAN)),
        (replace(PNG, content=None, url="https://example.com/dot.png"), SEEING),
    ],
)
def test_file_readable_by_the_describer_can_be_described(file: FilePart, describer: Reader) -> None:
    assert obstacle_to_describing(file, describer) is None


@pytest.mark.parametrize(
    ("file", "describer", "code"),
    [
        (PNG, reader("audio"), ReasonCode.NO_CAPABILITY),
        (VOICE, SEEING, ReasonCode.NO_CAPABILITY),
        (CLIP, reader("video", protocol="openai"), ReasonCode.NO_SLOT),
        (SHEET, reader("vision", "file", policy="extract+convert"), ReasonCode.TYPE),
        (replace(TIFF, content=FakeContent()), SEEING, ReasonCode.NOT_CONVERTED),
        (replace(SCAN, content=FakeScan()), SEEING, ReasonCode.NOT_CONVERTED),
        (replace(CLIP, seconds=601), EVERYTHING, ReasonCode.TOO_LONG),
        (replace(VOICE, seconds=1800.5), EVERYTHING, ReasonCode.TOO_LONG),
        (replace(PNG, size=0), EVERYTHING, ReasonCode.EMPTY),
        (replace(PNG, unreadable="artifact_missing"), EVERYTHING, ReasonCode.UNREADABLE),
        (replace(PNG, content=None), EVERYTHING, ReasonCode.UNREADABLE),
        (replace(TIFF, content=FakeContent(gone="artifact_corrupt")), SEEING, ReasonCode.UNREADABLE),
        (replace(SCAN, content=Inspected(page=PAGE, found=Inspection(locked=True))), EVERYTHING, ReasonCode.LOCKED),
        (replace(SCAN, content=Inspected(gone="artifact_missing")), EVERYTHING, ReasonCode.UNREADABLE),
    ],
)
def test_undescribable_file_has_a_reason(file: FilePart, describer: Reader, code: ReasonCode) -> None:
    """The reason is found before a describing model is called and paid for."""
    reason = obstacle_to_describing(file, describer)
    assert reason is not None
    assert reason.code is code


def test_unknown_recording_length_is_measured_before_describing() -> None:
    """A recording whose length cannot be measured can still be described."""
    long = replace(CLIP, seconds=None, content=Inspected(found=Inspection(seconds=900.2)))
    reason = obstacle_to_describing(long, EVERYTHING)
    assert reason is not None
    assert reason.sentence() == "The recording is 901 seconds long; the limit for descriptions is 600."
    assert obstacle_to_describing(replace(CLIP, seconds=None), EVERYTHING) is None
