"""Correct an artifact's type, encoding or visibility. A correction takes precedence over metadata and bytes.

The bytes and their hash never change. The detected values are stored with the correction, so that it can be undone even
if the bytes no longer exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypedDict, Unpack

from django.utils.translation import gettext as _

from artifacts.core.detection.correction import CorrectionError, correct, is_text_type
from artifacts.core.detection.encodings import MAX_MARK, canonical_encoding, is_clean, is_marked
from artifacts.core.detection.evidence import Detection, Evidence
from artifacts.core.store import read_blocks
from artifacts.library.storing import MEASURES, measure
from artifacts.models import Artifact
from artifacts.ports import ports
from artifacts.sniffer import detector
from artifacts.storage.content import byte_store
from capabilities.actors import Actor, AuditedAction
from capabilities.core.message import UnreadableError
from capabilities.core.problems import Problem
from capabilities.core.translatable import translatable
from capabilities.core.vocabulary import Kind
from capabilities.errors import ConflictError, InvalidError

DETECTION_COLUMNS = ("mime_type", "kind", "is_binary", "encoding", "encoding_certain", "mismatch", "evidence")
"""Columns that type detection sets, in addition to `MEASURES`."""

NAMES = {
    "mime_type": "mimeType",
    "kind": "kind",
    "encoding": "encoding",
    "encoding_certain": "encodingCertain",
    "visibility": "visibility",
}
"""Maps each column to its name in the API and audit log. A concurrent change to any of these columns is a conflict."""

FIELDS = {"type": "mimeType", "encoding": "encoding"}

Values = Mapping[str, Any]


class CorrectionFields(TypedDict, total=False):
    """The fields of a correction. An absent field is left unchanged, and None restores the detected value."""

    mime_type: str | None
    encoding: str | None
    visibility: str


def correct_artifact(actor: Actor, row: Artifact, **fields: Unpack[CorrectionFields]) -> Artifact:
    """Apply a correction and return the artifact. If nothing changes, no audit entry is written.

    Raise an `InvalidError` that names each invalid field, or a `ConflictError` if the artifact was changed meanwhile.
    """
    values = {**_visibility(fields), **_corrected_values(row, fields)}
    changes = {name: value for name, value in values.items() if getattr(row, name) != value}
    if not changes:
        return row
    old_values = {name: getattr(row, name) for name in NAMES}
    differences = {
        NAMES[name]: {"from": old_values[name], "to": changes[name]}
        for name in NAMES
        if name in changes and name != "kind"
    }
    action = AuditedAction(
        "artifact.correct",
        "artifact",
        row.pk,
        {**differences, "corrected": _corrected_fields(values.get("correction"))},
    )
    with ports.audit(actor, action):
        # Compare and swap: the filter matches no row if another correction was saved first.
        if not Artifact.objects.living().filter(pk=row.pk, **old_values).update(**changes):
            raise ConflictError(
                translatable("Someone else changed this in the meantime. Check the current version, then correct it.")
            )
    return Artifact.objects.get(pk=row.pk)


def _visibility(fields: CorrectionFields) -> Values:
    if "visibility" not in fields:
        return {}
    if fields["visibility"] not in Artifact.Visibility.values:
        raise InvalidError([Problem("visibility", _("visibility must be shared or private."), "enum")])
    return {"visibility": fields["visibility"]}


def _corrected_fields(correction: Values | None) -> Values:
    return {NAMES[name]: value for name, value in (correction or {}).items() if name in NAMES and value is not None}


def _corrected_values(row: Artifact, fields: CorrectionFields) -> Values:
    if "mime_type" not in fields and "encoding" not in fields:
        return {}
    previous = row.correction or {}
    # A second correction replaces the first one, so start from the detected values.
    verdict: Values = previous.get("detected") or {name: getattr(row, name) for name in (*DETECTION_COLUMNS, *MEASURES)}
    requested = _add_byte_order(row, _merge_requests(previous, fields))
    detection = _as_detection(row, verdict)
    try:
        corrected = correct(_find_encoding(row, detection, requested), **requested)
    except CorrectionError as error:
        raise InvalidError([Problem(FIELDS[error.field], error.sentence, "enum")]) from None
    if not any(requested.values()) or _is_same(corrected, detection):
        return {**verdict, "correction": None}
    # Accept an encoding in which some bytes are invalid, because the user may know better, but mention this in the
    # evidence.
    if requested["encoding"] and not _is_lossless(row, corrected.encoding):
        last = Evidence("text", corrected.encoding or "", "corrected_lossy")
        corrected = replace(corrected, evidence=(*detection.evidence, last, corrected.evidence[-1]))
    correction = {
        "mime_type": corrected.mime_type if requested["mime_type"] else None,
        "encoding": corrected.encoding if requested["encoding"] else None,
    }
    return {
        **_columns(corrected),
        **_measures(row, corrected, verdict),
        "correction": {**correction, "detected": dict(verdict)},
    }


def _merge_requests(previous: Values, fields: CorrectionFields) -> dict[str, str | None]:
    # New values override earlier corrections that contradict them.
    mime, encoding = previous.get("mime_type"), previous.get("encoding")
    if "mime_type" in fields:
        mime = fields["mime_type"]
        encoding = encoding if mime is None or is_text_type(mime) else None
    if "encoding" in fields:
        encoding = fields["encoding"]
        mime = mime if "mime_type" in fields or encoding is None or (mime and is_text_type(mime)) else None
    return {"mime_type": mime, "encoding": encoding}


def _add_byte_order(row: Artifact, requested: dict[str, str | None]) -> dict[str, str | None]:
    # UTF-16 and UTF-32 without a byte order mark are read as little-endian, so store this explicitly.
    name = canonical_encoding(requested["encoding"])
    if name not in ("utf-16", "utf-32"):
        return requested
    try:
        with byte_store().reader(row.sha256) as read_at:
            head = read_at(0, MAX_MARK)
    except UnreadableError:
        return requested
    return requested if is_marked(head, name) else {**requested, "encoding": f"{name}-le"}


def _as_detection(row: Artifact, verdict: Values) -> Detection:
    return Detection(
        mime_type=verdict["mime_type"],
        kind=Kind(verdict["kind"]),
        is_binary=verdict["is_binary"],
        encoding=verdict["encoding"] or None,
        declared_mime_type=row.declared_mime_type or None,
        detected_mime_type=row.detected_mime_type or None,
        mismatch=verdict["mismatch"],
        evidence=tuple(
            Evidence(evidence["step"], evidence["says"], evidence["reason"]) for evidence in verdict["evidence"]
        ),
        encoding_certain=verdict["encoding_certain"],
    )


def _find_encoding(row: Artifact, detection: Detection, requested: Mapping[str, str | None]) -> Detection:
    # A binary file that is corrected to text needs an encoding, so detect it.
    mime = requested["mime_type"]
    if detection.encoding or requested["encoding"] or mime is None or not is_text_type(mime):
        return detection
    try:
        with byte_store().reader(row.sha256) as read_at:
            text = detector().find_encoding(row.size, read_at)
    except UnreadableError:
        return detection
    return replace(detection, encoding=text.encoding, encoding_certain=text.certain) if text else detection


def _is_same(corrected: Detection, detection: Detection) -> bool:
    # A request that only confirms the detected values is not a correction, unless the encoding was a guess.
    return replace(corrected, evidence=()) == replace(detection, evidence=())


def _is_lossless(row: Artifact, encoding: str | None) -> bool:
    # If the bytes cannot be read, they are no evidence against an encoding.
    try:
        with byte_store().reader(row.sha256) as read_at:
            return is_clean(read_blocks(read_at, row.size), encoding or "utf-8")
    except UnreadableError:
        return True


def _columns(detection: Detection) -> Values:
    return {
        "mime_type": detection.mime_type,
        "kind": detection.kind.value,
        "is_binary": detection.is_binary,
        "encoding": detection.encoding or "",
        "encoding_certain": detection.encoding_certain,
        "mismatch": detection.mismatch,
        "evidence": detection.evidence_json(),
    }


def _measures(row: Artifact, corrected: Detection, verdict: Values) -> Values:
    # The image size, page count and duration depend on the type, so measure the file again.
    if corrected.mime_type == verdict["mime_type"]:
        return {name: verdict[name] for name in MEASURES}
    try:
        return measure(row.sha256, corrected.mime_type, corrected.kind)
    except UnreadableError:
        return dict.fromkeys(MEASURES)
