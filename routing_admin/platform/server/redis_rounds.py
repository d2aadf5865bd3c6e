"""Background threads for Redis, which check the connection and send and receive messages."""

from __future__ import annotations

import threading

from django.db import connections

from routing_admin.platform.redis.link import RedisLink
from routing_admin.platform.redis.news import News
from routing_admin.platform.server.repeating_thread import RepeatingThread

PAUSE_SECONDS = 0.3
"""Seconds between rounds if there are no messages to send."""


class RedisRounds:
    """A thread that sends messages and a thread that receives them, if Redis is configured."""

    def __init__(self, link: RedisLink, news: News) -> None:
        self._link, self._news = link, news
        self._wake, self._ends = threading.Event(), threading.Event()
        self._sender = RepeatingThread("redis", 0, self._round, connections.close_all)
        self._listener = RepeatingThread("redis-news", 0, self._listen, connections.close_all)

    def start(self) -> None:
        if self._link.is_set:
            self._ends.clear()
            self._news.wake = self._wake.set
            self._link.beat()
            self._sender.start()
            self._listener.start()

    def stop(self) -> None:
        """Send queued messages, stop the threads and close the connection."""
        self._ends.set()
        self._wake.set()
        self._sender.stop()
        self._listener.stop()
        self._news.wake = None
        self._news.send()
        self._link.close()

    def _round(self) -> None:
        try:
            self._link.beat()
            self._news.send()
        finally:
            # Wait even after an error: otherwise, the thread would repeat the round without a pause. A new message ends
            # the wait.
            if not self._ends.is_set():
                self._wake.wait(PAUSE_SECONDS)
                self._wake.clear()

    def _listen(self) -> None:
        if not self._news.listen():
            self._ends.wait(PAUSE_SECONDS)
