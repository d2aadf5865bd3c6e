"""Checks before an action: whether the object was changed in the meantime, has a valid name, or is still in use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.utils.translation import gettext as _

from capabilities.core.problems import Problem
from capabilities.core.storable import is_name
from capabilities.core.translatable import translatable
from capabilities.errors import ActionError, ConflictError, InUseError, InvalidError
from capabilities.sentences import join_names


def check_version(row: Any, expected: int | None) -> None:
    """Raise `ConflictError` if the row was deleted or has a different version; None accepts any version."""
    if expected is None:
        return
    if row is None or row.version != expected:
        raise ConflictError(_("Someone else changed this in the meantime. Check the new version, then save again."))


def save_row(row: Any, expected: int | None) -> None:
    """Save a row that is new or has the expected version, and increment its version.

    Call it inside `ledger.change`. Raise `ConflictError` like `check_version`.
    """
    if row.pk is None:
        row.save()
        return
    stored = type(row)._default_manager.filter(pk=row.pk).first()
    check_version(stored, expected)
    row.version = stored.version + 1 if stored else 0
    # Saving must not recreate a deleted row.
    row.save(force_update=True)


def save_fields(row: Any, *fields: str) -> None:
    """Save only these fields and increment the version; call it inside `ledger.change`."""
    row.version = type(row)._default_manager.filter(pk=row.pk).values_list("version", flat=True).first() or 0
    row.version += 1
    row.save(update_fields=["version", *fields])


def check_one_line(field: str, text: str) -> None:
    """Raise `InvalidError` for a name with a line break or another control character."""
    if not is_name(text):
        message = translatable("%(path)s must be on one line, without control characters.", path=field)
        raise InvalidError([Problem(field, message, "range")])


def check_unused(kind: str, users: Sequence[str], sentence: str) -> None:
    """Raise `InUseError` if `users`, the names of objects that still use this one, is not empty.

    All users are of the given kind. In the error message `sentence`, their names replace `%(users)s`.
    """
    if users:
        raise InUseError(sentence % {"users": join_names(users)}, kind=kind, count=len(users))


def find_refusal(check: Callable[..., None], *arguments: Any) -> str:
    """Return the message of the error that a check raises, or "". It explains why a button is disabled."""
    try:
        check(*arguments)
    except ActionError as refusal:
        return str(refusal)
    return ""
