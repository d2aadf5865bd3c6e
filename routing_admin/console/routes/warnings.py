"""Warnings about a whole chain.

They name skipped candidates, what a fallback cannot read, doubtful capabilities, and models about to be retired.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from capabilities.core.translatable import insert_facts
from capabilities.sentences import join_words
from routing_admin.console.routes import phrases as words
from routing_admin.core.planning.lint import ChainLint, Finding


def warnings_of(lint: ChainLint) -> Iterator[tuple[str, str, str]]:
    """Yield (tone, icon, sentence) for each warning about the chain."""
    if not lint.callable:
        yield "bad", "stop", _("No candidate can answer: all are skipped")
    skipped = sum(1 for candidate in lint.candidates if candidate.skipped)
    if lint.callable and skipped:
        text = ngettext("%(count)d candidate will be skipped", "%(count)d candidates will be skipped", skipped)
        # If only one candidate of a longer chain remains, a single failure leaves no answer.
        yield "bad" if skipped + 1 == len(lint.candidates) > 2 else "", "right", text % {"count": skipped}
    yield from _losses(lint)
    yield from _drifts(lint)
    yield from _ends(lint)


def _ends(lint: ChainLint) -> Iterator[tuple[str, str, str]]:
    for candidate in lint.candidates:
        if candidate.retirement and not candidate.skipped:
            facts = {"name": candidate.model, "day": candidate.retirement.day}
            if Finding.ENDED in candidate.findings:
                yield "bad", "stop", insert_facts(_("%(name)s is retired since %(day)s"), facts)
            else:
                yield "warn", "clock", insert_facts(_("%(name)s is served until %(day)s"), facts)


def _losses(lint: ChainLint) -> Iterator[tuple[str, str, str]]:
    # Candidates that lose the same kinds of content are listed in one sentence.
    positions_by_loss: dict[tuple[str, ...], list[int]] = {}
    for position, candidate in enumerate(lint.candidates, start=1):
        if candidate.loses:
            positions_by_loss.setdefault(candidate.loses, []).append(position)
    for kinds, positions in positions_by_loss.items():
        text = ngettext(
            "Candidate %(places)s gets %(kinds)s as descriptions",
            "Candidates %(places)s get %(kinds)s as descriptions",
            len(positions),
        )
        yield (
            "warn",
            "say",
            insert_facts(
                text,
                {"places": join_words([str(position) for position in positions]), "kinds": words.join_kinds(kinds)},
            ),
        )


def _drifts(lint: ChainLint) -> Iterator[tuple[str, str, str]]:
    for position, candidate in enumerate(lint.candidates, start=1):
        for finding in {Finding.DOUBTFUL, Finding.STOPPED}.intersection(candidate.findings):
            text = _("Candidate %(place)s: %(what)s")
            yield "warn", "warn", insert_facts(text, {"place": position, "what": words.hint(candidate, finding)})
