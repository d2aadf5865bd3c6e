"""Messages between processes through Redis streams, sent and received outside of requests.

A message is rendered when it is sent, and only the latest one per subject is sent. During an outage, messages wait
until Redis is available again. A process that starts or reconnects reads everything that the streams still contain.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from capabilities.runtime import owned
from routing_admin.platform.redis.link import RedisLink, RedisUnavailableError
from routing_admin.platform.redis.link import link as process_link

if TYPE_CHECKING:
    import redis

MAX_WAITING = 10_000
"""Maximum number of subjects with queued messages; if there are more, the oldest message is dropped."""
BATCH = 500
BLOCK_MILLISECONDS = 500
"""Maximum time that one read waits for messages, in milliseconds."""
STREAM_SECONDS = 3600
"""A stream without new messages expires after this many seconds."""
BEGINNING = "0"

Fields = Mapping[str, str]
Handler = Callable[[Fields, float], object]
"""Callback that receives a message and its age in seconds."""


@dataclass(slots=True)
class _Topic:
    key: str
    length: int
    handle: Handler
    read_to: str = BEGINNING


@dataclass(slots=True)
class News:
    """Thread-safe queue of this process's messages. `wake` is called when a message is queued.

    Without `wake`, as in management commands, messages are sent immediately.
    """

    link: RedisLink
    wake: Callable[[], object] | None = None
    own: str = field(default_factory=lambda: secrets.token_hex(8))
    _topics: dict[str, _Topic] = field(default_factory=dict)
    _waiting: dict[tuple[str, str], Callable[[], Fields]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def follow(self, topic: str, length: int, handle: Handler) -> None:
        """Subscribe to a topic, including this process's own messages; its stream keeps about `length` messages."""
        self._topics[topic] = _Topic(self.link.key("news", topic), length, handle)

    def publish(self, topic: str, subject: str, render: Callable[[], Fields]) -> None:
        """Queue a message about a subject; `render` creates it when it is sent. Without Redis, do nothing."""
        if not self.link.is_set:
            return
        with self._lock:
            self._waiting.pop((topic, subject), None)
            self._waiting[topic, subject] = render
            if len(self._waiting) > MAX_WAITING:
                del self._waiting[next(iter(self._waiting))]
        if self.wake is not None:
            self.wake()
        elif self.link.beat():
            self.send()

    def is_waiting(self, topic: str, subject: str) -> bool:
        """Return whether a message about the subject is queued.

        If so, earlier messages from other processes about the subject are obsolete.
        """
        return (topic, subject) in self._waiting

    def is_own(self, fields: Fields) -> bool:
        return fields.get("by") == self.own

    def send(self) -> None:
        """Send queued messages; they stay queued while Redis is unavailable."""
        while self._waiting:
            with self._lock:
                batch = dict(list(self._waiting.items())[:BATCH])
                for key in batch:
                    del self._waiting[key]
            try:
                self.link.ask(partial(self._write, batch))
            except RedisUnavailableError:
                with self._lock:
                    self._waiting = batch | self._waiting
                return

    def _write(self, batch: Mapping[tuple[str, str], Callable[[], Fields]], client: redis.Redis) -> None:
        with client.pipeline(transaction=False) as pipeline:
            for (name, _), render in batch.items():
                topic = self._topics[name]
                fields: dict[Any, Any] = {**render(), "by": self.own}
                pipeline.xadd(topic.key, fields, maxlen=topic.length, approximate=True)
            for name in {name for name, _ in batch}:
                pipeline.expire(self._topics[name].key, STREAM_SECONDS)
            pipeline.execute()

    def listen(self) -> bool:
        """Receive messages, waiting briefly for new ones.

        Return False during an outage or if there are no subscriptions.
        """
        if not self._topics:
            return False
        try:
            found, now = self.link.ask(self._read)
        except RedisUnavailableError:
            for topic in self._topics.values():
                # After an outage, read everything that the streams still contain.
                topic.read_to = BEGINNING
            return False
        by_key = {topic.key: topic for topic in self._topics.values()}
        for key, entries in found:
            for number, fields in entries:
                by_key[key].read_to = number
                # An entry is empty if the stream was trimmed in the meantime.
                if fields:
                    by_key[key].handle(fields, max(0.0, now - int(number.partition("-")[0]) / 1000))
        return True

    def _read(self, client: redis.Redis) -> tuple[Any, float]:
        offsets: dict[Any, Any] = {topic.key: topic.read_to for topic in self._topics.values()}
        found = client.xread(offsets, count=BATCH, block=BLOCK_MILLISECONDS)
        if not found:
            return (), 0.0
        seconds, microseconds = client.time()
        return found, int(seconds) + int(microseconds) / 1_000_000


news = owned(lambda: News(process_link()))
