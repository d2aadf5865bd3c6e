"""The items of answers that `item_reference` may name, kept for the agent that got them, in every process.

They wait in memory until the request log is written, so that no answer waits for it; like outcomes of calls with an
idempotency key they are encrypted, under names that cannot be read back. The oldest make room.
"""

from __future__ import annotations

import logging
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

from capabilities.secrets import cipher
from capabilities.signing import sign_lastingly
from routing_admin.models import KeptAnswer
from routing_admin.platform.databases.router import LOGS

log = logging.getLogger(__name__)

AGENT_BYTES, ALL_BYTES = 32 * 1024 * 1024, 512 * 1024 * 1024
"""What is kept of one agent's answers and of all, as stored."""
MAX_BYTES = 8 * 1024 * 1024
"""The largest answer that is kept."""
WAITING_BYTES = 32 * 1024 * 1024
"""What waits in memory to be written."""
CHECK_SHARE = 16
"""A process sums up what is kept whenever it wrote that part of the bound."""
ROWS = 200
"""Rows that one statement names, and expired ones that go with each writing."""

Place = tuple[str, str]
"""An agent and the key of one of its answers."""


class KeptTooLargeError(ValueError):
    """The answers that are asked for have more bytes than one request may have."""


@dataclass(slots=True)
class KeptAnswers:
    """This process's: what waits to be written, and how much was written since the sums were last looked at."""

    _waiting: dict[Place, tuple[datetime, bytes]] = field(default_factory=dict)
    _bytes: int = 0
    _written: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _writing: threading.Lock = field(default_factory=threading.Lock)

    def keep(self, agent: str, key: str, items: Sequence[Mapping[str, Any]]) -> None:
        """Keep the items of an answer; those of more than `MAX_BYTES` are not kept."""
        data = orjson.dumps(items)
        if len(data) > MAX_BYTES:
            return
        ends = datetime.now(UTC) + timedelta(seconds=settings.KEEP_ANSWERS)
        with self._lock:
            self._drop((agent, key))
            self._waiting[agent, key] = (ends, data)
            self._bytes += len(data)
            while self._bytes > WAITING_BYTES:
                self._drop(next(iter(self._waiting)))

    def _drop(self, place: Place) -> None:
        found = self._waiting.pop(place, None)
        self._bytes -= len(found[1]) if found else 0

    def find(self, agent: str, keys: Iterable[str], max_bytes: int) -> dict[str, list[dict[str, Any]]]:
        """Return the items of those answers of an agent that are kept, by key.

        Raises `KeptTooLargeError` and what the database raises.
        """
        wanted, now, nothing = set(keys), datetime.now(UTC), (datetime.min.replace(tzinfo=UTC), b"")
        with self._lock:
            waiting = {key: self._waiting.get((agent, key), nothing) for key in wanted}
        data = {key: each for key, (ends, each) in waiting.items() if ends > now}
        left = max_bytes - sum(map(len, data.values()))
        by_digest = {_digest(agent, key): key for key in wanted - data.keys()}
        for names in _batches(list(by_digest)):
            rows = KeptAnswer.objects.filter(pk__in=names, expires_at__gt=now)
            for digest, ciphertext in rows.values_list("pk", "ciphertext").iterator(chunk_size=1):
                opened = _open(ciphertext, left)
                if opened is not None:
                    data[by_digest[digest]] = opened
                    left -= len(opened)
                if left < 0:
                    break
        if left < 0:
            raise KeptTooLargeError
        return {key: orjson.loads(each) for key, each in data.items()}

    def write(self, _batch: object = None) -> None:
        """Write what waits; what the database does not take now waits on."""
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
                for place, each in waiting.items():
                    if self._waiting.get(place) is each:
                        self._drop(place)

    def _store(self, waiting: Mapping[Place, tuple[datetime, bytes]]) -> None:
        rows = []
        for (agent, key), (ends, data) in waiting.items():
            sealed = cipher().encrypt(zlib.compress(data, 1))
            rows.append(
                KeptAnswer(
                    digest=_digest(agent, key),
                    owner=_owner(agent),
                    size=len(sealed),
                    expires_at=ends,
                    ciphertext=sealed,
                )
            )
        with transaction.atomic(using=LOGS):
            expired = KeptAnswer.objects.filter(expires_at__lte=datetime.now(UTC)).values_list("pk", flat=True)[:ROWS]
            if names := list(expired):
                KeptAnswer.objects.filter(pk__in=names).delete()
            KeptAnswer.objects.bulk_create(rows, ignore_conflicts=True, batch_size=ROWS)
        for row in rows:
            self._written.update({row.owner: row.size, "": row.size})
        for owner, size in tuple(self._written.items()):
            most = AGENT_BYTES if owner else ALL_BYTES
            if size * CHECK_SHARE > most:
                _trim(KeptAnswer.objects.filter(owner=owner) if owner else KeptAnswer.objects.all(), most)
                del self._written[owner]


def _digest(agent: str, key: str) -> str:
    return sign_lastingly(f"item_reference\n{agent}\n{key}".encode())


def _owner(agent: str) -> str:
    return sign_lastingly(f"item_reference\n{agent}".encode())


def _open(ciphertext: bytes | memoryview, max_bytes: int) -> bytes | None:
    """The items in a row, cut behind `max_bytes`; None where they were encrypted with a key that is gone."""
    try:
        return zlib.decompressobj().decompress(cipher().decrypt(bytes(ciphertext)), max(max_bytes, 0) + 1)
    except InvalidToken:
        return None


def _trim(rows: QuerySet[KeptAnswer], most: int) -> None:
    """Remove the oldest until no more than `most` bytes are left."""
    surplus = (rows.aggregate(total=Sum("size"))["total"] or 0) - most
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


kept_answers = KeptAnswers()
"""This process's."""
