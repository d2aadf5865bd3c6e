"""What can this model read? One tiny file of each kind and a question that only its content answers.

A host that silently drops what it cannot take still answers 200, so an answer counts only when it names what is in
the file; a refusal counts as "cannot", and anything else (no key, no network, too many requests) as not known.
"""

from __future__ import annotations

import io
import math
import re
import struct
import wave
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from capabilities.core.message import ChatRequest, Message, NativePart, Role, TextPart, blob_of
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Fault

SIDE = 64
RATE = 8000
SECONDS = 1
REFUSALS = frozenset({Fault.HTTP_400, Fault.CAPABILITY_MISMATCH, Fault.HTTP_415, Fault.HTTP_422})
"""What a model that cannot read a file answers with, given that it answered words alone."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One question: the capability it is about, the file, and what an answer by somebody who read it contains."""

    capability: str
    kind: Kind
    mime_type: str
    filename: str
    data: Callable[[], bytes]
    question: str
    answer: re.Pattern[str]


def red_square() -> bytes:
    """A PNG of 64 × 64 red pixels."""
    row = b"\x00" + b"\xff\x00\x00" * SIDE
    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(row * SIDE)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def one_page() -> bytes:
    """A PDF of one page that holds one word."""
    stream = b"BT /F1 48 Tf 72 700 Td (pomegranate) Tj ET"
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


def one_tone() -> bytes:
    """A WAV file of one second: a tone of 440 Hz."""
    samples = (int(12000 * math.sin(2 * math.pi * 440 * moment / RATE)) for moment in range(RATE * SECONDS))
    out = io.BytesIO()
    with wave.open(out, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(RATE)
        written.writeframes(b"".join(struct.pack("<h", sample) for sample in samples))
    return out.getvalue()


PROBES: Mapping[str, Probe] = MappingProxyType(
    {
        probe.capability: probe
        for probe in (
            Probe(
                "vision",
                Kind.IMAGE,
                "image/png",
                "square.png",
                red_square,
                "Which colour fills this image? Answer with one word; answer NONE if you see no image.",
                re.compile(r"\b(?:red|scarlet|crimson)\b|红", re.IGNORECASE),
            ),
            Probe(
                "audio",
                Kind.AUDIO,
                "audio/wav",
                "sound.wav",
                one_tone,
                "What do you hear: speech, or a steady sound? Answer with one word; answer NONE if there is no audio.",
                re.compile(r"\b(?:tone|steady|beep|buzz|hum|sound|sine)\b|音", re.IGNORECASE),
            ),
            Probe(
                "file",
                Kind.DOCUMENT,
                "application/pdf",
                "page.pdf",
                one_page,
                "Which fruit does this document name? Answer with one word; answer NONE if you see no document.",
                re.compile(r"pomegranate|石榴", re.IGNORECASE),
            ),
        )
    }
)
"""The probes by the capability they are about."""


def request_of(probe: Probe) -> ChatRequest:
    """The question with its file, as every protocol can write it where it has the slot."""
    data = probe.data()
    file = NativePart(probe.kind, probe.mime_type, blob_of(data), filename=probe.filename)
    return ChatRequest((Message(Role.USER, (TextPart(probe.question), file)),), max_tokens=256)


def verdict(probe: Probe, text: str, fault: str = "") -> bool | None:
    """Whether the model reads it: its answer names the content, or not; None when the call says nothing about it."""
    if fault:
        return False if fault in REFUSALS else None
    said = text.strip()
    return probe.answer.search(said) is not None if said else None
