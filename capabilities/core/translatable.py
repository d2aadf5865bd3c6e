"""English text that still knows its template and its facts, so that a page can translate it.

A core writes `translatable("%(path)s is missing.", path=path)` and returns a `str` like any other; commands, logs and
the API show it as it is. Pages ask `capabilities.translated` for it in the reader's language. A row or a file keeps
its `data_of`, code and facts; English is never parsed back (docs/decisions/0007).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Self

Fact = str | int | tuple[str, ...]
"""What stands in a sentence; a tuple is a list of words, and a fact may be a sentence itself."""


class Translatable(str):  # a str subclass cannot have slots of its own
    """English text with its `template` and the `facts` in it; equal to the plain text."""

    template: str
    facts: Mapping[str, Fact]

    def __new__(cls, template: str, facts: Mapping[str, Fact] | None = None) -> Self:
        """The template with its facts filled in; without facts it is the text itself."""
        made = super().__new__(cls, template % _english(facts) if facts else template)
        made.template, made.facts = str(template), dict(facts or {})
        return made

    def change_texts(self, change: Callable[[str], str]) -> Translatable:
        """The same sentence with every text among its facts changed, those of sentences inside it too."""
        return Translatable(self.template, {name: _change_fact(fact, change) for name, fact in self.facts.items()})


def translatable(template: str, **facts: Fact) -> Translatable:
    """The sentence; the name makes `template` a source text for translators (see the command makemessages)."""
    return Translatable(template, facts)


def data_of(text: str) -> Any:
    """What is kept of a text, as JSON: of a sentence of ours its code and facts, of other words the words themselves.

    The code of a sentence is its template.
    """
    if not isinstance(text, Translatable):
        return str(text)
    return {"code": text.template, "facts": {name: _fact_data(fact) for name, fact in text.facts.items()}}


def text_of(data: Any) -> str:
    """The text that `data_of` kept."""
    if not isinstance(data, Mapping):
        return str(data)
    return Translatable(data["code"], {name: _fact_of(fact) for name, fact in data["facts"].items()})


def _english(facts: Mapping[str, Fact]) -> Mapping[str, str | int]:
    said = {name: ", ".join(fact) if isinstance(fact, tuple) else fact for name, fact in facts.items()}
    return MappingProxyType(said)


def _change_fact(fact: Fact, change: Callable[[str], str]) -> Fact:
    if isinstance(fact, tuple):
        return tuple(_change_word(word, change) for word in fact)
    return _change_word(fact, change) if isinstance(fact, str) else fact


def _change_word(word: str, change: Callable[[str], str]) -> str:
    return word.change_texts(change) if isinstance(word, Translatable) else change(word)


def _fact_data(fact: Fact) -> Any:
    if isinstance(fact, tuple):
        return [data_of(word) for word in fact]
    return data_of(fact) if isinstance(fact, str) else fact


def _fact_of(data: Any) -> Fact:
    if isinstance(data, list):
        return tuple(text_of(word) for word in data)
    return data if isinstance(data, int) else text_of(data)


# Facts in a sentence, spaced as Chinese is set: one space beside Latin words and digits, none beside Chinese.
#
# A translator cannot know whether `%(file)s` becomes 图片 or report.pdf, so the space is decided here, where both are
# known. Sentences in Latin letters have no Chinese beside their holes, and stay as they are.

_HAN = "[\u3400-\u9fff]"
_WIDE = "[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]"
_HOLE = re.compile(rf"(?P<before>(?<={_HAN}) ?)?%\((?P<name>\w+)\)s(?P<after> ?(?={_HAN}))?|%%")


def insert_facts(sentence: str, facts: Mapping[str, object]) -> str:
    """The sentence with its facts in it. Raises `KeyError` for a fact that is missing."""
    return _HOLE.sub(lambda hole: _fill_hole(hole, facts), sentence)


def _fill_hole(hole: re.Match[str], facts: Mapping[str, object]) -> str:
    if hole[0] == "%%":
        return "%"
    text = str(facts[hole["name"]])
    before = hole["before"] if hole["before"] is None else _space(text[:1], hole["before"])
    after = hole["after"] if hole["after"] is None else _space(text[-1:], hole["after"])
    return f"{before or ''}{text}{after or ''}"


def _space(edge: str, space: str) -> str:
    """What stands between a Chinese word and a text with this edge; as it is `space` beside signs."""
    if re.match(_WIDE, edge):
        return ""
    return " " if edge.isalnum() else space


# Numbers with the noun they count, in the English of commands and errors; pages use `ngettext`.


def count_of(number: int, noun: str, plural: str = "") -> str:
    """`1 request`, `2,000 requests`; `plural` where an s is not enough."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
