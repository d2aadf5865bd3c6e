"""The contents of probe files (a word from a list, or four digits), and how they are found in an answer.

A model that has not read a file guesses its contents with a chance of at most one in `size`, since they are drawn for
each file, and an answer that names more than one counts as none.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Sample = Callable[[Sequence[str], int], Sequence[str]]
"""Draws a number of different items from a sequence at random, like `random.SystemRandom().sample`."""

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
    """What a file can contain: the number of choices, and functions that draw two and find them in text."""

    size: int
    draw_two: Callable[[Sample], tuple[str, str]]
    find: Callable[[str], frozenset[str]]


def _find_words(text: str) -> frozenset[str]:
    # NFKC turns full-width letters into plain ones.
    tokens = re.findall(r"[A-Z]+", unicodedata.normalize("NFKC", text).upper())
    return frozenset(tokens).intersection(WORDS)


def _two_words(sample: Sample) -> tuple[str, str]:
    first, second = sample(WORDS, 2)
    return first, second


def _find_numbers(text: str) -> frozenset[str]:
    # Answers may write digits as words, in English or Chinese.
    text_with_digits = _NAMED_DIGIT.sub(
        lambda match: f" {_DIGIT_OF[match[0].lower()]} ", unicodedata.normalize("NFKC", text)
    )
    runs = (re.sub(r"\D", "", run) for run in _RUN.findall(re.sub(r" +", " ", text_with_digits)))
    # Only runs of exactly four digits, since a longer number would contain several.
    return frozenset(run for run in runs if len(run) == DIGITS)


def _two_numbers(sample: Sample) -> tuple[str, str]:
    first, second = sample([f"{value:0{DIGITS}}" for value in _NUMBERS], 2)
    return first, second


ONE_WORD = Vocabulary(len(WORDS), _two_words, _find_words)
FOUR_DIGITS = Vocabulary(len(_NUMBERS), _two_numbers, _find_numbers)
