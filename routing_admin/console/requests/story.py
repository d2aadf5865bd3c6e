"""The story of a request, built only from the log: what happened, why, and which content was lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from capabilities.core.delivery.decision import DeliveryForm
from capabilities.core.translatable import insert_facts
from capabilities.labels import KINDS
from capabilities.quantities import duration_text
from capabilities.sentences import join_words, translate_sentence
from routing_admin.console.base.tags.drawing import Bar, Track
from routing_admin.console.requests.describer_calls import (
    LoggedDescriberCall,
    describer_name,
    list_describer_calls,
    name_kind,
)
from routing_admin.core.fallback.chain import CANCELLED, OK, SkipReason
from routing_admin.core.fallback.endings import RequestEnding
from routing_admin.core.fallback.table import GROUPS, TABLE, Group, is_key_fault
from routing_admin.models import AttemptLog, RequestLog
from routing_admin.request_log.entries import requested_target
from routing_admin.request_log.operations import operation_name
from routing_admin.request_log.sent_files import read_adaptation
from routing_admin.request_log.sentences import RenderedSentence, render_logged, render_reason

Text = str | Promise

SKIPS: Mapping[str, Text] = {
    SkipReason.MISSING: gettext_lazy("The provider no longer exists"),
    SkipReason.DISABLED: gettext_lazy("The provider is disabled"),
    SkipReason.DUPLICATE: gettext_lazy("The same provider and model were already tried in this chain"),
    SkipReason.CANNOT_READ: gettext_lazy("The model cannot read what the request contains"),
    SkipReason.WOULD_DROP: gettext_lazy("It would leave out part of the request"),
    SkipReason.TOO_LONG: gettext_lazy("The request is too long for the model"),
    SkipReason.OTHER_PROTOCOL: gettext_lazy("The provider's protocol does not support this call"),
    SkipReason.OTHER_MODEL: gettext_lazy(
        "It is a different model than the first one, and their vectors cannot be mixed"
    ),
    SkipReason.COOLING: gettext_lazy("It was cooling down after a failure"),
    SkipReason.NO_KEY: gettext_lazy("The provider has no usable key"),
    SkipReason.ORIGIN_REFUSED: gettext_lazy("The provider's address is not allowed"),
    CANCELLED: gettext_lazy("The caller disconnected"),
    "aborted": gettext_lazy("Something went wrong on our side; see the server log"),
}
"""Explanations of outcomes that are not errors of a provider."""

SKIP_LABELS: Mapping[str, Text] = {
    SkipReason.MISSING: gettext_lazy("skipped: provider deleted"),
    SkipReason.DISABLED: gettext_lazy("skipped: disabled"),
    SkipReason.DUPLICATE: gettext_lazy("skipped: already earlier in the chain"),
    SkipReason.CANNOT_READ: gettext_lazy("skipped: cannot read this"),
    SkipReason.WOULD_DROP: gettext_lazy("skipped: would leave something out"),
    SkipReason.TOO_LONG: gettext_lazy("skipped: too long for it"),
    SkipReason.OTHER_PROTOCOL: gettext_lazy("skipped: another protocol"),
    SkipReason.OTHER_MODEL: gettext_lazy("skipped: another model"),
    SkipReason.COOLING: gettext_lazy("skipped: cooling down"),
    SkipReason.NO_KEY: gettext_lazy("skipped: no key"),
    SkipReason.ORIGIN_REFUSED: gettext_lazy("skipped: address refused"),
}
"""Labels for the reasons why a candidate was never called. They are always shown in grey."""

SHOWN_BADGES = {
    DeliveryForm.AS_IS.value: "native",
    DeliveryForm.CONVERTED.value: "converted",
    DeliveryForm.CUT.value: "cut",
    DeliveryForm.DESCRIBED.value: "described",
}
NOT_SENT = "omitted"


def explain_outcome(outcome: str) -> str:
    """Return what an outcome means, in the user's language.

    Return an empty string for `ok` and for unknown outcomes.
    """
    row = TABLE.get(outcome)
    return translate_sentence(row.meaning) if row else str(SKIPS.get(outcome, ""))


@dataclass(frozen=True, slots=True)
class File:
    """How a candidate received a file: the badge, why it received the file in this form, and what was lost."""

    name: str
    kind: str
    badge: str
    reason: RenderedSentence
    artifact: str
    loss: str = ""
    describer: str = ""
    """The model that described the file for the candidate, or an empty string if no model did."""

    @property
    def kind_name(self) -> str:
        return str(KINDS.get(self.kind, self.kind))


@dataclass(frozen=True, slots=True)
class Step:
    """An attempt to call a candidate, as the request's page shows it."""

    row: AttemptLog
    name: str
    code: str
    tone: str
    meaning: str
    tries: int
    files: tuple[File, ...]
    error: RenderedSentence
    describer_calls: tuple[LoggedDescriberCall, ...] = ()

    @property
    def more_files(self) -> int:
        # The log stores only a limited number of file deliveries per attempt, and the number of further files.
        return sum(delivery.get("more", 0) for delivery in self.row.deliveries)

    @property
    def key_chips(self) -> tuple[tuple[str, str], ...]:
        """Return the result and tone for each provider key that was tried, or nothing if the provider has only one."""
        tries = [entry for entry in self.row.tries if entry.get("key")]
        failed = self.tone if self.tone in ("warn", "bad") else "warn"
        return tuple(
            (f"{entry['key']} {entry['status'] or entry['outcome']}", "ok" if entry["outcome"] == OK else failed)
            for entry in tries
        )

    @property
    def is_skipped(self) -> bool:
        """Return whether the candidate was never called."""
        return self.row.outcome in SKIP_LABELS

    @property
    def refused_keys(self) -> tuple[str, ...]:
        keys = (entry["key"] for entry in self.row.tries if entry.get("key") and entry["outcome"] in GROUPS[Group.AUTH])
        return tuple(dict.fromkeys(keys))

    @property
    def badges(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(file.badge for file in self.files))

    @property
    def lost(self) -> tuple[File, ...]:
        """The files for which the candidate received only a description."""
        return tuple(file for file in self.files if file.badge == "described")

    @property
    def shortened(self) -> tuple[File, ...]:
        return tuple(file for file in self.files if file.loss)


@dataclass(frozen=True, slots=True)
class Story:
    """What happened to a request: a headline, and the reasons."""

    headline: str
    why: tuple[str, ...]
    tone: str


def build_steps(attempts: Sequence[AttemptLog], ending: str = RequestEnding.ANSWERED) -> tuple[Step, ...]:
    """Return all attempts in chain order. A call to describe a file belongs to the first attempt that needed it.

    `ending` is how the request ended, which determines the tone of failures.
    """
    seen: set[str] = set()
    steps = []
    for row in attempts:
        calls = tuple(call for call in list_describer_calls(row) if call.request_id not in seen)
        seen.update(call.request_id for call in calls)
        steps.append(replace(_build_step(row, ending), describer_calls=calls))
    return tuple(steps)


def add_entries(steps: Sequence[Step], entries: Mapping[str, RequestLog]) -> tuple[Step, ...]:
    """Add the log entries of describer calls to the steps that made these calls.

    `entries` maps request ids to log entries.
    """
    return tuple(
        replace(
            step,
            describer_calls=tuple(replace(call, entry=entries.get(call.request_id)) for call in step.describer_calls),
        )
        for step in steps
    )


def _build_step(row: AttemptLog, ending: str) -> Step:
    is_ok = row.outcome == OK
    is_skipped = row.outcome in SKIPS
    # A failure with status 200, such as an empty answer, is named by its outcome.
    code = str(row.status) if row.status and (is_ok or row.status != 200) else row.outcome
    tone = "ok" if is_ok else "" if is_skipped else failure_tone(ending)
    code = str(SKIP_LABELS.get(row.outcome, code))
    # For some attempts, the log contains only a retry count, not the individual tries.
    tries = len(row.tries) or (0 if is_skipped else row.retry_attempts + 1)
    files = tuple(_build_file(delivery) for delivery in row.deliveries)
    return Step(
        row, row.model or row.provider, code, tone, explain_outcome(row.outcome), tries, files, render_logged(row)
    )


FAILURE_TONES: Mapping[str, str] = {RequestEnding.ANSWERED: "warn", RequestEnding.FAILED: "bad"}


def failure_tone(ending: str) -> str:
    """Return the tone of a failed try: red if the request failed, amber if it was answered in the end, else grey."""
    return FAILURE_TONES.get(ending, "")


def color_chips(chain: Sequence[Mapping[str, Any]], ending: str) -> list[dict[str, Any]]:
    """Return the chips of a chain with the same texts and tones as in the table of attempts."""
    return [_color_chip(chip, ending) for chip in chain]


def _color_chip(chip: Mapping[str, Any], ending: str) -> dict[str, Any]:
    if chip["code"] in SKIP_LABELS:
        return {**chip, "code": SKIP_LABELS[chip["code"]], "tone": ""}
    return {**chip, "tone": chip["tone"] if chip["tone"] in ("", "ok") else failure_tone(ending)}


def _build_file(delivery: Mapping[str, Any]) -> File:
    return File(
        name=delivery.get("filename") or delivery.get("artifactId") or "",
        kind=delivery.get("kind", ""),
        badge=SHOWN_BADGES.get(delivery.get("shown", ""), NOT_SENT),
        reason=render_reason(delivery.get("sentence", "")),
        artifact=delivery.get("artifactId") or "",
        loss=str(render_reason(delivery["loss"])) if delivery.get("loss") else "",
        describer=describer_name(delivery),
    )


def build_story(row: RequestLog, attempts: Sequence[Step]) -> Story:
    """Return a sentence that says what happened to the request, and the reasons."""
    original = (row.answer or {}).get("replayOf")
    if original:
        headline = _("The caller got the result of request %(id)s: both had the same Idempotency-Key")
        return Story(insert_facts(headline, {"id": original}), (_("No model was called again."),), "ok")
    why = tuple(_describe_failure(step) for step in attempts if step.row.outcome != OK)
    tone = "warn" if why else "ok"
    # The status was sent with the first keep-alive comment, before a model answered.
    if waited := (row.answer or {}).get("keepAliveMs"):
        template = _("After %(time)s without content the stream began with keep-alive comments, so its status is 200.")
        why = (*why, insert_facts(template, {"time": duration_text(waited)}))
    if row.outcome == OK:
        lost = attempts[-1].lost if attempts else ()
        shortened = attempts[-1].shortened if attempts else ()
        return Story(
            _describe_answer(row, attempts, lost),
            (*why, *_describe_keys(attempts), *_describe_losses(attempts, lost), *_describe_cuts(attempts, shortened)),
            "warn" if lost or shortened else tone,
        )
    if row.outcome == CANCELLED:
        return Story(_("The caller disconnected before the answer was complete"), why, "")
    if not attempts:
        refusal = str(render_logged(row))
        return Story(_("The request was refused before any model was called"), (refusal,) if refusal else (), "bad")
    names = {"task": row.task_type or _("the request"), "name": attempts[-1].name, "count": len(attempts)}
    # The caller had already received part of the answer, so no other candidate could be called.
    if row.first_content_ms is not None:
        return Story(insert_facts(_("The answer from %(name)s to %(task)s was cut off"), names), why, "bad")
    if len(attempts) == 1:
        return Story(
            insert_facts(_("%(name)s could not answer %(task)s, and no other model was tried"), names), why, "bad"
        )
    return Story(insert_facts(_("None of the %(count)s candidates could answer %(task)s"), names), why, "bad")


def _describe_answer(row: RequestLog, attempts: Sequence[Step], lost: Sequence[File]) -> str:
    names = {"task": row.task_type or _("the request"), "model": row.model or row.provider}
    if lost and len(lost) == 1:
        return insert_facts(
            _("%(model)s answered %(task)s without %(what)s"),
            {
                **names,
                "what": _name_file(lost[0]),
            },
        )
    if lost:
        return insert_facts(
            _("%(model)s answered %(task)s without %(count)s files"),
            {
                **names,
                "count": len(lost),
            },
        )
    skipped = sum(step.is_skipped for step in attempts)
    if failed := len(attempts) - 1 - skipped:
        text = ngettext(
            "%(model)s answered %(task)s after %(count)s failed candidate",
            "%(model)s answered %(task)s after %(count)s failed candidates",
            failed,
        )
        return insert_facts(text, {**names, "count": failed})
    if skipped:
        text = ngettext(
            "%(model)s answered %(task)s after %(count)s skipped candidate",
            "%(model)s answered %(task)s after %(count)s skipped candidates",
            skipped,
        )
        return insert_facts(text, {**names, "count": skipped})
    return insert_facts(_("%(model)s answered %(task)s directly"), names)


def _describe_failure(step: Step) -> str:
    names = {"name": step.name, "code": step.code, "meaning": step.meaning or str(step.error) or step.code}
    if step.is_skipped:
        return insert_facts(_("%(name)s was skipped. %(meaning)s."), names)
    if step.tries > 1:
        text = ngettext(
            "%(name)s: %(meaning)s (%(code)s, %(count)s try).",
            "%(name)s: %(meaning)s (%(code)s, %(count)s tries).",
            step.tries,
        )
        return insert_facts(text, {**names, "count": step.tries})
    return insert_facts(_("%(name)s: %(meaning)s (%(code)s)."), names)


def _describe_keys(attempts: Sequence[Step]) -> Iterator[str]:
    for step in attempts:
        keys = dict.fromkeys(
            entry["key"] for entry in step.row.tries if entry.get("key") and is_key_fault(entry["outcome"])
        )
        if step.row.outcome == OK and keys:
            text = _("%(name)s answered with another key after %(keys)s failed.")
            yield insert_facts(text, {"name": step.name, "keys": join_words(list(keys))})


def _describe_losses(attempts: Sequence[Step], lost: Sequence[File]) -> tuple[str, ...]:
    return tuple(_describe_loss(file, attempts[-1].name) for file in lost[:3])


def _describe_loss(file: File, name: str) -> str:
    facts = {"file": file.name or _name_file(file), "name": name, "reason": str(file.reason)}
    if file.describer:
        template = _("%(describer)s described %(file)s for %(name)s: %(reason)s")
        return insert_facts(template, {**facts, "describer": file.describer})
    return insert_facts(_("%(name)s got a description of %(file)s: %(reason)s"), facts)


def _describe_cuts(attempts: Sequence[Step], shortened: Sequence[File]) -> tuple[str, ...]:
    return tuple(
        insert_facts(
            _("%(name)s got only part of %(file)s: %(loss)s"),
            {"file": file.name or _name_file(file), "name": attempts[-1].name, "loss": file.loss},
        )
        for file in shortened[:3]
    )


def _name_file(file: File) -> str:
    return name_kind(file.kind)


def build_tracks(attempts: Sequence[Step], total_ms: float) -> tuple[Track, ...]:
    """Return the tracks of the timeline, with the calls to describers below the attempt that needed them.

    Candidates that were never called have no track. The last track shows the time without any call, so that the bars
    add up to the whole duration.
    """
    tracks = [
        track
        for number, step in enumerate(attempts, 1)
        if not step.is_skipped
        for track in (*_build_tracks(step, number), *_build_describing(step))
    ]
    return (*tracks, *_build_rest(tracks, total_ms))


MIN_BAR_MS = 1.0
"""The track for the gateway's own processing is shown if it lasted at least this many milliseconds."""


def _build_rest(tracks: Sequence[Track], total_ms: float) -> Iterator[Track]:
    # The time between two tries of a candidate counts as part of its attempt, not as the gateway's own processing.
    spans = sorted((track.bars[0].start, track.bars[-1].end) for track in tracks if track.bars)
    bars, covered = [], 0.0
    for start, end in [*spans, (total_ms, total_ms)]:
        if start > covered:
            bars.append(Bar(covered, start, "own"))
        covered = max(covered, end)
    rest = sum(bar.end - bar.start for bar in bars)
    if rest >= MIN_BAR_MS:
        label = insert_facts(_("Our own work: %(time)s"), {"time": duration_text(rest)})
        yield Track(label, tuple(bars), is_attempt=False)


def _build_describing(step: Step) -> Iterator[Track]:
    return (call.track for call in step.describer_calls)


def _build_tracks(step: Step, number: int) -> Iterator[Track]:
    row = step.row
    # If the log does not contain each try, the whole attempt is drawn as one bar.
    tries = row.tries or [{"startedMs": row.started_ms, "durationMs": row.duration_ms, "outcome": row.outcome}]
    for key in dict.fromkeys(entry.get("key", "") for entry in tries):
        key_tries = [entry for entry in tries if entry.get("key", "") == key]
        label = f"{step.name} · {key}" if key else step.name
        yield Track(label, _build_bars(step, key_tries, tries[-1]), number=number)


def _build_bars(step: Step, tries: Sequence[Mapping[str, Any]], last: Mapping[str, Any]) -> tuple[Bar, ...]:
    row = step.row
    bars: list[Bar] = []
    for entry in tries:
        start, end = entry["startedMs"], entry["startedMs"] + entry["durationMs"]
        tone = "ok" if entry["outcome"] == OK else step.tone if step.tone in ("warn", "bad") else "warn"
        first_content = row.first_content_ms
        # The bar of the successful try is split into waiting and streaming at the time when the first content arrived.
        if tone == "ok" and entry is last and first_content is not None and 0 < first_content < row.duration_ms:
            middle = min(max(row.started_ms + first_content, start), max(end, row.started_ms + row.duration_ms))
            bars += [
                Bar(start, middle, tone, early=True),
                Bar(middle, max(end, row.started_ms + row.duration_ms), tone),
            ]
        else:
            bars.append(Bar(start, end, tone))
    return tuple(bars)


def build_row(row: RequestLog) -> dict[str, Any]:
    """Return the template context for one request in a list."""
    entry = {"row": row, "target": requested_target(row), "ending": row.ending, "tone": failure_tone(row.ending)}
    entry["operation"] = operation_name(row.surface)
    chain = fold_skips(color_chips(row.chain, row.ending))
    return {**entry, "chain": chain, **worst_badge(row.adaptation)}


def fold_skips(chips: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the chips of a request in a list.

    Successive candidates that were skipped for the same reason share one chip with a count.
    """
    folded: list[dict[str, Any]] = []
    for code, same in groupby(chips, key=itemgetter("code")):
        run = list(same)
        if len(run) > 1 and code in SKIP_LABELS.values():
            names = ", ".join(chip.get("name", "") for chip in run)
            folded.append({**run[0], "name": names, "tries": len(run)})
        else:
            folded += run
    return folded


WORST_FIRST = (DeliveryForm.DESCRIBED, DeliveryForm.CUT, DeliveryForm.CONVERTED, DeliveryForm.AS_IS)


def worst_badge(adaptation: str) -> dict[str, str]:
    """Return the worst badge among a request's files, from a text such as `image=native;file=inlined:cut:2`."""
    # Later items overwrite earlier ones. The reversed order therefore keeps the first of several files with the same
    # badge.
    kinds = {form: kind for kind, form, _count in reversed(list(read_adaptation(adaptation)))}
    worst = next((form for form in WORST_FIRST if form in kinds), None)
    return {"badge": SHOWN_BADGES[worst.value], "kind": _kind(kinds[worst])} if worst else {"badge": "", "kind": ""}


def _kind(slot: str) -> str:
    return str(KINDS.get("document" if slot == "file" else slot, slot))
