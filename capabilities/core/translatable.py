"""English text that stores its template and its values (the facts), so that a page can translate it.

Code in a `core` package writes `translatable("%(path)s is missing.", path=path)`. The result is a `str`, which
commands, logs and the API use unchanged. Pages translate it with `capabilities.sentences`. Rows and files store the
template and the facts (`encode_text`), because English text is never parsed to recover them (docs/decisions/0007).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Self

Fact = str | int | tuple[str, ...]
"""A value that is inserted into a sentence. A tuple is a list of words. A string may itself be a translatable
sentence."""


class Translatable(str):
    """English text with its `template` and `facts`. It is equal to the plain text."""

    template: str
    facts: Mapping[str, Fact]

    def __new__(cls, template: str, facts: Mapping[str, Fact] | None = None) -> Self:
        # If there are no facts, a percent sign in the template is ordinary text.
        instance = super().__new__(cls, template % _english(facts) if facts else template)
        instance.template, instance.facts = str(template), dict(facts or {})
        return instance

    def change_texts(self, change: Callable[[str], str]) -> Translatable:
        """Return the sentence after applying `change` to all strings in its facts, including nested sentences."""
        return Translatable(self.template, {name: _change_fact(fact, change) for name, fact in self.facts.items()})


def translatable(template: str, **facts: Fact) -> Translatable:
    """Return a translatable sentence. `makemessages` extracts `template` for translators."""
    return Translatable(template, facts)


def encode_text(text: str) -> Any:
    """Return a translatable sentence as JSON with its template (`code`) and its facts, or any other text unchanged."""
    if not isinstance(text, Translatable):
        return str(text)
    return {"code": text.template, "facts": {name: _encode_fact(fact) for name, fact in text.facts.items()}}


def decode_text(data: Any) -> str:
    if not isinstance(data, Mapping):
        return str(data)
    return Translatable(data["code"], {name: _decode_fact(fact) for name, fact in data["facts"].items()})


def _english(facts: Mapping[str, Fact]) -> Mapping[str, str | int]:
    values = {name: ", ".join(fact) if isinstance(fact, tuple) else fact for name, fact in facts.items()}
    return MappingProxyType(values)


def _change_fact(fact: Fact, change: Callable[[str], str]) -> Fact:
    if isinstance(fact, tuple):
        return tuple(_change_word(item, change) for item in fact)
    return _change_word(fact, change) if isinstance(fact, str) else fact


def _change_word(text: str, change: Callable[[str], str]) -> str:
    return text.change_texts(change) if isinstance(text, Translatable) else change(text)


def _encode_fact(fact: Fact) -> Any:
    if isinstance(fact, tuple):
        return [encode_text(item) for item in fact]
    return encode_text(fact) if isinstance(fact, str) else fact


def _decode_fact(data: Any) -> Fact:
    if isinstance(data, list):
        return tuple(decode_text(item) for item in data)
    return data if isinstance(data, int) else decode_text(data)


# How values are spaced in Chinese sentences: a space separates Chinese from Latin words and digits, but not from other
# Chinese. A translator cannot know whether `%(file)s` will be 图片 or report.pdf, so the space is chosen when the value
# is inserted. Sentences in Latin letters stay unchanged.

_HAN = "[\u3400-\u9fff]"
_WIDE = "[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]"
_PLACEHOLDER = re.compile(rf"(?P<before>(?<={_HAN}) ?)?%\((?P<name>\w+)\)s(?P<after> ?(?={_HAN}))?|%%")


def insert_facts(sentence: str, facts: Mapping[str, object]) -> str:
    """Return the sentence with its facts inserted. Raise KeyError if a fact is missing."""
    return _PLACEHOLDER.sub(lambda hole: _fill_placeholder(hole, facts), sentence)


def _fill_placeholder(hole: re.Match[str], facts: Mapping[str, object]) -> str:
    if hole[0] == "%%":
        return "%"
    text = str(facts[hole["name"]])
    space_before = hole["before"] if hole["before"] is None else _space(text[:1], hole["before"])
    space_after = hole["after"] if hole["after"] is None else _space(text[-1:], hole["after"])
    return f"{space_before or ''}{text}{space_after or ''}"


def _space(edge: str, space: str) -> str:
    if re.match(_WIDE, edge):
        return ""
    return " " if edge.isalnum() else space


# Counts in English text from commands and errors. Pages use `ngettext` instead.


def pluralize(number: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun: `1 request`, `2,000 requests`. `plural` is for irregular plurals."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
