"""When a database does not answer: which errors mean that, how long agents wait, and what they get."""

from __future__ import annotations

from django.db import DatabaseError, InterfaceError, OperationalError

from capabilities.core.worded import worded

WAIT_SECONDS = 1.0
"""How long a call of an agent waits for a locked database; what it cannot have by then it may ask for again."""
AGAIN_SECONDS = 2.0
"""What `Retry-After` says then."""
MESSAGE = worded(
    "The database is not responding, and this call needs it to look up its key or to read or store a file. Send it "
    "again in a few seconds."
)
FULL_MESSAGE = worded(
    "The database disk is full, and this call needs to write to it. Send it again once there is space."
)


def explain(error: BaseException) -> str:
    """What whoever needs the database is told of an error that says that it is away."""
    return FULL_MESSAGE if is_full(error) else MESSAGE


def is_full(error: BaseException) -> bool:
    """Whether an error says that the database has no room left, in SQLite's words or PostgreSQL's."""
    return "is full" in str(error) or "No space left" in str(error)


def is_away(error: BaseException | None) -> bool:
    """Whether an error says that the database does not answer, and not that we asked it something wrong.

    A file that is no database raises `DatabaseError` itself; its other subclasses (a broken constraint, a value that
    does not fit, bad SQL) are faults of ours.
    """
    return isinstance(error, OperationalError | InterfaceError) or type(error) is DatabaseError
