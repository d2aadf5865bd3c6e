"""Explain whether a model received the beginning of a conversation unchanged, so that its prompt cache applies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from capabilities.core.delivery.size_budget import SIZE_LIMIT_CODES
from capabilities.core.translatable import Translatable, decode_text, translatable
from routing_admin.models import AttemptLog, RequestLog

WITHOUT_FILES = translatable("Prefix kept: without files, every message is sent unchanged.")
FIRST = translatable("This request starts its conversation, so there is no prefix to keep.")
KEPT = translatable("Prefix kept: earlier turns are sent unchanged.")
UNKNOWN = translatable("Prefix unknown: the log has no earlier request of this conversation to this model.")
OPENING_CHANGED = translatable(
    "Prefix broken at message 1, because the language, the system messages or the tools changed."
)
ROOM_FREED = translatable(
    "Prefix broken at message %(number)s, because a limit was full and half of it was freed. %(reason)s"
)
FILE_CHANGED = translatable(
    "Prefix broken at message %(number)s, because a file there is delivered differently than before. %(reason)s"
)
TEXT_CHANGED = translatable(
    "Prefix broken at message %(number)s, because the text that replaces a file there changed: the configured "
    "agents, the tools or the file's text are different."
)
"""Template for the sentence about a changed message.

Messages, including the language directive, are numbered from 1.
"""


def explain_prefix(row: RequestLog, attempts: Sequence[AttemptLog], earlier: RequestLog | None) -> Translatable | None:
    """Return a sentence that says whether the prefix was kept.

    Return None if no model was called, or if the log entry is too old to contain digests. `earlier` is the request that
    this request continues, with prefetched `attempts`.
    """
    if not attempts:
        return None
    attempt = next((attempt for attempt in reversed(attempts) if attempt.deliveries), None)
    if attempt is None:
        return WITHOUT_FILES
    if row.prefix is None:
        return None
    if row.prefix["continues"] is None:
        return FIRST
    # If only new messages have files, the files cannot have changed earlier messages.
    if all(delivery["message"] >= row.prefix["past"] for delivery in attempt.deliveries):
        return KEPT
    earlier_attempt = _find_earlier_attempt(attempt, earlier)
    if earlier is None or earlier.prefix is None or earlier_attempt is None:
        return UNKNOWN
    if row.prefix["opening"] != earlier.prefix["opening"]:
        return OPENING_CHANGED
    return _compare(_list_deliveries(earlier, earlier_attempt), _list_deliveries(row, attempt))


def _find_earlier_attempt(attempt: AttemptLog, earlier: RequestLog | None) -> AttemptLog | None:
    # Each model has its own cache, so only attempts with the same provider and model can be compared.
    target = (attempt.provider, attempt.model)
    attempts = earlier.attempts.all() if earlier else ()
    return next(
        (
            earlier_attempt
            for earlier_attempt in attempts
            if earlier_attempt.deliveries and (earlier_attempt.provider, earlier_attempt.model) == target
        ),
        None,
    )


@dataclass(frozen=True, slots=True)
class _FileDelivery:
    outcome: str
    mime_type: str
    text_digest: int | None
    delivery: Mapping[str, Any] = field(compare=False)


def _list_deliveries(row: RequestLog, attempt: AttemptLog) -> list[_FileDelivery]:
    digests = row.prefix["words"].get(str(attempt.position), []) if row.prefix else []
    return [
        _FileDelivery(delivery["outcome"], delivery["mimeType"], digest, delivery)
        for delivery, digest in zip(attempt.deliveries, digests, strict=False)
    ]


def _compare(before: Sequence[_FileDelivery], after: Sequence[_FileDelivery]) -> Translatable:
    # Files that only the later request has are new, so they do not break the prefix.
    changed = ((old, new) for old, new in zip(before, after, strict=False) if old != new)
    old, new = next(changed, (None, None))
    if old is None or new is None:
        return KEPT
    number, reason = new.delivery["message"] + 1, decode_text(new.delivery["sentence"])
    if old.outcome == new.outcome:
        return translatable(TEXT_CHANGED, number=number)
    template = ROOM_FREED if new.delivery["reason"] in SIZE_LIMIT_CODES else FILE_CHANGED
    return translatable(template, number=number, reason=reason)
