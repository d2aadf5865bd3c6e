"""Store answers to which later requests may refer with `item_reference` and `previous_response_id`.

Each agent can refer only to its own answers, and all processes read the same stored answers.

The items of an answer are in one row, under the key that their ids contain. Each item with another id, such as an item
of OpenAI's own tools, has an additional row. A further row contains the answer's input: only the items of its own
request, and the keys of the answers that it continues, so each turn adds only what is new.

Rows are kept in memory until the request log is written, so answers do not wait for them. Like outcomes of calls with
an idempotency key, rows are encrypted, and are found by keyed digests. The oldest rows are deleted when space runs out.
"""

from __future__ import annotations

import logging
import re
import threading
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from cryptography.fernet import InvalidToken
from django.conf import settings
from django.db import DatabaseError, InterfaceError, transaction
from django.db.models import QuerySet, Sum

from capabilities.core.values import value_class
from capabilities.runtime import owned
from capabilities.secrets import cipher
from capabilities.signing import sign_permanently
from routing_admin.models import KeptAnswer
from routing_admin.platform.databases.router import LOGS

log = logging.getLogger(__name__)

AGENT_BYTES, ALL_BYTES = 32 * 1024 * 1024, 512 * 1024 * 1024
"""Maximum number of stored bytes: per agent, separately for its answers and its inputs, and for all agents together."""
MAX_BYTES = 8 * 1024 * 1024
"""Maximum number of bytes of a stored answer or of a stored input."""
MAX_TURNS = 100
"""Maximum number of earlier answers that an input refers to; in a longer conversation, the next input is stored
whole.
"""
WAITING_BYTES = 32 * 1024 * 1024
"""Maximum number of bytes to keep in memory until they are written."""
CHECK_SHARE = 16
"""A process checks a limit on stored bytes whenever it has written this fraction (1/16) of the limit."""
ROWS = 200
"""Number of rows per statement; also the maximum number of expired rows to delete with each write."""

INPUT = "input "
"""Prefix that turns an answer's key into the name of the row with the answer's input."""
OURS, MAX_ID = re.compile(r"[a-z]+_[0-9a-f]{26,28}"), 256
"""Pattern of item ids that contain their answer's key. An item with any other id, up to this length, has a row of its
own.
"""

Key = tuple[str, str]
"""An agent and a name: an answer's key, `INPUT` plus such a key, or an item's id."""


class KeptTooLargeError(ValueError):
    """The referenced answers are larger than a request may be."""


@value_class
class Turn:
    """The input of a request as JSON, and the keys of the answers that the request continues, oldest first."""

    before: tuple[str, ...]
    input: bytes

    @classmethod
    def of(cls, items: Sequence[Any], before: Sequence[str] = (), new: int | None = None) -> Turn | None:
        """Return the turn for an input whose last `new` items are new, by default all.

        Return None if the turn is too large or cannot be encoded as JSON.
        """
        is_long = len(before) >= MAX_TURNS
        try:
            data = orjson.dumps(items if is_long or new is None else items[len(items) - new :])
        except orjson.JSONEncodeError:
            return None
        return None if len(data) > MAX_BYTES else cls(() if is_long else tuple(before), data)


@value_class
class _Kept:
    ends: datetime
    data: bytes
    before: tuple[str, ...] = ()


_NOTHING = _Kept(datetime.min.replace(tzinfo=UTC), b"")


@dataclass(slots=True)
class KeptAnswers:
    """This process's answers that are not written yet, and the bytes written since the limits were last checked."""

    _waiting: dict[Key, _Kept] = field(default_factory=dict)
    _bytes: int = 0
    _written: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _writing: threading.Lock = field(default_factory=threading.Lock)

    def keep(self, agent: str, turn: Turn | None, key: str, items: Sequence[Mapping[str, Any]]) -> None:
        """Queue the items of an answer, unless they exceed `MAX_BYTES`, and the turn that the answer belongs to."""
        data = orjson.dumps(items)
        if len(data) > MAX_BYTES:
            return
        ends = datetime.now(UTC) + timedelta(seconds=settings.KEEP_ANSWERS)
        kept = {key: _Kept(ends, data)}
        for item in items:
            identity = item.get("id")
            if isinstance(identity, str) and len(identity) <= MAX_ID and not OURS.fullmatch(identity):
                kept[identity] = _Kept(ends, orjson.dumps([item]))
        if turn is not None:
            kept[INPUT + key] = _Kept(
                ends, b'{"before":%b,"input":%b}' % (orjson.dumps(turn.before), turn.input), turn.before
            )
        with self._lock:
            for name, entry in kept.items():
                self._drop((agent, name))
                self._waiting[agent, name] = entry
                self._bytes += len(entry.data)
            while self._bytes > WAITING_BYTES:
                self._drop(next(iter(self._waiting)))

    def _drop(self, key: Key) -> None:
        found = self._waiting.pop(key, None)
        self._bytes -= len(found.data) if found else 0

    def find_conversation(self, agent: str, key: str, max_bytes: int) -> tuple[list[str], list[Any]] | None:
        """Return the keys of the conversation's answers up to the given answer, and all items of the conversation.

        Return None if one of the answers is not stored. Raise the same errors as `find`.
        """
        last = self.find(agent, (INPUT + key,), max_bytes)
        if not last:
            return None
        before: list[str] = last[INPUT + key]["before"]
        names = {key, *before, *(INPUT + earlier_key for earlier_key in before)}
        found = self.find(agent, names, max_bytes) | last
        if names - found.keys():
            return None
        keys = [*before, key]
        return keys, [item for answer_key in keys for item in (*found[INPUT + answer_key]["input"], *found[answer_key])]

    def find(self, agent: str, keys: Iterable[str], max_bytes: int) -> dict[str, Any]:
        """Return what is stored for an agent under each of these names (see `Key`).

        Raise `KeptTooLargeError` if it exceeds `max_bytes`. Database errors propagate.
        """
        requested, now = set(keys), datetime.now(UTC)
        with self._lock:
            waiting = {key: self._waiting.get((agent, key), _NOTHING) for key in requested}
        data = {key: entry.data for key, entry in waiting.items() if entry.ends > now}
        left = max_bytes - sum(map(len, data.values()))
        by_digest = {_digest(agent, key): key for key in requested - data.keys()}
        for names in _batches(list(by_digest)):
            rows = KeptAnswer.objects.filter(pk__in=names, expires_at__gt=now)
            # Decrypt one row at a time, so that no more is decrypted than the request may contain.
            for digest, ciphertext in rows.values_list("pk", "ciphertext").iterator(chunk_size=1):
                opened = _open(ciphertext, left)
                if opened is not None:
                    data[by_digest[digest]] = opened
                    left -= len(opened)
                if left < 0:
                    break
        if left < 0:
            raise KeptTooLargeError
        return {key: orjson.loads(content) for key, content in data.items()}

    def write(self, _batch: object = None) -> None:
        """Write the queued answers; answers that the database does not accept remain queued."""
        with self._writing:
            with self._lock:
                waiting = dict(self._waiting)
            if not waiting:
                return
            try:
                self._store(waiting)
            except (DatabaseError, InterfaceError) as error:
                log.debug("the items of %s answers could not be kept yet: %s", len(waiting), error)
                return
            with self._lock:
                for key, entry in waiting.items():
                    # A newer version of the answer may have been queued during the write.
                    if self._waiting.get(key) is entry:
                        self._drop(key)

    def _store(self, waiting: Mapping[Key, _Kept]) -> None:
        rows = []
        for (agent, name), entry in waiting.items():
            sealed = cipher().encrypt(zlib.compress(entry.data, 1))
            rows.append(
                KeptAnswer(
                    digest=_digest(agent, name),
                    owner=_owner(agent, name),
                    size=len(sealed),
                    expires_at=entry.ends,
                    ciphertext=sealed,
                )
            )
        with transaction.atomic(using=LOGS):
            expired = KeptAnswer.objects.filter(expires_at__lte=datetime.now(UTC)).values_list("pk", flat=True)[:ROWS]
            if names := list(expired):
                KeptAnswer.objects.filter(pk__in=names).delete()
            KeptAnswer.objects.bulk_create(
                rows,
                update_conflicts=True,
                unique_fields=["digest"],
                update_fields=["owner", "size", "expires_at", "ciphertext"],
                batch_size=ROWS,
            )
            for (agent, _), entry in waiting.items():
                # Keep a conversation's earlier answers as long as its newest answer.
                renewed = sorted(_digest(agent, name) for key in entry.before for name in (key, INPUT + key))
                for batch in _batches(renewed):
                    KeptAnswer.objects.filter(pk__in=batch, expires_at__lt=entry.ends).update(expires_at=entry.ends)
        for row in rows:
            self._written.update({row.owner: row.size, "": row.size})
        for owner, size in tuple(self._written.items()):
            max_size = AGENT_BYTES if owner else ALL_BYTES
            if size * CHECK_SHARE > max_size:
                _trim(KeptAnswer.objects.filter(owner=owner) if owner else KeptAnswer.objects.all(), max_size)
                del self._written[owner]


def _digest(agent: str, key: str) -> str:
    return sign_permanently(f"item_reference\n{agent}\n{key}".encode())


def _owner(agent: str, name: str) -> str:
    # Inputs have a separate limit, so that they do not displace answers, which are small and may be referenced item by
    # item.
    kind = "input" if name.startswith(INPUT) else "item_reference"
    return sign_permanently(f"{kind}\n{agent}".encode())


def _open(ciphertext: bytes | memoryview, max_bytes: int) -> bytes | None:
    try:
        # Read one byte more than allowed, so that the caller notices an exceeded limit.
        return zlib.decompressobj().decompress(cipher().decrypt(bytes(ciphertext)), max(max_bytes, 0) + 1)
    except InvalidToken:
        # The row was encrypted with a key that has since been removed.
        return None


def _trim(rows: QuerySet[KeptAnswer], max_size: int) -> None:
    surplus = (rows.aggregate(total=Sum("size"))["total"] or 0) - max_size
    surplus_names = []
    for name, size in rows.order_by("expires_at").values_list("pk", "size").iterator() if surplus > 0 else ():
        if surplus <= 0:
            break
        surplus_names.append(name)
        surplus -= size
    for names in _batches(surplus_names):
        KeptAnswer.objects.filter(pk__in=names).delete()


def _batches(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), ROWS):
        yield names[start : start + ROWS]


kept_answers = owned(KeptAnswers)
