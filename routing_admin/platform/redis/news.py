"""What processes let one another know through Redis: streams that every process writes behind its calls, and reads.

News of one subject are told as it is when they are sent, and once; what is told while Redis is away is sent when it is
back. A process that begins, or finds Redis again, reads what the streams have.
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
"""Subjects whose news wait to be sent; those that waited longest are dropped."""
BATCH = 500
BLOCK_MILLISECONDS = 500
"""How long one look waits for news."""
STREAM_SECONDS = 3600
"""How long a stream lasts that nobody writes."""
BEGINNING = "0"

Fields = Mapping[str, str]
Hear = Callable[[Fields, float], object]
"""Takes news, and how many seconds ago they were sent."""


@dataclass(slots=True)
class _Topic:
    key: str
    most: int
    hear: Hear
    read_to: str = BEGINNING


@dataclass(slots=True)
class News:
    """This process's; safe between threads.

    `wake` is called when there is something to send; in a process without rounds, as a command is, it is sent at once.
    """

    link: RedisLink
    wake: Callable[[], object] | None = None
    own: str = field(default_factory=lambda: secrets.token_hex(8))
    _topics: dict[str, _Topic] = field(default_factory=dict)
    _waiting: dict[tuple[str, str], Callable[[], Fields]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def follow(self, topic: str, most: int, hear: Hear) -> None:
        """Hears of a topic, of whose news about so many are kept; one's own come back, too."""
        self._topics[topic] = _Topic(self.link.key("news", topic), most, hear)

    def tell(self, topic: str, subject: str, render: Callable[[], Fields]) -> None:
        """Lets the others know of a subject what `render` gives when it is sent; nothing where there is no Redis."""
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
        """Whether this process has news of it that it has not sent: then what others sent before is out of date."""
        return (topic, subject) in self._waiting

    def is_own(self, fields: Fields) -> bool:
        """Whether this process sent them."""
        return fields.get("by") == self.own

    def send(self) -> None:
        """Sends what waits; what Redis does not take goes on waiting."""
        while self._waiting:
            with self._lock:
                batch = dict(list(self._waiting.items())[:BATCH])
                for each in batch:
                    del self._waiting[each]
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
                pipeline.xadd(topic.key, fields, maxlen=topic.most, approximate=True)
            for name in {name for name, _ in batch}:
                pipeline.expire(self._topics[name].key, STREAM_SECONDS)
            pipeline.execute()

    def listen(self) -> bool:
        """Hears what others sent, for which it waits a moment. False where Redis is away, or nothing is followed."""
        if not self._topics:
            return False
        try:
            found, now = self.link.ask(self._read)
        except RedisUnavailableError:
            for topic in self._topics.values():
                topic.read_to = BEGINNING
            return False
        by_key = {topic.key: topic for topic in self._topics.values()}
        for key, entries in found:
            for number, fields in entries:
                by_key[key].read_to = number
                if fields:  # none where it was dropped meanwhile
                    by_key[key].hear(fields, max(0.0, now - int(number.partition("-")[0]) / 1000))
        return True

    def _read(self, client: redis.Redis) -> tuple[Any, float]:
        places: dict[Any, Any] = {topic.key: topic.read_to for topic in self._topics.values()}
        found = client.xread(places, count=BATCH, block=BLOCK_MILLISECONDS)
        if not found:
            return (), 0.0
        seconds, microseconds = client.time()
        return found, int(seconds) + int(microseconds) / 1_000_000


news = owned(lambda: News(process_link()))
