"""Descriptions in their rows: what a conversation was told stays, and a failure heals where it was told none yet.

Words are shared by everybody who would ask the same. That there are none is kept for conversations that begin alike,
which ask again after a while, and for good under the answer that followed: with it the conversation continues, and what
models read at its beginning must not change (the prefix law).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from capabilities.core.describing.prompt import DescriptionKey
from routing_admin.models import FileDescription

ANYBODY = ""
ASK_AGAIN = timedelta(minutes=5)
"""So long after a failure conversations that begin alike are not asked for anew."""
SEEN_AGAIN = timedelta(hours=12)
"""How old the note of a description's last use gets before it is written anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescriptionOutcome:
    """What came of asking: the words of `describer`, or the fault for which there are none; the tokens it took.

    `unsettled` says that other rows still tell otherwise, which `settle_description` ends once it was delivered.
    """

    describer: str
    words: str = ""
    fault: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    unsettled: bool = field(default=False, compare=False)


def find_description(key: DescriptionKey, conversation: str, answered: str = "") -> DescriptionOutcome | None:
    """What this conversation has for that key; None where it is to be asked.

    `conversation` stands for how it begins, `answered` for that and the first answer behind the file; empty where no
    answer followed yet, so that nothing was told that has to stay.
    """
    found = FileDescription.objects.filter(digest=key.digest, conversation__in={ANYBODY, conversation, answered})
    rows = {each.conversation: each for each in found}
    words, failure, now = rows.get(ANYBODY), rows.get(conversation), datetime.now(UTC)
    if answered:
        row = rows.get(answered) or failure or words
        unsettled = row is not None and row is failure
    else:
        row = words or (failure if failure and now - failure.created_at < ASK_AGAIN else None)
        unsettled = failure is not None and words is not None
    if row is None:
        return None
    if now - row.used_at > SEEN_AGAIN:
        FileDescription.objects.filter(pk=row.pk).update(used_at=now)
    return DescriptionOutcome(
        describer=row.describer,
        words=row.words,
        fault=row.fault,
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
        unsettled=unsettled,
    )


def keep_description(
    key: DescriptionKey, conversation: str, outcome: DescriptionOutcome, answered: str = ""
) -> DescriptionOutcome:
    """What holds for this conversation from now on: this outcome, or the one that was stored before it."""
    earlier = find_description(key, conversation, answered)
    if earlier is not None:
        return earlier
    if not answered:  # an older failure, after which it was asked anew
        FileDescription.objects.filter(digest=key.digest, conversation=conversation).delete()
    _write(key, (answered or conversation) if outcome.fault else ANYBODY, outcome)
    return find_description(key, conversation, answered) or outcome


def settle_description(key: DescriptionKey, conversation: str, outcome: DescriptionOutcome, answered: str) -> None:
    """What was delivered stands: a failure for who continues with that answer, words for all who begin alike."""
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
    FileDescription.objects.bulk_create([row], ignore_conflicts=True)


def prune_descriptions(before: datetime) -> int:
    """Removes what no conversation used since that moment; how many."""
    return FileDescription.objects.filter(used_at__lt=before).delete()[0]


def forget_failures(conversation: str) -> None:
    """Has a conversation ask again where it was told that there are no words."""
    FileDescription.objects.filter(conversation=conversation).exclude(fault="").delete()


def forget_content(content: str) -> None:
    """Removes every description of a file whose bytes are gone."""
    FileDescription.objects.filter(content=content).delete()
