"""What is asked of a model: one question for each kind of file, three files for each question.

Two of the files hold a word (a sound: four digits) drawn by chance for this one question, a third, the control, holds
nothing. Nothing else that is sent has to do with the word: neither the question nor the file's name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from capabilities.core.message import ChatRequest, Message, NativePart, Role, TextPart, blob_of
from capabilities.core.providers.probes.drawing import draw, png
from capabilities.core.providers.probes.film import mp4
from capabilities.core.providers.probes.speech import wav
from capabilities.core.vocabulary import Kind

# What the files hold: a word of a list, or four digits; and what of that an answer names.
#
# Whoever has not read a file names what is in it with a chance of one in `size` at most, for it is drawn anew for
# each file and an answer that names more than one counts for none.

Sample = Callable[[Sequence[str], int], Sequence[str]]
"""So many different ones of a sequence, by chance: `random.SystemRandom().sample`."""

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
"""Nouns that no question and no file name holds; written once, read as they stand."""

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
    """What a file can hold: how many different ones there are, two of them by chance, and those that a text names."""

    size: int
    draw_two: Callable[[Sample], tuple[str, str]]
    find: Callable[[str], frozenset[str]]


def _find_words(text: str) -> frozenset[str]:
    tokens = re.findall(r"[A-Z]+", unicodedata.normalize("NFKC", text).upper())
    return frozenset(tokens).intersection(WORDS)


def _two_words(sample: Sample) -> tuple[str, str]:
    first, second = sample(WORDS, 2)
    return first, second


def _find_numbers(text: str) -> frozenset[str]:
    """Runs of exactly four digits, written as digits or as words, in English or Chinese."""
    plain = _NAMED_DIGIT.sub(lambda found: f" {_DIGIT_OF[found[0].lower()]} ", unicodedata.normalize("NFKC", text))
    runs = (re.sub(r"\D", "", run) for run in _RUN.findall(re.sub(r" +", " ", plain)))
    return frozenset(run for run in runs if len(run) == DIGITS)


def _two_numbers(sample: Sample) -> tuple[str, str]:
    first, second = sample([f"{each:0{DIGITS}}" for each in _NUMBERS], 2)
    return first, second


ONE_WORD = Vocabulary(len(WORDS), _two_words, _find_words)
FOUR_DIGITS = Vocabulary(len(_NUMBERS), _two_numbers, _find_numbers)


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
