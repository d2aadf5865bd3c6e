"""Answers that `item_reference` and `previous_response_id` may name, kept for their agent, in every process.

The items of an answer are in one row, under the key that their ids begin with; each that has another id, as OpenAI's
own tools' have, is in a row of its own, too. What the answer was given to is in a further one: the input of its request
alone, and the keys of the answers that this continued, so that a conversation grows by what is new in each turn. They
wait in memory until the request log is written, so that no answer waits for it; like outcomes of calls with an
idempotency key they are encrypted, under names that cannot be read back. The oldest make room.
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
from capabilities.signing import sign_lastingly
from routing_admin.models import KeptAnswer
from routing_admin.platform.databases.router import LOGS

log = logging.getLogger(__name__)

AGENT_BYTES, ALL_BYTES = 32 * 1024 * 1024, 512 * 1024 * 1024
"""What is kept of one agent's answers, of its inputs, and of all agents', as stored."""
MAX_BYTES = 8 * 1024 * 1024
"""The largest answer, and the largest input, that is kept."""
MAX_TURNS = 100
"""The most answers that an input continues; of a longer conversation the next one has all of it."""
WAITING_BYTES = 32 * 1024 * 1024
"""What waits in memory to be written."""
CHECK_SHARE = 16
"""A process sums up what is kept whenever it wrote that part of the bound."""
ROWS = 200
"""Rows that one statement names, and expired ones that go with each writing."""

INPUT = "input "
"""Before the key of an answer: the name of what it was given to."""
OURS, MAX_ID = re.compile(r"[a-z]+_[0-9a-f]{26,28}"), 256
"""Ids that say under which key their items are kept; others are names themselves, up to a length."""

Place = tuple[str, str]
"""An agent and the name of what is kept for it: the key of an answer, or `INPUT` and that, or an item's id."""


class KeptTooLargeError(ValueError):
    """The answers that are asked for have more bytes than one request may have."""


@value_class
class Turn:
    """The input of a request as JSON, and the keys of the answers that it continues, the first one's first."""

    before: tuple[str, ...]
    input: bytes

    @classmethod
    def of(cls, items: Sequence[Any], before: Sequence[str] = (), new: int | None = None) -> Turn | None:
        """Return the turn of an input with these items, the last `new` of them its own; None where it is too large."""
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
    """This process's: what waits to be written, and how much was written since the sums were last looked at."""

    _waiting: dict[Place, _Kept] = field(default_factory=dict)
    _bytes: int = 0
    _written: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _writing: threading.Lock = field(default_factory=threading.Lock)

    def keep(self, agent: str, turn: Turn | None, key: str, items: Sequence[Mapping[str, Any]]) -> None:
        """Keep the items of an answer, if they have no more than `MAX_BYTES`, and the turn that it was given to."""
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
            for name, each in kept.items():
                self._drop((agent, name))
                self._waiting[agent, name] = each
                self._bytes += len(each.data)
            while self._bytes > WAITING_BYTES:
                self._drop(next(iter(self._waiting)))

    def _drop(self, place: Place) -> None:
        found = self._waiting.pop(place, None)
        self._bytes -= len(found.data) if found else 0

    def find_conversation(self, agent: str, key: str, max_bytes: int) -> tuple[list[str], list[Any]] | None:
        """Return the keys of the answers of an agent's conversation up to that one, and all items asked and answered.

        None where one of them is not kept. Raises as `find` does.
        """
        last = self.find(agent, (INPUT + key,), max_bytes)
        if not last:
            return None
        before: list[str] = last[INPUT + key]["before"]
        wanted = {key, *before, *(INPUT + each for each in before)}
        found = self.find(agent, wanted, max_bytes) | last
        if wanted - found.keys():
            return None
        keys = [*before, key]
        return keys, [item for each in keys for item in (*found[INPUT + each]["input"], *found[each])]

    def find(self, agent: str, keys: Iterable[str], max_bytes: int) -> dict[str, Any]:
        """Return what is kept for an agent under those names: the items of answers by key, single ones by id.

        Raises `KeptTooLargeError` and what the database raises.
        """
        wanted, now = set(keys), datetime.now(UTC)
        with self._lock:
            waiting = {key: self._waiting.get((agent, key), _NOTHING) for key in wanted}
        data = {key: each.data for key, each in waiting.items() if each.ends > now}
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

    def _store(self, waiting: Mapping[Place, _Kept]) -> None:
        rows = []
        for (agent, name), each in waiting.items():
            sealed = cipher().encrypt(zlib.compress(each.data, 1))
            rows.append(
                KeptAnswer(
                    digest=_digest(agent, name),
                    owner=_owner(agent, name),
                    size=len(sealed),
                    expires_at=each.ends,
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
            for (agent, _), each in waiting.items():
                renewed = sorted(_digest(agent, name) for key in each.before for name in (key, INPUT + key))
                for some in _batches(renewed):
                    KeptAnswer.objects.filter(pk__in=some, expires_at__lt=each.ends).update(expires_at=each.ends)
        for row in rows:
            self._written.update({row.owner: row.size, "": row.size})
        for owner, size in tuple(self._written.items()):
            most = AGENT_BYTES if owner else ALL_BYTES
            if size * CHECK_SHARE > most:
                _trim(KeptAnswer.objects.filter(owner=owner) if owner else KeptAnswer.objects.all(), most)
                del self._written[owner]


def _digest(agent: str, key: str) -> str:
    return sign_lastingly(f"item_reference\n{agent}\n{key}".encode())


def _owner(agent: str, name: str) -> str:
    """Whose bytes it counts among: inputs among others than answers, for these are small and referred to by item."""
    kind = "input" if name.startswith(INPUT) else "item_reference"
    return sign_lastingly(f"{kind}\n{agent}".encode())


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


kept_answers = owned(KeptAnswers)
