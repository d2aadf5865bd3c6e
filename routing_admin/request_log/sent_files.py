"""Log how a request's files were sent: names and decisions, but neither bytes nor text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from zlib import crc32

from capabilities.core.delivery.adaptation import PartDelivery
from capabilities.core.delivery.decision import FORMS, Delivery, DeliveryForm, LossKind, Outcome
from capabilities.core.delivery.model_description import ModelDescription
from capabilities.core.message import FilePart
from capabilities.core.translatable import encode_text

MAX_FILES = 100
"""Maximum number of files to log for a candidate; `more` of the last file is the number of further files."""


class SentFile(NamedTuple):
    """How one file in a request was sent to one candidate: metadata and the decision, but no content.

    `digest` is the digest of the text that was sent in place of the file; it is None if there was no such text.
    """

    message: int
    part: int
    kind: str
    filename: str | None
    artifact_id: str | None
    mime_type: str
    size: int | None
    delivery: Delivery
    digest: int | None
    more: int = 0


def sent_files(deliveries: Sequence[PartDelivery]) -> tuple[SentFile, ...]:
    """Return the facts that the log stores about deliveries, without bytes or text."""
    files = [_sent_file(delivery, delivery.file) for delivery in deliveries[:MAX_FILES]]
    if len(deliveries) > MAX_FILES:
        files[-1] = files[-1]._replace(more=len(deliveries) - MAX_FILES)
    return tuple(files)


def _sent_file(delivery: PartDelivery, file: FilePart) -> SentFile:
    return SentFile(
        delivery.message,
        delivery.part,
        file.kind.value,
        file.filename,
        file.artifact_id,
        file.mime_type,
        file.size,
        delivery.delivery,
        None if delivery.text is None else crc32(delivery.text.encode("utf-8", "replace")),
    )


def delivery_column(file: SentFile) -> dict[str, Any]:
    """Return a file's delivery as JSON for the log: the file, the form in which it was sent, and the reason."""
    delivery = file.delivery
    described = {"description": _description(delivery.description)} if delivery.description else {}
    return {
        **described,
        **({"more": file.more} if file.more else {}),
        "message": file.message,
        "part": file.part,
        "kind": file.kind,
        "filename": file.filename,
        "artifactId": file.artifact_id,
        "mimeType": file.mime_type,
        "size": file.size,
        "outcome": delivery.outcome.value,
        "shown": delivery.form.value,
        "loss": encode_text(delivery.loss.sentence()) if delivery.loss else None,
        "reason": delivery.reason.code.value,
        "sentence": encode_text(delivery.reason.sentence()),
    }


def _description(description: ModelDescription) -> dict[str, Any]:
    # The call in which a model described the file is logged as a request of its own. Here its id, tokens and times are
    # stored; times are relative to the start of this request.
    call = description.call
    made = call and {
        "requestId": call.request_id,
        "startedMs": call.started_ms,
        "durationMs": call.duration_ms,
        "promptTokens": call.prompt_tokens,
        "completionTokens": call.completion_tokens,
    }
    known = {"state": description.state.value, "describer": description.describer, "fault": description.fault}
    return {**known, "call": made}


# The remaining code reads the column `adaptation`: how many files of each kind the answering model received in each
# form.

FORM_OUTCOMES: Mapping[DeliveryForm, tuple[str, ...]] = {
    form: tuple(outcome.value for outcome in Outcome if FORMS[outcome] is form)
    for form in DeliveryForm
    if form is not DeliveryForm.CUT
}
LOSSES = tuple(kind.value for kind in LossKind)
PATTERNS: Mapping[str, str] = {
    **{form.value: rf"=({'|'.join(words)})(:[0-9]+)?(;|$)" for form, words in FORM_OUTCOMES.items()},
    # If another model was asked to describe a file, the result of that call follows the file's form.
    DeliveryForm.DESCRIBED.value: f"=({'|'.join(FORM_OUTCOMES[DeliveryForm.DESCRIBED])})",
    DeliveryForm.CUT.value: f":({'|'.join(LOSSES)})",
}
"""Maps each form to a regular expression that finds adaptations that contain a file in this form."""


def read_adaptation(adaptation: str) -> Iterator[tuple[str, DeliveryForm, int]]:
    """Yield the kind, form and number of files for each item of a value such as `image=native;file=inlined:cut:2`."""
    for section in filter(None, adaptation.split(";")):
        slot, _equals, words = section.partition("=")
        outcome, *suffixes = words.split(":")
        # The last item may be incomplete, because the text was cut to the width of the column.
        if outcome not in list(Outcome):
            continue
        form = DeliveryForm.CUT if set(LOSSES).intersection(suffixes) else FORMS[Outcome(outcome)]
        count = suffixes[-1] if suffixes and re.fullmatch("[0-9]+", suffixes[-1]) else "1"
        yield slot, form, int(count)
