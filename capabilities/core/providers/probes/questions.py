"""The probes' questions: one for each kind of file, each asked about three files.

Two of the files contain a word (in audio, four digits) that is drawn at random for each question. The third file,
called the control file, is empty. Neither the question nor the file name hints at the word.

If a model cannot read a file, its chance of guessing the contents is at most 1 / `Vocabulary.size`, because the
contents are drawn for each file, and an answer that names several words is not accepted.
"""

from __future__ import annotations

import io
import re
import unicodedata
import wave
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from capabilities.core.message import ChatRequest, Message, NativePart, Role, TextPart, make_blob
from capabilities.core.providers.probes.drawing import draw, mp4, png
from capabilities.core.vocabulary import Kind

Sample = Callable[[Sequence[str], int], Sequence[str]]
"""Function that draws a given number of different items from a sequence, like `random.SystemRandom().sample`."""

_NOUNS = """
ACORN ALMOND ANCHOR ANVIL APRON ARMOR BACON BADGER BAMBOO BANJO BARREL BASIL BEAVER BISCUIT BLANKET BONNET BRICK
BROOM BUCKET BUTTON CABIN CACTUS CAMEL CANDLE CANOE CARPET CARROT CASTLE CELERY CHERRY CHIMNEY CIDER CLOVER
COBRA COCOA COMET COPPER CORAL CRADLE CRAYON CURTAIN DAGGER DONKEY DRAGON DRUM EAGLE EMERALD FALCON FENNEL FERRY
FIDDLE FLANNEL FOUNTAIN GARLIC GINGER GOBLET GRANITE GUITAR HAMMER HARBOR HELMET HERON HERRING HONEY ICEBERG
IGLOO IVORY KETTLE KITTEN LADDER LANTERN LEMON LIBRARY LOBSTER MAGNET MANGO MAPLE MARBLE MEADOW MITTEN MUSTARD
NAPKIN NEEDLE NUTMEG OCTOPUS OLIVE ORCHARD ORCHID OTTER PANTHER PARROT PEANUT PEBBLE PEPPER PIANO PILLOW PISTON
POTATO PUDDLE PUMPKIN PYRAMID RABBIT RADISH RAVEN RIBBON ROCKET SADDLE SALMON SANDAL SHOVEL SPINACH SPIDER
TEAPOT THIMBLE TOMATO TROMBONE TULIP TURTLE TUNNEL UMBRELLA VELVET VIOLIN WAFFLE WALNUT WHISTLE WILLOW WINDMILL
YOGURT
"""
WORDS = tuple(_NOUNS.split())
"""Nouns that do not occur in any question or file name."""

_DIGITS = (
    ("zero", "oh", "零", "〇"),
    *(("one", "一", "幺"), ("two", "二", "两"), ("three", "三"), ("four", "四"), ("five", "五")),
    *(("six", "六"), ("seven", "七"), ("eight", "八"), ("nine", "九")),
)
_DIGIT_OF = {name: str(digit) for digit, names in enumerate(_DIGITS) for name in names}
_NAMED_DIGIT = re.compile("|".join(rf"\b{name}\b" if name.isascii() else name for name in _DIGIT_OF), re.IGNORECASE)
_RUN = re.compile(r"\d(?:[ ,，、\-–·]{0,4}\d)*")
DIGITS = 4
_NUMBERS = range(10**DIGITS)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words or numbers that a probe's file may contain: how many, how to draw two, and how to find them in text."""

    size: int
    draw_two: Callable[[Sample], tuple[str, str]]
    find: Callable[[str], frozenset[str]]


def _find_words(text: str) -> frozenset[str]:
    # NFKC converts full-width letters to ASCII.
    tokens = re.findall(r"[A-Z]+", unicodedata.normalize("NFKC", text).upper())
    return frozenset(tokens).intersection(WORDS)


def _two_words(sample: Sample) -> tuple[str, str]:
    first, second = sample(WORDS, 2)
    return first, second


def _find_numbers(text: str) -> frozenset[str]:
    # Answers may contain digits as words, in English or Chinese.
    text_with_digits = _NAMED_DIGIT.sub(
        lambda match: f" {_DIGIT_OF[match[0].lower()]} ", unicodedata.normalize("NFKC", text)
    )
    runs = (re.sub(r"\D", "", run) for run in _RUN.findall(re.sub(r" +", " ", text_with_digits)))
    # Accept only runs of exactly four digits, because a longer number would contain several four-digit numbers.
    return frozenset(run for run in runs if len(run) == DIGITS)


def _two_numbers(sample: Sample) -> tuple[str, str]:
    first, second = sample([f"{value:0{DIGITS}}" for value in _NUMBERS], 2)
    return first, second


ONE_WORD = Vocabulary(len(WORDS), _two_words, _find_words)
FOUR_DIGITS = Vocabulary(len(_NUMBERS), _two_numbers, _find_numbers)


RATE = 16_000
DIGIT_FRAMES = RATE * 3 // 4
"""Number of audio frames for each digit in `digits.wav`, including the silence after the digit."""
SILENCE = 128
"""The value of silence in an 8-bit audio sample."""


def wav(digits: str) -> bytes:
    """Return a recording of the digits in English, with pauses. Without digits, return silence of the same length."""
    pause = bytes((SILENCE,)) * (RATE // 4)
    speech = pause + pause.join(_load_clip(digit) for digit in digits) + pause
    samples = speech if digits else pause + (bytes((SILENCE,)) * DIGIT_FRAMES + pause) * 4
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        # Convert unsigned 8-bit samples to signed 16-bit samples.
        file.writeframes(b"".join(((sample - SILENCE) * 256).to_bytes(2, "little", signed=True) for sample in samples))
    return out.getvalue()


def _load_clip(digit: str) -> bytes:
    start = int(digit) * DIGIT_FRAMES
    return _recording()[start : start + DIGIT_FRAMES]


@cache
def _recording() -> bytes:
    with files(__package__).joinpath("digits.wav").open("rb") as file, wave.open(file) as clips:
        return bytes(clips.readframes(clips.getnframes()))


def pdf(word: str) -> bytes:
    """Return a one-page PDF that shows the word. If the word is empty, so is the page."""
    stream = b"BT /F1 48 Tf 72 700 Td (%b) Tj ET" % word.encode("ascii") if word else b""
    objects = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%b\nendstream" % (len(stream), stream),
        # Helvetica is not embedded, because every PDF reader provides it.
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
"""Token limit for an answer. It is enough for one word and the reasoning before it."""


@dataclass(frozen=True, slots=True)
class Probe:
    """The question that tests a capability, and a function that makes a file with a given word, or an empty file.

    `measures` are the file's width, height, pages and seconds. Its tokens are estimated from them.
    """

    capability: str
    kind: Kind
    mime_type: str
    filename: str
    vocabulary: Vocabulary
    make_file: Callable[[str], bytes]
    question: str
    measures: tuple[int | None, int | None, int | None, float | None]


def draw_picture(word: str) -> bytes:
    return png(draw(word, 560, 160, 10))


def draw_video(word: str) -> bytes:
    return mp4(draw(word, 320, 128, 6))


_READ = "Answer with that word alone, exactly as it is written. Answer NONE if you see no word."

PROBES: Mapping[str, Probe] = MappingProxyType(
    {
        probe.capability: probe
        for probe in (
            Probe(
                "vision",
                *(Kind.IMAGE, "image/png", "picture.png", ONE_WORD, draw_picture),
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
                *(Kind.VIDEO, "video/mp4", "film.mp4", ONE_WORD, draw_video),
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
"""Maps capabilities to probes. There is one for each kind of file that models may be able to read."""


def build_request(probe: Probe, word: str) -> ChatRequest:
    """Return a request with a file that contains the word.

    Every protocol that has a slot for the file can encode the request.
    """
    file = NativePart(probe.kind, probe.mime_type, make_blob(probe.make_file(word)), filename=probe.filename)
    return ChatRequest((Message(Role.USER, (TextPart(probe.question), file)),), max_tokens=MAX_TOKENS)
