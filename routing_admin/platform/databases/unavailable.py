"""What an error of the database is about: an outage, a value that it refuses, or our code; and what callers then get.

Everything that has to tell an outage from a fault asks here, by the codes that SQLSTATE and SQLite have for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, NotSupportedError, ProgrammingError

from capabilities.core.translatable import Translatable, translatable


class DatabaseFault(StrEnum):
    """What an error is about; all but the last two are outages, which end without a change to what was asked."""

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
    "25006": DatabaseFault.READ_ONLY,  # psycopg: InternalError
    "25P02": DatabaseFault.CODE,  # a statement after one that failed
    "28": DatabaseFault.DOWN,
    "3D": DatabaseFault.DOWN,
    "40": DatabaseFault.LOCKED,
    "55P03": DatabaseFault.LOCKED,
    "53": DatabaseFault.DOWN,
    "53100": DatabaseFault.FULL,
    "57": DatabaseFault.DOWN,
    "58": DatabaseFault.DOWN,
    "XX": DatabaseFault.DOWN,
    "42501": DatabaseFault.FORBIDDEN,  # psycopg: ProgrammingError, and so are those of a rolling upgrade
    "42P01": DatabaseFault.OUTDATED,
    "42703": DatabaseFault.OUTDATED,
    "3F": DatabaseFault.OUTDATED,
    "22": DatabaseFault.VALUE,
    "23": DatabaseFault.VALUE,
    "42804": DatabaseFault.VALUE,
    "54": DatabaseFault.VALUE,  # psycopg: OperationalError, though the row is what is too large
}
"""PostgreSQL's codes, or the first two characters of them."""
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
"""SQLite's codes, without what it adds to them. I/O errors and damaged files have no row: they are its outage."""
NO_TABLE = ("no such table", "no such column", "has no column named")
"""What SQLite, which has no code for it, says of tables of another version."""
REFUSED_BY_DRIVER = ("cannot adapt", "binding parameter")
OUR_CLASSES = (ProgrammingError, NotSupportedError)

WAIT_SECONDS = 1.0
"""How long a call of an agent waits for a locked database; what it cannot have by then it may ask for again."""
AGAIN_SECONDS = 2.0
"""What `Retry-After` says then."""
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
"""What callers get of an outage; of the others it is `MESSAGE`."""


def explain(error: BaseException) -> str:
    """Return what the caller gets of an error that is an outage."""
    fault = fault_of(error)
    return MESSAGES.get(fault, MESSAGE) if fault else MESSAGE


def is_unavailable(error: BaseException | None) -> bool:
    """Return whether an error is an outage of the database: what was asked for is no fault, and may be asked again."""
    return error is not None and fault_of(error) not in (None, DatabaseFault.VALUE, DatabaseFault.CODE)


def is_of_values(error: BaseException) -> bool:
    """Return whether an error is one row's own: without it the other rows can be written."""
    if isinstance(error, DatabaseError | InterfaceError):
        return fault_of(error) is DatabaseFault.VALUE
    return isinstance(error, TypeError | ValueError | ArithmeticError | LookupError | AttributeError | RecursionError)


def fault_of(error: BaseException) -> DatabaseFault | None:
    """Return what an error of the database, as Django raises it, is about; None for any other error."""
    if not isinstance(error, DatabaseError | InterfaceError):
        return None
    cause, text = error.__cause__, str(error)
    state, number = getattr(cause, "sqlstate", None) or "", getattr(cause, "sqlite_errorcode", None) or 0
    found = SQLSTATES.get(state) or SQLSTATES.get(state[:2]) or SQLITE_CODES.get(number & 0xFF)
    if found is None or found is DatabaseFault.DOWN:
        return _fault_by_words(error, text) or found or DatabaseFault.DOWN
    return found


def _fault_by_words(error: BaseException, text: str) -> DatabaseFault | None:
    """Return what the text or the class of an error says that has no code, or one that says little."""
    if "is full" in text or "No space left" in text:
        return DatabaseFault.FULL
    if any(words in text for words in NO_TABLE):
        return DatabaseFault.OUTDATED
    if isinstance(error, DataError | IntegrityError) or any(words in text for words in REFUSED_BY_DRIVER):
        return DatabaseFault.VALUE
    return DatabaseFault.CODE if isinstance(error, OUR_CLASSES) else None
