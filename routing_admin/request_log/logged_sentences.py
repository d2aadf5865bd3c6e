"""Sentences that were logged, or came back as a failure's message: ours in the reader's language, others as quotations.

A log keeps plain English. What we said ourselves is one of the templates here, so its facts are read out of it again;
everything else is a provider's own words and stays as it came.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy, gettext_noop

from capabilities.core.delivery.reasons import SENTENCES as DELIVERY
from capabilities.core.providers import origins
from capabilities.core.worded import Worded
from capabilities.sentences import read_again, translate_sentence
from routing_admin.configuration.snapshot import KEY_SENTENCES
from routing_admin.core.fallback.chain import SKIP_SENTENCES
from routing_admin.core.fallback.errors import EXHAUSTED, OUT_OF_TIME, REFUSED
from routing_admin.core.fallback.scripts import SCRIPTED
from routing_admin.upstream.faults import SENTENCES as FAULTS

PROTOCOLS = (
    gettext_noop("redirected to %(place)s"),
    gettext_noop("redirected"),
    gettext_noop("%(type)s came where JSON was due"),
    gettext_noop("the body is no JSON: %(reason)s"),
    gettext_noop("the body is no JSON"),
    gettext_noop("a JSON object was due, %(type)s came"),
    gettext_noop("a JSON object was due"),
    gettext_noop("the answer has no choices"),
    gettext_noop("choices is not a list of objects"),
    gettext_noop("the candidate has no message"),
    gettext_noop("the answer has no content blocks"),
    gettext_noop("the answer has no candidates"),
    gettext_noop("candidates is not a list of objects"),
    gettext_noop("the body is too large"),
    gettext_noop("one event of the stream is too large"),
    gettext_noop("%(count)s malformed events: %(reason)s"),
    gettext_noop("the stream ended without saying that the answer is whole"),
    gettext_noop("the stream ended before any content"),
    gettext_noop("the model said nothing"),
    gettext_noop("the answer has no candidate"),
    gettext_noop("the prompt was blocked: %(reason)s"),
    gettext_noop("the list of models is not JSON"),
    gettext_noop("no list of models"),
    gettext_noop("the list of models is empty"),
    gettext_noop("echo-503 always fails; it is there to show a fallback."),
    gettext_noop("%(model)s was switched off for this example, so that the last candidate's form shows."),
)
"""What our readers of answers say of them; a test compares it with the protocols' code."""

WEB_PAGE = "a web page came: %(said)s"
QUOTING: Mapping[str, str | Promise] = {
    EXHAUSTED: gettext_lazy("All %(count)s candidates failed; each attempt says why."),
    OUT_OF_TIME: gettext_lazy("The total time is used up after %(count)s candidates; each attempt says why."),
    REFUSED: gettext_lazy("%(name)s refused the request."),
    WEB_PAGE: gettext_lazy("A web page came instead of an answer."),
}
"""Sentences that hold another's words as `said`, without them."""
LISTS = frozenset({EXHAUSTED, OUT_OF_TIME})
"""Those whose `said` only repeats the attempts."""

TEMPLATES = tuple(
    str(text)
    for text in (
        *QUOTING,
        *PROTOCOLS,
        *FAULTS.values(),
        *SKIP_SENTENCES.values(),
        *KEY_SENTENCES,
        origins.NOT_ALLOWED,
        origins.UNUSABLE,
        *origins.REASONS,
        *DELIVERY.values(),
        *(word.failure.message for word in SCRIPTED.values() if word.failure),
        *(word.cut.message for word in SCRIPTED.values() if word.cut),
    )
)
"""Everything of ours that a log can hold; a `Worded` template compares as its text."""


@dataclass(frozen=True, slots=True)
class LoggedSentence:
    """Our sentence in the reader's language, and somebody else's words; either may be empty."""

    ours: str = ""
    quoted: str = ""

    def __str__(self) -> str:
        return " ".join(
            part for part in (self.ours, f"“{self.quoted}”" if self.quoted and self.ours else self.quoted) if part
        )

    def __bool__(self) -> bool:
        return bool(self.ours or self.quoted)


def said(text: str | None) -> LoggedSentence:
    """What a logged or returned sentence is to a person who reads it now."""
    found = recognised(text or "")
    if not isinstance(found, Worded):
        return LoggedSentence(quoted=found)
    if found.template not in QUOTING:
        return LoggedSentence(translate_sentence(found))
    ours = str(QUOTING[found.template]) % found.facts
    inner = LoggedSentence() if found.template in LISTS else said(str(found.facts["said"]))
    return LoggedSentence(" ".join(part for part in (ours, inner.ours) if part), inner.quoted)


def recognised(text: str) -> str:
    """The sentence with its template and facts where it is one of ours; otherwise the text as it is."""
    return text if isinstance(text, Worded) or not text else read_again(text, TEMPLATES) or text
