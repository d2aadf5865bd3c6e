"""What every action does first and last: the version is the one that was seen, a new row goes to the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Max, Model
from django.utils.translation import gettext as _

from capabilities.errors import ActionError, ConflictError, InUseError
from capabilities.translated import join_words


@dataclass(frozen=True, slots=True)
class Changed:
    """What an action on several rows did: how many it changed, and the revision it made (None when nothing changed)."""

    count: int
    revision: int | None = None


def expect_version(row: Any, expected: int | None) -> None:
    """Raises `ConflictError` when the row is gone or not the version that was seen; None expects nothing."""
    if expected is None:
        return
    if row is None or row.version != expected:
        raise ConflictError(_("Somebody else changed this meanwhile. Look at the new version, then save again."))


def next_position(model: type[Model]) -> int:
    """The position after the last row's."""
    last = model._default_manager.aggregate(last=Max("position"))["last"]
    return 0 if last is None else int(last) + 1


def refuse_if_used(users: Sequence[str], sentence: str) -> None:
    """Raises `InUseError` with the sentence, `%(users)s` being who uses the thing; nothing when nobody does."""
    if users:
        raise InUseError(sentence % {"users": join_words(users)})


def allowed(check: Callable[..., None], *arguments: Any) -> str:
    """The sentence a check would raise, empty when it lets the act pass: a disabled button's reason."""
    try:
        check(*arguments)
    except ActionError as refusal:
        return str(refusal)
    return ""
