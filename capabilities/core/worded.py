"""Sentences that cores say: English text that still knows its template and its facts, so that a page can translate it.

A core writes `worded("%(path)s is missing.", path=path)` and hands on a `str` like any other; commands, logs and the
API show it as it is. Pages ask `capabilities.sentences.translate_sentence` for it in the reader's language.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Self

Fact = str | int | tuple[str, ...]
"""What stands in a sentence; a tuple is a list of words, and a fact may be a sentence itself."""


class Worded(str):  # a str subclass cannot have slots of its own
    """English text with its `template` and the `facts` in it; equal to the plain text."""

    template: str
    facts: Mapping[str, Fact]

    def __new__(cls, template: str, facts: Mapping[str, Fact] | None = None) -> Self:
        """The template with its facts filled in; without facts it is the text itself."""
        made = super().__new__(cls, template % _english(facts) if facts else template)
        made.template, made.facts = template, dict(facts or {})
        return made


def worded(template: str, **facts: Fact) -> Worded:
    """The sentence; the name makes `template` a source text for translators (see the command makemessages)."""
    return Worded(template, facts)


def _english(facts: Mapping[str, Fact]) -> Mapping[str, str | int]:
    said = {name: ", ".join(fact) if isinstance(fact, tuple) else fact for name, fact in facts.items()}
    return MappingProxyType(said)
