"""What is asked of a model: one question for each kind of file, three files for each question.

Two of the files hold a word (a sound: four digits) drawn by chance for this one question, a third, the control, holds
nothing. Nothing else that is sent has to do with the word: neither the question nor the file's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from capabilities.core.message import ChatRequest, Message, NativePart, Role, TextPart, blob_of
from capabilities.core.providers.probes.drawing import draw, png
from capabilities.core.providers.probes.film import mp4
from capabilities.core.providers.probes.speech import wav
from capabilities.core.providers.probes.vocabulary import FOUR_DIGITS, ONE_WORD, Vocabulary
from capabilities.core.vocabulary import Kind

# A word as a PDF of one page, set in a font that every reader has.


def pdf(word: str) -> bytes:
    """One page that holds the word, or nothing where there is none."""
    stream = b"BT /F1 48 Tf 72 700 Td (%b) Tj ET" % word.encode("ascii") if word else b""
    objects = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%b\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    )
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj%b endobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    start, size = len(out), len(objects) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n%b" % (size, table)
    return bytes(out + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (size, start))


MAX_TOKENS = 1024
"""Room for an answer of one word, and for a model that thinks before it."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One question: the capability it is about, and how a file is made that holds a word, or nothing for an empty one.

    `measures` are what the size in tokens of such a file is estimated by: width, height, pages, seconds.
    """

    capability: str
    kind: Kind
    mime_type: str
    filename: str
    vocabulary: Vocabulary
    make_file: Callable[[str], bytes]
    question: str
    measures: tuple[int | None, int | None, int | None, float | None]


def picture_of(word: str) -> bytes:
    """A PNG with the word in large letters."""
    return png(draw(word, 560, 160, 10))


def film_of(word: str) -> bytes:
    """An MP4 of three seconds that shows the word."""
    return mp4(draw(word, 320, 128, 6))


_READ = "Answer with that word alone, exactly as it is written. Answer NONE if you see no word."

PROBES: Mapping[str, Probe] = MappingProxyType(
    {
        probe.capability: probe
        for probe in (
            Probe(
                "vision",
                *(Kind.IMAGE, "image/png", "picture.png", ONE_WORD, picture_of),
                f"Which word is written in this image? {_READ}",
                (560, 160, None, None),
            ),
            Probe(
                "audio",
                *(Kind.AUDIO, "audio/wav", "recording.wav", FOUR_DIGITS, wav),
                "Somebody says digits in this recording. Which, in their order? Answer with the digits alone. "
                "Answer NONE if you hear no digits.",
                (None, None, None, 4.25),
            ),
            Probe(
                "video",
                *(Kind.VIDEO, "video/mp4", "film.mp4", ONE_WORD, film_of),
                f"Which word is written in this video? {_READ}",
                (320, 128, None, 3.0),
            ),
            Probe(
                "file",
                *(Kind.DOCUMENT, "application/pdf", "page.pdf", ONE_WORD, pdf),
                f"Which word is written in this document? {_READ}",
                (None, None, 1, None),
            ),
        )
    }
)
"""The probes by the capability they are about: every kind of file that a model can be said to read."""


def request_of(probe: Probe, word: str) -> ChatRequest:
    """The question with a file that holds the word, as every protocol can write it where it has the slot."""
    file = NativePart(probe.kind, probe.mime_type, blob_of(probe.make_file(word)), filename=probe.filename)
    return ChatRequest((Message(Role.USER, (TextPart(probe.question), file)),), max_tokens=MAX_TOKENS)
