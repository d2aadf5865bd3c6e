"""What cores say, in the reader's language: their sentences know their facts."""

from __future__ import annotations

import re
from collections.abc import Iterable

from django.utils.translation import gettext, pgettext

from capabilities.core.problems import Problem
from capabilities.core.translatable import Fact, Translatable, insert_facts
from capabilities.errors import ActionError, InvalidError

WIDE_END = re.compile(r"[。：；，、](?:</\w+>)*$")
"""How a text ends after which Chinese has no space; tags that close there are looked through."""


LOOKED_AT = 100
"""Characters in which an end and its tags stand."""


def translate_sentence(text: str) -> str:
    """A core's sentence in the reader's language; any other text, such as a provider's own words, as it is."""
    if not isinstance(text, Translatable):
        return text
    said = gettext(text.template)
    return insert_facts(said, {name: _fact(fact) for name, fact in text.facts.items()}) if text.facts else said


def join_words(words: Iterable[object]) -> str:
    """Words as a sentence holds them: `a, b`, in Chinese `a、b`."""
    return pgettext("between the items of a list", ", ").join(str(word) for word in words)


def join_sentences(sentences: Iterable[str]) -> str:
    """Sentences one after the other, without the empty ones: a space between them, none after a full-width sign.

    What stands inside a sentence stays as it is, such as a provider's own words.
    """
    text = ""
    for sentence in filter(None, sentences):
        close = not text or sentence.startswith("</") or WIDE_END.search(text[-LOOKED_AT:])
        text += sentence if close else f" {sentence}"
    return text


def _fact(fact: Fact) -> str | int:
    if isinstance(fact, tuple):
        return join_words(translate_sentence(word) for word in fact)
    return translate_sentence(fact) if isinstance(fact, str) else fact


def translate_without_path(problem: Problem) -> str:
    """The sentence of a problem for a place where its path stands already."""
    return translate_sentence(problem.message).removeprefix(problem.field).lstrip(":： ")


def translate_refusal(refusal: ActionError) -> str:
    """Why an action was refused, for a person."""
    if isinstance(refusal, InvalidError):
        return join_sentences(translate_sentence(problem.message) for problem in refusal.problems)
    return translate_sentence(refusal.args[0]) if refusal.args and isinstance(refusal.args[0], str) else str(refusal)
