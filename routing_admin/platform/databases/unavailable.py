"""Classify database errors as outages, rejected values or bugs, by SQLSTATE or SQLite's result codes.

All code that must distinguish an outage from a bug uses this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, NotSupportedError, ProgrammingError

from capabilities.core.translatable import Translatable, translatable


class DatabaseFault(StrEnum):
    """Cause of a database error. All but the last two are outages: the same call can succeed later."""

    DOWN = "down"
    LOCKED = "locked"
    FULL = "full"
    READ_ONLY = "read_only"
    FORBIDDEN = "forbidden"
    OUTDATED = "outdated"
    VALUE = "value"
    CODE = "code"


SQLSTATES: Mapping[str, DatabaseFault] = {
    "08": DatabaseFault.DOWN,
    "25006": DatabaseFault.READ_ONLY,  # psycopg raises an InternalError for this.
    "25P02": DatabaseFault.CODE,  # A statement in a failed transaction.
    "28": DatabaseFault.DOWN,
    "3D": DatabaseFault.DOWN,
    "40": DatabaseFault.LOCKED,
    "55P03": DatabaseFault.LOCKED,
    "53": DatabaseFault.DOWN,
    "53100": DatabaseFault.FULL,
    "57": DatabaseFault.DOWN,
    "58": DatabaseFault.DOWN,
    "XX": DatabaseFault.DOWN,
    # psycopg raises a ProgrammingError for this code, and for the next three, which occur during a rolling upgrade.
    "42501": DatabaseFault.FORBIDDEN,
    "42P01": DatabaseFault.OUTDATED,
    "42703": DatabaseFault.OUTDATED,
    "3F": DatabaseFault.OUTDATED,
    "22": DatabaseFault.VALUE,
    "23": DatabaseFault.VALUE,
    "42804": DatabaseFault.VALUE,
    "54": DatabaseFault.VALUE,  # The row is too large, although psycopg raises an OperationalError.
}
"""Maps SQLSTATE codes, or their first two characters, to the cause of the error."""
SQLITE_CODES: Mapping[int, DatabaseFault] = {
    3: DatabaseFault.FORBIDDEN,
    5: DatabaseFault.LOCKED,
    6: DatabaseFault.LOCKED,
    8: DatabaseFault.READ_ONLY,
    13: DatabaseFault.FULL,
    18: DatabaseFault.VALUE,
    19: DatabaseFault.VALUE,
    20: DatabaseFault.VALUE,
}
"""Maps SQLite's primary result codes to causes. I/O errors and damaged files are not listed, because unlisted codes
count as outages.
"""
NO_TABLE = ("no such table", "no such column", "has no column named")
"""Parts of SQLite's messages for a table or column that is missing because another version of the program created the
schema. SQLite has no result code for this.
"""
REFUSED_BY_DRIVER = ("cannot adapt", "binding parameter")
OUR_CLASSES = (ProgrammingError, NotSupportedError)

WAIT_SECONDS = 1.0
"""Lock timeout in seconds for an agent's call, after which the agent may retry the call."""
RETRY_SECONDS = 2.0
"""Seconds in the `Retry-After` header of a call that failed because of an outage."""
MESSAGE = translatable(
    "The database is not responding, and this call needs it to look up its key or to read or store a file. Send it "
    "again in a few seconds."
)
MESSAGES: Mapping[DatabaseFault, Translatable] = {
    DatabaseFault.FULL: translatable(
        "The database disk is full, and this call needs to write to it. Send it again once there is space."
    ),
    DatabaseFault.READ_ONLY: translatable(
        "The database is read-only at the moment, and this call needs to write to it. Send it again later; if this "
        "lasts, an administrator has to connect the server to the primary database."
    ),
    DatabaseFault.FORBIDDEN: translatable(
        "The database denies this server a right that this call needs. Send it again once an administrator has "
        "restored the right; the server log names it."
    ),
    DatabaseFault.OUTDATED: translatable(
        "The database lacks a table or column of this version, probably during an upgrade. Send the call again in a "
        "few minutes."
    ),
}
"""Maps causes of outages to messages for callers; for other causes the message is `MESSAGE`."""


def explain(error: BaseException) -> str:
    """Return the message for a caller whose call failed because of an outage."""
    fault = classify_error(error)
    return MESSAGES.get(fault, MESSAGE) if fault else MESSAGE


def is_unavailable(error: BaseException | None) -> bool:
    """Return whether an error is a database outage, so that the same call may be retried."""
    return error is not None and classify_error(error) not in (None, DatabaseFault.VALUE, DatabaseFault.CODE)


def is_value_fault(error: BaseException) -> bool:
    """Return whether a row's values caused the error, so that other rows can still be written."""
    if isinstance(error, DatabaseError | InterfaceError):
        return classify_error(error) is DatabaseFault.VALUE
    return isinstance(error, TypeError | ValueError | ArithmeticError | LookupError | AttributeError | RecursionError)


def classify_error(error: BaseException) -> DatabaseFault | None:
    """Return the cause of a database error that Django raised, or None for any other error."""
    if not isinstance(error, DatabaseError | InterfaceError):
        return None
    cause, text = error.__cause__, str(error)
    state, number = getattr(cause, "sqlstate", None) or "", getattr(cause, "sqlite_errorcode", None) or 0
    found = SQLSTATES.get(state) or SQLSTATES.get(state[:2]) or SQLITE_CODES.get(number & 0xFF)
    if found is None or found is DatabaseFault.DOWN:
        return _classify_text(error, text) or found or DatabaseFault.DOWN
    return found


def _classify_text(error: BaseException, text: str) -> DatabaseFault | None:
    # Classify errors by their message if they have no code, or a code that is too general.
    if "is full" in text or "No space left" in text:
        return DatabaseFault.FULL
    if any(phrase in text for phrase in NO_TABLE):
        return DatabaseFault.OUTDATED
    if isinstance(error, DataError | IntegrityError) or any(phrase in text for phrase in REFUSED_BY_DRIVER):
        return DatabaseFault.VALUE
    return DatabaseFault.CODE if isinstance(error, OUR_CLASSES) else None
