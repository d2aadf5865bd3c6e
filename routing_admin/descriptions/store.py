"""Descriptions in their rows: the first outcome stands as long as it is used.

Words are shared by everybody who would ask the same. That there are none holds for one conversation alone, so that a
describer that failed once is asked again by others, and what a conversation began with never changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from capabilities.core.describing.key import DescriptionKey
from routing_admin.models import FileDescription

ANYBODY = ""
SEEN_AGAIN = timedelta(hours=12)
"""How old the note of a description's last use gets before it is written anew."""


@dataclass(frozen=True, slots=True)
class DescriptionOutcome:
    """What came of asking: the words of `describer`, or the fault for which there are none; the tokens it took."""

    describer: str
    words: str = ""
    fault: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


def find_description(key: DescriptionKey, conversation: str) -> DescriptionOutcome | None:
    """What this conversation has for that key; None where nobody was asked yet."""
    rows = FileDescription.objects.filter(digest=key.digest, conversation__in=(ANYBODY, conversation))
    row = max(rows, key=lambda each: each.conversation, default=None)
    if row is None:
        return None
    now = datetime.now(UTC)
    if now - row.used_at > SEEN_AGAIN:
        FileDescription.objects.filter(pk=row.pk).update(used_at=now)
    return DescriptionOutcome(row.describer, row.words, row.fault, row.prompt_tokens, row.completion_tokens)


def keep_description(key: DescriptionKey, conversation: str, outcome: DescriptionOutcome) -> DescriptionOutcome:
    """What holds for this conversation from now on: this outcome, or the one that somebody stored before it."""
    earlier = find_description(key, conversation)
    if earlier is not None:
        return earlier
    now = datetime.now(UTC)
    row = FileDescription(
        digest=key.digest,
        conversation=conversation if outcome.fault else ANYBODY,
        content=key.content,
        describer=outcome.describer[:330],
        words=outcome.words,
        fault=outcome.fault[:40],
        prompt_tokens=outcome.prompt_tokens,
        completion_tokens=outcome.completion_tokens,
        created_at=now,
        used_at=now,
    )
    FileDescription.objects.bulk_create([row], ignore_conflicts=True)
    return find_description(key, conversation) or outcome


def prune_descriptions(before: datetime) -> int:
    """Removes what no conversation used since that moment; how many."""
    return FileDescription.objects.filter(used_at__lt=before).delete()[0]


def forget_failures(conversation: str) -> None:
    """Has a conversation ask again where it was told that there are no words."""
    FileDescription.objects.filter(conversation=conversation).exclude(fault="").delete()


def forget_content(content: str) -> None:
    """Removes every description of a file whose bytes are gone."""
    FileDescription.objects.filter(content=content).delete()
