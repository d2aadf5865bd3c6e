"""Store descriptions in the database, so that a conversation always receives the same text for a file.

All callers with the same description key share a description. A failure is stored for all conversations with the same
opening, and after `FAILURE_LIFETIME` a model is asked again. If a model answers after reading the failure, the failure
is stored permanently under the id of that answer: the conversation continues with it, and the prefix that models read
must not change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from capabilities.core.describing.prompt import DescriptionKey
from routing_admin.models import FileDescription

ALL_CONVERSATIONS = ""
FAILURE_LIFETIME = timedelta(minutes=5)
"""After a failure, conversations with the same opening do not ask a model again for this long."""
USE_INTERVAL = timedelta(hours=12)
"""The time of a description's last use is updated at most once in this period."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescriptionOutcome:
    """A description by `describer`, or the fault that prevented it, with the number of tokens used.

    `unsettled` means that `settle_description` must update the database once a model has received this outcome.
    """

    describer: str
    words: str = ""
    fault: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    unsettled: bool = field(default=False, compare=False)


def find_description(key: DescriptionKey, conversation: str, answered: str = "") -> DescriptionOutcome | None:
    """Return the outcome stored for a conversation, or None if a model has to be called.

    `conversation` is the id of the conversation's opening. `answered` is the id of the first answer after the file, or
    "" if there is none. Without an answer, the outcome may still change, because no model has read it yet.
    """
    matches = FileDescription.objects.filter(
        digest=key.digest, conversation__in={ALL_CONVERSATIONS, conversation, answered}
    )
    rows = {match.conversation: match for match in matches}
    description, failure, now = rows.get(ALL_CONVERSATIONS), rows.get(conversation), datetime.now(UTC)
    if answered:
        # A model has answered, so the conversation continues with the text that this model received.
        row = rows.get(answered) or failure or description
        unsettled = row is not None and row is failure
    else:
        # No model has received an outcome yet, so a description replaces a failure, and an old failure expires.
        row = description or (failure if failure and now - failure.created_at < FAILURE_LIFETIME else None)
        unsettled = failure is not None and description is not None
    if row is None:
        return None
    if now - row.used_at > USE_INTERVAL:
        FileDescription.objects.filter(pk=row.pk).update(used_at=now)
    return DescriptionOutcome(
        describer=row.describer,
        words=row.words,
        fault=row.fault,
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
        unsettled=unsettled,
    )


def store_description(
    key: DescriptionKey, conversation: str, outcome: DescriptionOutcome, answered: str = ""
) -> DescriptionOutcome:
    """Store an outcome, and return the outcome to use in the conversation; an earlier outcome takes precedence."""
    earlier = find_description(key, conversation, answered)
    if earlier is not None:
        return earlier
    if not answered:  # The earlier failure has expired, and a model was asked again.
        FileDescription.objects.filter(digest=key.digest, conversation=conversation).delete()
    _write(key, (answered or conversation) if outcome.fault else ALL_CONVERSATIONS, outcome)
    return find_description(key, conversation, answered) or outcome


def settle_description(key: DescriptionKey, conversation: str, outcome: DescriptionOutcome, answered: str) -> None:
    """Mark an outcome as final, because a model has received it.

    A failure is stored under the id of the model's answer. A description deletes the failures that it replaces.
    """
    if outcome.fault:
        _write(key, answered, outcome)
    else:
        FileDescription.objects.filter(digest=key.digest, conversation=conversation).exclude(fault="").delete()


def _write(key: DescriptionKey, conversation: str, outcome: DescriptionOutcome) -> None:
    now = datetime.now(UTC)
    row = FileDescription(
        digest=key.digest,
        conversation=conversation,
        content=key.content,
        describer=outcome.describer[:330],
        words=outcome.words,
        fault=outcome.fault[:40],
        prompt_tokens=outcome.prompt_tokens,
        completion_tokens=outcome.completion_tokens,
        created_at=now,
        used_at=now,
    )
    # If another process has stored the same key in the meantime, its row is kept.
    FileDescription.objects.bulk_create([row], ignore_conflicts=True)


def prune_descriptions(before: datetime) -> int:
    """Delete the descriptions that were last used before `before`, and return their number."""
    return FileDescription.objects.filter(used_at__lt=before).delete()[0]


def forget_failures(conversation: str) -> None:
    """Delete the failures of a conversation, so that a model is asked again."""
    FileDescription.objects.filter(conversation=conversation).exclude(fault="").delete()


def forget_content(content: str) -> None:
    FileDescription.objects.filter(content=content).delete()
