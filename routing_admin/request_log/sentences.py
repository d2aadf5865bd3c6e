"""Error messages in the log, which are stored as templates with facts and rendered in the reader's language.

The gateway's own messages are stored with their template (`Translatable`), so English text never has to be recognised
(docs/decisions/0007). Any other text is from a provider or caller and is shown unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from capabilities.core.protocols.errors import WEB_PAGE
from capabilities.core.translatable import Translatable, decode_text, insert_facts
from capabilities.labels import label_facts
from capabilities.sentences import join_sentences, translate_sentence
from routing_admin.core.fallback.candidate_run import COOLING
from routing_admin.core.fallback.errors import EXHAUSTED, LONE_FAILED, NOT_ACCEPTED, NOT_SUPPORTED, OUT_OF_TIME, REFUSED
from routing_admin.models import AttemptLog, RequestLog

QUOTING: Mapping[str, str | Promise] = {
    EXHAUSTED: gettext_lazy("All %(count)s candidates failed; each attempt says why."),
    LONE_FAILED: gettext_lazy("The only candidate failed; the attempt says why."),
    OUT_OF_TIME: gettext_lazy("The request ran out of time; each attempt says why."),
    NOT_ACCEPTED: gettext_lazy("No candidate accepts the whole request; each attempt says what it would leave out."),
    NOT_SUPPORTED: gettext_lazy(
        "No candidate's provider supports this call. Name a model of a provider that speaks openai."
    ),
    REFUSED: gettext_lazy("%(name)s refused the request."),
    WEB_PAGE: gettext_lazy("The provider returned a web page instead of an answer."),
    COOLING: gettext_lazy("Cooling down for %(seconds)s s after %(fault)s."),
}
"""Maps messages that quote another message (`said`) to their wording without the quotation."""
LISTS = frozenset({EXHAUSTED, LONE_FAILED, OUT_OF_TIME, NOT_ACCEPTED, NOT_SUPPORTED})
"""Messages that quote only text that the list of attempts also shows."""


@dataclass(frozen=True, slots=True)
class RenderedSentence:
    """The gateway's own message in the reader's language, and a message that it quotes; either may be empty.

    `earlier` is English text from a row of an earlier version, which did not record who wrote the text.
    """

    ours: str = ""
    quoted: str = ""
    earlier: str = ""

    def __str__(self) -> str:
        text = self.quoted or self.earlier
        return join_sentences((self.ours, f"“{text}”" if text and self.ours else text))

    def __bool__(self) -> bool:
        return bool(self.ours or self.quoted or self.earlier)


def logged_text(row: RequestLog | AttemptLog) -> str:
    """Return the error in English, or "" if there is no error.

    A message from the gateway itself is a `Translatable` with its template and facts.
    """
    return row.error if row.sentence is None else decode_text(row.sentence)


def render_logged(row: RequestLog | AttemptLog) -> RenderedSentence:
    return RenderedSentence(earlier=row.error) if row.sentence is None else render_sentence(logged_text(row))


def render_reason(data: Any) -> RenderedSentence:
    """Return the rendered reason for the form in which a file was sent; `data` is from a `deliveries` column."""
    text = decode_text(data)
    return render_sentence(text) if isinstance(text, Translatable) else RenderedSentence(earlier=text)


def render_sentence(text: str | None) -> RenderedSentence:
    """Return an error message in the reader's language."""
    if not isinstance(text, Translatable):
        return RenderedSentence(quoted=text or "")
    if text.template not in QUOTING:
        return RenderedSentence(translate_sentence(Translatable(text.template, label_facts(text.facts))))
    ours = insert_facts(str(QUOTING[text.template]), text.facts)
    inner = RenderedSentence() if text.template in LISTS else render_sentence(_cause_text(text))
    return RenderedSentence(join_sentences((ours, inner.ours)), inner.quoted)


def _cause_text(text: Translatable) -> str:
    cause = text.facts["said"]
    return cause if isinstance(cause, str) else ""
