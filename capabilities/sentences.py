"""Translate sentences from the `core` packages, and join sentences and lists of words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from django.utils.translation import gettext, pgettext

from capabilities.core.problems import Problem
from capabilities.core.translatable import Fact, Translatable, insert_facts, translatable
from capabilities.errors import ActionError, InvalidError

WIDE_END = re.compile(r"[。：；，、](?:</\w+>)*$")
"""Full-width punctuation at the end of text, and closing tags after it. No space follows it."""


SEARCHED_CHARS = 100
"""Only this many characters at the end of text are searched for full-width punctuation."""


def translate_sentence(text: str) -> str:
    """Translate a `Translatable` to the current language. Other text, such as a provider's message, stays unchanged."""
    if not isinstance(text, Translatable):
        return text
    translation = gettext(text.template)
    return (
        insert_facts(translation, {name: _fact(fact) for name, fact in text.facts.items()})
        if text.facts
        else translation
    )


def join_words(items: Iterable[object]) -> str:
    """Join words as a list in a sentence: `a, b`, or `a、b` in Chinese."""
    return pgettext("between the items of a list", ", ").join(str(item) for item in items)


MAX_NAMES = 5
"""Maximum number of names listed in a sentence."""


def shorten_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the first `MAX_NAMES` names and, if there are more, a `Translatable` that says how many are left out."""
    more = len(names) - MAX_NAMES
    return (*names[:MAX_NAMES], *([translatable("%(count)s more", count=more)] if more > 0 else []))


def join_names(names: Sequence[str]) -> str:
    """Join the first names as a list in a sentence. If there are more, the list ends with their number."""
    return join_words(map(translate_sentence, shorten_names(names)))


def join_sentences(sentences: Iterable[str]) -> str:
    """Join the sentences that are not empty. A space separates them, except after full-width punctuation.

    The sentences themselves stay unchanged.
    """
    text = ""
    for sentence in filter(None, sentences):
        # A closing tag belongs to the text before it.
        close = not text or sentence.startswith("</") or WIDE_END.search(text[-SEARCHED_CHARS:])
        text += sentence if close else f" {sentence}"
    return text


def _fact(fact: Fact) -> str | int:
    if isinstance(fact, tuple):
        return join_words(translate_sentence(item) for item in fact)
    return translate_sentence(fact) if isinstance(fact, str) else fact


def translate_without_path(problem: Problem) -> str:
    """Return a problem's sentence without its path, for pages that already show the path."""
    return translate_sentence(problem.message).removeprefix(problem.field).lstrip(":： ")


def translate_refusal(refusal: ActionError) -> str:
    if isinstance(refusal, InvalidError):
        return join_sentences(translate_sentence(problem.message) for problem in refusal.problems)
    return translate_sentence(refusal.args[0]) if refusal.args and isinstance(refusal.args[0], str) else str(refusal)
