"""Messages between processes arrive once and in order, even after an outage or a late subscription."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from routing_admin.platform.redis.link import RedisLink
from routing_admin.platform.redis.news import News
from tests.engines.redis import RedisServer

PREFIX = "test-news"


@dataclass
class Process:
    """A simulated process that subscribes to a topic."""

    news: News
    heard: list[str] = field(default_factory=list)

    def tell(self, text: str, subject: str = "") -> None:
        self.news.publish("topic", subject or text, lambda: {"word": text})

    def listen_until(self, *texts: str) -> None:
        until = time.monotonic() + 30
        while self.heard != list(texts):
            assert time.monotonic() < until, self.heard
            self.news.link.beat()
            self.news.listen()


@pytest.fixture
def start_process(own_redis: RedisServer) -> Callable[[], Process]:
    """Return a factory of simulated processes, each with its own connection to Redis."""

    def make() -> Process:
        link = RedisLink(own_redis.url, PREFIX)
        link.beat()
        follower = Process(News(link, wake=lambda: None))
        follower.news.follow("topic", 100, lambda fields, age: follower.heard.append(fields["word"]))
        return follower

    return make


def test_messages_are_delivered_in_order_even_to_late_subscribers(start_process):
    first, second = start_process(), start_process()
    first.tell("a")
    first.news.send()
    second.tell("b")
    second.news.send()
    for subscriber in (first, second, start_process()):
        subscriber.listen_until("a", "b")


def test_only_the_last_message_about_a_subject_is_sent(start_process):
    sender, receiver = start_process(), start_process()
    for text in ("a", "b", "c"):
        sender.tell(text, subject="same")
    sender.news.send()
    receiver.listen_until("c")


def test_message_published_during_an_outage_is_sent_after_recovery(start_process, own_redis):
    sender, receiver = start_process(), start_process()
    sender.tell("a")
    sender.news.send()
    receiver.listen_until("a")
    own_redis.kill()
    sender.tell("b")
    sender.news.send()
    assert sender.news.is_waiting("topic", "b")
    assert not receiver.news.listen()
    own_redis.start()
    sender.news.link.look()
    sender.news.send()
    receiver.listen_until("a", "b")


def test_process_without_a_background_thread_sends_messages_immediately(start_process):
    """Management commands, for example, have no background thread."""
    sender, receiver = start_process(), start_process()
    sender.news.wake = None
    sender.tell("a")
    receiver.listen_until("a")


def test_messages_are_not_queued_without_redis():
    news = News(RedisLink("", PREFIX))
    news.publish("topic", "a", dict)
    assert not news.is_waiting("topic", "a")
