"""The questions of probes: one for each kind of file, with three files each.

Two of the files contain a word (in audio, four digits) that is drawn at random for each question. A third, the control,
is empty. Nothing else that is sent hints at the word: neither the question nor the file's name.
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


def pdf(word: str) -> bytes:
    """Return a PDF with one page that shows the word. The page is empty for an empty word."""
    stream = b"BT /F1 48 Tf 72 700 Td (%b) Tj ET" % word.encode("ascii") if word else b""
    objects = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%b\nendstream" % (len(stream), stream),
        # Every PDF reader provides this font.
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    )
    out, offsets = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj%b endobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    start, size = len(out), len(objects) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n%b" % (size, table)
    return bytes(out + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (size, start))


MAX_TOKENS = 1024
"""The token limit: enough for an answer of one word and for the reasoning before it."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A question: the capability that it tests, and a function that makes a file with a word, or an empty file.

    `measures` are width, height, pages and seconds of such a file, by which its tokens are estimated.
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
    return png(draw(word, 560, 160, 10))


def film_of(word: str) -> bytes:
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
"""The probes by capability, one for every kind of file that a model may be recorded as able to read."""


def request_of(probe: Probe, word: str) -> ChatRequest:
    """Return the request with a file that contains the word. Every protocol with a slot for the file can encode it."""
    file = NativePart(probe.kind, probe.mime_type, blob_of(probe.make_file(word)), filename=probe.filename)
    return ChatRequest((Message(Role.USER, (TextPart(probe.question), file)),), max_tokens=MAX_TOKENS)
