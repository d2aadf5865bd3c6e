"""Store rows in files while the database does not accept them.

Each process appends to a locked file of its own, one request per line. Files of dead processes are read by the next
process that writes the rows of its own file. Writing raises `OSError` if the disk is full.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db.models import BigIntegerField, Field, FloatField, IntegerField, JSONField, Model

from capabilities.core.storable import storable_text
from routing_admin.models import AttemptLog, RequestLog
from routing_admin.platform.server.file_locks import hold_unless_locked
from routing_admin.request_log.insertion import CHUNKS, Row, complete, json_text

TIMES = ("started_at", "at")
"""Columns with timestamps, which are strings in the JSON of the files."""


@dataclass(slots=True)
class Spool:
    """The files in `folder`, including this process's own file, which is created when there are rows to store."""

    folder: Path
    _own: Path | None = None
    _handle: int | None = field(default=None, repr=False)

    def append(self, rows: Sequence[Row]) -> None:
        """Store rows on disk; raise `OSError` and store none of them if they do not fit."""
        lines = b"".join(json.dumps(row, default=str).encode() + b"\n" for row in rows)
        handle = self._open()
        start = os.lseek(handle, 0, os.SEEK_END)
        try:
            sent = os.write(handle, lines)
            if sent < len(lines):
                raise OSError(f"only {sent} of {len(lines)} bytes fitted")
        except OSError:
            # Remove an incomplete line, because it could not be read as a row.
            os.ftruncate(handle, start)
            raise

    def waiting(self) -> int:
        """Return how many requests the files contain, including the files of other processes."""
        return sum(path.read_bytes().count(b"\n") for path in self._files())

    def drain(self, write: Callable[[Sequence[Row]], None], lose: Callable[[str], None]) -> None:
        """Write the rows of this process and of dead processes, and remove each file once its rows are written.

        `write` must skip requests that are already in the log. If it raises an error, the remaining rows are left on
        disk. `lose` is called with the location of each damaged line.
        """
        for path in self._files():
            with nullcontext(True) if path == self._own else hold_unless_locked(path) as free:
                if not free:
                    continue
                for rows in _chunks(path, lose):
                    write(rows)
                if path == self._own and self._handle is not None:
                    # Keep this process's own file open for further rows.
                    os.ftruncate(self._handle, 0)
                else:
                    path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close this process's file, and delete it if it is empty."""
        if self._handle is None or self._own is None:
            return
        if os.fstat(self._handle).st_size == 0:
            self._own.unlink(missing_ok=True)
        os.close(self._handle)
        self._handle = self._own = None

    def _open(self) -> int:
        if self._handle is None:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._own = self.folder / f"{os.getpid()}-{os.urandom(4).hex()}.jsonl"
            self._handle = os.open(self._own, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            # A process holds the lock as long as its file is open, so an unlocked file belongs to a dead process.
            fcntl.flock(self._handle, fcntl.LOCK_EX)
        return self._handle

    def _files(self) -> list[Path]:
        sized = []
        for path in self.folder.glob("*.jsonl") if self.folder.is_dir() else ():
            try:
                status = path.stat()
            except FileNotFoundError:  # Another process has just written the rows and removed the file.
                continue
            if status.st_size:
                sized.append((status.st_mtime, path))
        return [path for _, path in sorted(sized)]


def _chunks(path: Path, lose: Callable[[str], None]) -> Iterator[list[Row]]:
    rows: list[Row] = []
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            # The process died while it was writing the last line.
            if not line.endswith(b"\n"):
                break
            try:
                request, attempts = json.loads(line)
                rows.append((_read(request), [_read(attempt) for attempt in attempts]))
            except (ValueError, TypeError):
                lose(f"line {number} of {path.name}")
            if len(rows) == CHUNKS[0]:
                yield rows
                rows = []
    if rows:
        yield rows


def _read(columns: dict[str, Any]) -> dict[str, Any]:
    moments = {name: datetime.fromisoformat(columns[name]) for name in TIMES if name in columns}
    return columns | moments


# The remaining functions repair rows that the database rejects, so that one invalid value does not lose the whole row.

MAX_COUNT, MAX_BIG = 2**31 - 1, 2**63 - 1
"""Maximum values of PostgreSQL's integer and bigint columns."""


def repaired(row: Row) -> Row:
    """Return the row with every value forced into its column's range or, if that fails, replaced by the default."""
    request, attempts = complete(row)
    details = request["token_details"] or {}
    counts = {name: count for name, count in details.items() if isinstance(count, int) and 0 <= count <= MAX_COUNT}
    return _fit(RequestLog, {**request, "token_details": counts or None}), [
        _fit(AttemptLog, attempt) for attempt in attempts
    ]


def _fit(model: type[Model], columns: Mapping[str, Any]) -> dict[str, Any]:
    fields = {field.attname: field for field in model._meta.concrete_fields}
    return {name: _fit_value(fields[name], value) for name, value in columns.items() if name in fields}


def _fit_value(field: Field[Any, Any], value: Any) -> Any:
    if value is None:
        return None if field.null else field.get_default()
    kind = next((fit for kind, fit in FITTING.items() if isinstance(field, kind)), _fit_text)
    if isinstance(value, bool | datetime):
        return value
    try:
        return kind(field, value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return field.get_default()


def _fit_number(field: Field[Any, Any], value: Any) -> int:
    most = MAX_BIG if isinstance(field, BigIntegerField) else MAX_COUNT
    return max(-most if isinstance(field, BigIntegerField) else 0, min(int(value), most))


def _fit_float(field: Field[Any, Any], value: Any) -> Any:
    return float(value) if math.isfinite(value) else field.get_default()


def _fit_json(_field: Field[Any, Any], value: Any) -> Any:
    return json.loads(json_text(value))


def _fit_text(field: Field[Any, Any], value: Any) -> str:
    return storable_text(str(value))[: field.max_length]


FITTING: Mapping[type[Field[Any, Any]], Callable[[Field[Any, Any], Any], Any]] = {
    IntegerField: _fit_number,
    FloatField: _fit_float,
    JSONField: _fit_json,
}
