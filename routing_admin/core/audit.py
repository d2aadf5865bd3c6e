"""The audit log's hash chain: each entry contains its number, its hash and the previous entry's hash.

This module does not access the database: entries are passed in as values, and problems are returned as sentences.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

START = "0" * 64
"""Value of `previous` in the first entry."""
MAX_COMPARED = 100
"""To find swapped entries, each invalid entry is compared with at most this many others."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An entry of the audit log; `at` is in UTC, with microseconds."""

    number: int
    at: str
    actor_kind: str
    actor: str
    address: str
    request_id: str
    action: str
    object_kind: str
    object_name: str
    details: Mapping[str, Any] = field(default_factory=dict)
    revision: int | None = None
    previous: str = START
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class AuditHead:
    """Number and hash of the entry that was the newest when they were recorded outside the audit log."""

    number: int
    sha256: str

    def __str__(self) -> str:
        return f"{self.number}:{self.sha256}"


@dataclass(frozen=True, slots=True)
class AuditVerdict:
    """Result of a verification: the number of entries, the newest entry, and one sentence for each problem."""

    count: int
    head: AuditHead | None
    problems: tuple[str, ...]


def digest_entry(entry: AuditEntry, *, number: int | None = None, previous: str | None = None) -> str:
    """Return the SHA-256 hash of an entry's canonical JSON.

    `number` and `previous` replace the entry's own number and previous hash.
    """
    value = asdict(entry)
    del value["sha256"]
    value["number"] = entry.number if number is None else number
    value["previous"] = entry.previous if previous is None else previous
    text = json.dumps(_plain(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    # A database may return a whole number as int or float, so whole numbers are always written without a decimal point.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def verify_chain(entries: Iterable[AuditEntry], heads: Iterable[AuditHead] = ()) -> AuditVerdict:
    """Verify every entry's hash and position, and check that the chain still contains each recorded head."""
    heads_by_number = {head.number: head for head in heads}
    hashes: dict[int, str] = {}
    problems: list[str] = []
    invalid: list[AuditEntry] = []
    last = AuditHead(0, START)
    count = 0
    for entry in entries:
        count += 1
        is_next = entry.number == last.number + 1
        if not is_next:
            problems.append(_missing(last.number + 1, entry.number - 1))
        if digest_entry(entry) != entry.sha256 or (is_next and entry.previous != last.sha256):
            invalid.append(entry)
        if entry.number in heads_by_number:
            hashes[entry.number] = entry.sha256
        last = AuditHead(entry.number, entry.sha256)
    problems += _report_invalid(invalid)
    problems += _report_heads(heads_by_number, hashes, last.number)
    return AuditVerdict(count, last if count else None, tuple(problems))


def _missing(first: int, last: int) -> str:
    return f"Number {first} is missing." if first == last else f"Numbers {first} to {last} are missing."


def _report_invalid(invalid: list[AuditEntry]) -> list[str]:
    problems = []
    for entry in invalid:
        original_number = _original_number(entry, invalid[:MAX_COMPARED])
        if original_number is not None:
            problems.append(
                f"Number {entry.number} says what was written as number {original_number}: lines were swapped."
            )
        elif digest_entry(entry) != entry.sha256:
            problems.append(f"Number {entry.number} was changed: what it says does not fit its hash.")
        else:
            problems.append(f"Number {entry.number} does not follow the line before it: one of both was replaced.")
    return problems


def _original_number(entry: AuditEntry, invalid: Iterable[AuditEntry]) -> int | None:
    """Return the number under which the entry was written, if another invalid entry has that number now."""
    for candidate in invalid:
        if candidate.number == entry.number:
            continue
        # The entries' numbers were swapped.
        if digest_entry(entry, number=candidate.number) == entry.sha256:
            return candidate.number
        if (
            digest_entry(entry, number=candidate.number, previous=candidate.previous) == candidate.sha256
            # The entries' contents were swapped, but not their hashes.
        ):
            return candidate.number
    return None


def _report_heads(heads: Mapping[int, AuditHead], hashes: Mapping[int, str], newest: int) -> list[str]:
    problems = []
    missing = [number for number in heads if number > newest]
    if missing:
        problems.append(
            f"The end is missing: the newest is number {newest}, and number {max(missing)} was noted before. "
            + _missing(newest + 1, max(missing))
        )
    for number, head in sorted(heads.items()):
        if number in hashes and hashes[number] != head.sha256:
            problems.append(
                f"Number {number} is not the one that was noted: its hash was {head.sha256[:12]}…, and is "
                f"{hashes[number][:12]}…. The chain was rewritten from there or before."
            )
    return problems
