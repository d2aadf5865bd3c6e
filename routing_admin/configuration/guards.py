"""What may stop an act: somebody changed the thing meanwhile, or still uses it; and the same asked beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.utils.translation import gettext as _

from capabilities.core.problems import Problem
from capabilities.core.storable import is_name
from capabilities.core.translatable import translatable
from capabilities.errors import ActionError, ConflictError, InUseError, InvalidError
from capabilities.sentences import join_words


def check_version(row: Any, expected: int | None) -> None:
    """Raises `ConflictError` when the row is gone or not the version that was seen; None expects nothing."""
    if expected is None:
        return
    if row is None or row.version != expected:
        raise ConflictError(_("Someone else changed this in the meantime. Check the new version, then save again."))


def save_row(row: Any, expected: int | None) -> None:
    """Write a row, new or of the version expected; its version counts up from the stored one.

    Call it inside a ledger's change. Raise `ConflictError` as `check_version`; a deleted row is not made again.
    """
    if row.pk is None:
        row.save()
        return
    stored = type(row)._default_manager.filter(pk=row.pk).first()
    check_version(stored, expected)
    row.version = stored.version + 1 if stored else 0
    row.save(force_update=True)


def save_fields(row: Any, *fields: str) -> None:
    """Write these fields alone, and count the version up from the stored one. Call it inside a ledger's change."""
    row.version = type(row)._default_manager.filter(pk=row.pk).values_list("version", flat=True).first() or 0
    row.version += 1
    row.save(update_fields=["version", *fields])


def check_one_line(field: str, text: str) -> None:
    """Raise `InvalidError` for a name with a line break or another control character in it."""
    if not is_name(text):
        message = translatable("%(path)s must be on one line, without control characters.", path=field)
        raise InvalidError([Problem(field, message, "range")])


def check_unused(users: Sequence[str], sentence: str) -> None:
    """Raises `InUseError` with the sentence, `%(users)s` being who uses the thing; nothing when nobody does."""
    if users:
        raise InUseError(sentence % {"users": join_words(users)})


def find_refusal(check: Callable[..., None], *arguments: Any) -> str:
    """The sentence a check would raise, empty when it lets the act pass: a disabled button's reason."""
    try:
        check(*arguments)
    except ActionError as refusal:
        return str(refusal)
    return ""
