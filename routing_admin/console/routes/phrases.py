"""Sentences about routes: findings, losses, warnings about a whole chain, and changes in a draft."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from capabilities.core.providers.catalogue import Retirement
from capabilities.core.providers.probes.drift import REFUTING_KINDS
from capabilities.core.translatable import insert_facts
from capabilities.labels import CONTENTS
from capabilities.sentences import join_words, translate_sentence
from routing_admin.console.routes.draft import Draft, EditorAction
from routing_admin.core.configuration.diff import round_floats
from routing_admin.core.configuration.route_changes import RouteChange, RouteChangeKind
from routing_admin.core.configuration.specs import DESCRIBE_ROUTE, Configuration, RouteSpec
from routing_admin.core.planning.lint import ChainLint, CheckedCandidate, Finding
from routing_admin.core.planning.plan import DescribeRouteState, describe_route_state, wants_describer_along

Text = str | Promise

FINDINGS: Mapping[Finding, tuple[str, str, Text]] = {
    Finding.MISSING: ("bad", "x", gettext_lazy("Provider deleted: will be skipped")),
    Finding.DISABLED: ("", "pause", gettext_lazy("Disabled: will be skipped")),
    Finding.NO_KEY: ("warn", "key", gettext_lazy("No key: will be skipped")),
    Finding.ORIGIN_REFUSED: ("bad", "lock", gettext_lazy("Address refused: will be skipped")),
    Finding.UNREACHABLE: ("warn", "copy", gettext_lazy("Never reached: already earlier in the chain")),
    Finding.TEXT_ONLY: ("warn", "text", gettext_lazy("Text only: no model service")),
    Finding.PRIMARY: ("acc", "check", gettext_lazy("Primary")),
    Finding.CROSS_MODEL: ("info", "info", gettext_lazy("Cross-model")),
    Finding.READS_MORE: ("info", "vision", gettext_lazy("Reads more than those before")),
    Finding.DOUBTFUL: ("warn", "warn", gettext_lazy("Doubtful")),
    Finding.STOPPED: ("warn", "warn", gettext_lazy("Reads less than before")),
    Finding.ENDED: ("bad", "stop", gettext_lazy("Retired: no longer served by its vendor")),
    Finding.ENDS: ("warn", "clock", gettext_lazy("Will be retired")),
    Finding.LAST: ("", "down", gettext_lazy("Last: if it fails, the caller gets its error")),
}
"""Maps each finding about a candidate to a tone, an icon and a label."""

HINTS: Mapping[Finding, Text] = {
    Finding.TEXT_ONLY: gettext_lazy("What this model reads is not set, so every file becomes a description."),
    Finding.CROSS_MODEL: gettext_lazy("A different model than the primary answers here. Tone and length may differ."),
    Finding.UNREACHABLE: gettext_lazy(
        "The same provider and model are already higher in the chain. Remove one of them."
    ),
    Finding.READS_MORE: gettext_lazy("Move it up if files matter for this task."),
}
NO_DESCRIBER: Mapping[DescribeRouteState, Text] = {
    DescribeRouteState.MISSING: gettext_lazy("There is no task route describe, so no model describes files."),
    DescribeRouteState.BLIND: gettext_lazy(
        "No model of the task route describe reads images, audio, video or files, so no model describes files."
    ),
    DescribeRouteState.DISABLED: gettext_lazy("The task route describe is disabled, so no model describes files."),
}
"""Reasons why no model describes files although the content policy requires descriptions."""

FIELDS: Mapping[str, Text] = {
    "enabled": gettext_lazy("enabled"),
    "temperature": gettext_lazy("temperature"),
    "max_tokens": gettext_lazy("max tokens"),
    "extra_body": gettext_lazy("additional request fields"),
    "extra": gettext_lazy("fields from a file"),
    "retries": gettext_lazy("retries"),
    "deadline": gettext_lazy("total deadline"),
    "first_content": gettext_lazy("first content"),
    "on_error": gettext_lazy("error policy"),
    "content": gettext_lazy("content policy"),
    "on_drop": gettext_lazy("what may be left out"),
    "on_overflow": gettext_lazy("what happens to a request too long for a model"),
    "directive": gettext_lazy("language of the answer"),
    "allow_n": gettext_lazy("several answers (n)"),
    "keep_alive_seconds": gettext_lazy("seconds until keep-alive comments"),
}


def describing_context(configuration: Configuration, *routes: RouteSpec) -> dict[str, Text]:
    """Return the template context about file descriptions on these routes, or {} if no policy requires descriptions.

    `describing` is the state of the route `describe`, whose models describe files. `no_describer` is the reason why no
    model does so, and `describe_url` is the page on which this can be changed.
    """
    if not any(wants_describer_along(configuration, route) for route in routes):
        return {}
    state, new = describe_route_state(configuration), reverse("route_new")
    is_there = state is not DescribeRouteState.MISSING
    url = reverse("route", args=[DESCRIBE_ROUTE]) if is_there else f"{new}?task_type={DESCRIBE_ROUTE}"
    return {"describing": state.value, "no_describer": NO_DESCRIBER.get(state, ""), "describe_url": url}


def loss_text(capabilities: Sequence[str]) -> str:
    if not capabilities:
        return ""
    return insert_facts(_("From here on, %(kinds)s arrive as descriptions"), {"kinds": join_kinds(capabilities)})


def join_kinds(capabilities: Sequence[str]) -> str:
    return join_words([CONTENTS.get(word, word) for word in capabilities])


def badges(checked: CheckedCandidate) -> list[dict[str, Any]]:
    return [
        {"tone": tone, "icon": icon, "label": label, "hint": hint_text(checked, finding)}
        for finding, (tone, icon, label) in ((name, FINDINGS[name]) for name in checked.findings)
    ]


def hint_text(checked: CheckedCandidate, finding: Finding) -> Text:
    """Return a sentence that explains a finding, or an empty string if its label suffices."""
    if finding in (Finding.NO_KEY, Finding.ORIGIN_REFUSED):
        return translate_sentence(checked.detail)
    if finding is Finding.DOUBTFUL:
        return insert_facts(
            _("It is declared to read %(kinds)s, but that is in doubt. See its model service."),
            {"kinds": join_kinds([word for word, kind in checked.drifts if kind in REFUTING_KINDS])},
        )
    if finding is Finding.STOPPED:
        return insert_facts(
            _("The nightly probe found that it no longer reads %(kinds)s."),
            {"kinds": join_kinds([word for word, kind in checked.drifts if kind not in REFUTING_KINDS])},
        )
    if finding in (Finding.ENDED, Finding.ENDS) and checked.retirement:
        return end_text(checked.retirement)
    return HINTS.get(finding, "")


def end_text(retirement: Retirement) -> str:
    facts = {"day": retirement.day, "source": retirement.source, "name": retirement.successor}
    if retirement.successor:
        return insert_facts(_("Served until %(day)s (%(source)s). Its vendor recommends %(name)s instead."), facts)
    return insert_facts(_("Served until %(day)s (%(source)s)."), facts)


def value_text(value: Any) -> str:
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if value in (None, "", {}):
        return _("nothing")
    if isinstance(value, Mapping):
        return join_words([f"{key} → {item}" for key, item in value.items()])
    return str(value)


def change_text(change: RouteChange) -> str:
    facts = {"name": change.candidate, "before": change.before, "after": change.after}
    match change.did:
        case RouteChangeKind.ADDED:
            return insert_facts(_("%(name)s added at %(after)s"), facts)
        case RouteChangeKind.REMOVED:
            return insert_facts(_("%(name)s removed from %(before)s"), facts)
        case RouteChangeKind.MOVED:
            return insert_facts(_("%(name)s moved from %(before)s to %(after)s"), facts)
    field = FIELDS.get(change.field, change.field)
    values = {"name": change.candidate, "field": field, "value": value_text(round_floats(change.after))}
    if change.candidate:
        return insert_facts(_("%(field)s of %(name)s set to %(value)s"), values)
    return insert_facts(_("%(field)s set to %(value)s"), values)


def position_text(action: EditorAction, draft: Draft) -> str:
    """Return a sentence that says where a moved card is now, or an empty string if no card was moved."""
    # Screen readers announce this sentence. Otherwise, the move would only be visible.
    cards = [card.id for card in draft.cards]
    if action.verb not in ("up", "down") or action.target not in cards:
        return ""
    index = cards.index(action.target)
    facts = {"name": draft.cards[index].name, "place": index + 1, "count": len(cards)}
    return insert_facts(_("%(name)s, now %(place)s of %(count)s"), facts)


def list_warnings(lint: ChainLint) -> Iterator[tuple[str, str, str]]:
    """Yield each warning about the chain as (tone, icon, sentence)."""
    if not lint.callable:
        yield "bad", "stop", _("No candidate can answer: all are skipped")
    skipped = sum(1 for candidate in lint.candidates if candidate.skipped)
    if lint.callable and skipped:
        text = ngettext("%(count)d candidate will be skipped", "%(count)d candidates will be skipped", skipped)
        # If all but one candidate of a longer chain are skipped, a single failure leaves the request unanswered.
        yield "bad" if skipped + 1 == len(lint.candidates) > 2 else "", "right", text % {"count": skipped}
    yield from _loss_warnings(lint)
    yield from _drift_warnings(lint)
    yield from _retirement_warnings(lint)


def _retirement_warnings(lint: ChainLint) -> Iterator[tuple[str, str, str]]:
    for candidate in lint.candidates:
        if candidate.retirement and not candidate.skipped:
            facts = {"name": candidate.model, "day": candidate.retirement.day}
            if Finding.ENDED in candidate.findings:
                yield "bad", "stop", insert_facts(_("%(name)s is retired since %(day)s"), facts)
            else:
                yield "warn", "clock", insert_facts(_("%(name)s is served until %(day)s"), facts)


def _loss_warnings(lint: ChainLint) -> Iterator[tuple[str, str, str]]:
    # Candidates that lose the same kinds of content share one sentence.
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
                {"places": join_words([str(position) for position in positions]), "kinds": join_kinds(kinds)},
            ),
        )


def _drift_warnings(lint: ChainLint) -> Iterator[tuple[str, str, str]]:
    for position, candidate in enumerate(lint.candidates, start=1):
        for finding in {Finding.DOUBTFUL, Finding.STOPPED}.intersection(candidate.findings):
            text = _("Candidate %(place)s: %(what)s")
            yield "warn", "warn", insert_facts(text, {"place": position, "what": hint_text(candidate, finding)})
