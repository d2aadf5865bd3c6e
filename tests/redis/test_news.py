"""Messages between processes: ordered, without duplicates, delivered after an outage and to later subscribers."""

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
    """A process that follows a topic."""

    news: News
    heard: list[str] = field(default_factory=list)

    def tell(self, word: str, subject: str = "") -> None:
        self.news.publish("topic", subject or word, lambda: {"word": word})

    def listen_until(self, *words: str) -> None:
        until = time.monotonic() + 30
        while self.heard != list(words):
            assert time.monotonic() < until, self.heard
            self.news.link.beat()
            self.news.listen()


@pytest.fixture
def process(own_redis: RedisServer) -> Callable[[], Process]:
    """Return a factory of processes, each with its own link."""

    def make() -> Process:
        link = RedisLink(own_redis.url, PREFIX)
        link.beat()
        made = Process(News(link, wake=lambda: None))
        made.news.follow("topic", 100, lambda fields, age: made.heard.append(fields["word"]))
        return made

    return make


def test_news_are_heard_in_order_and_by_those_who_come_later(process):
    """Messages arrive in order at the sender, at other processes and at later subscribers."""
    one, two = process(), process()
    one.tell("a")
    one.news.send()
    two.tell("b")
    two.news.send()
    for each in (one, two, process()):
        each.listen_until("a", "b")


def test_of_one_subject_the_last_word_is_sent(process):
    """Of several waiting messages about one subject only the last is sent."""
    one, two = process(), process()
    for word in ("a", "b", "c"):
        one.tell(word, subject="same")
    one.news.send()
    two.listen_until("c")


def test_what_is_told_while_redis_is_away_is_sent_when_it_is_back(process, own_redis):
    """A message of an outage is sent afterwards, also to a subscriber whose position is from before."""
    one, two = process(), process()
    one.tell("a")
    one.news.send()
    two.listen_until("a")
    own_redis.kill()
    one.tell("b")
    one.news.send()
    assert one.news.is_waiting("topic", "b")
    assert not two.news.listen()
    own_redis.start()
    one.news.link.look()
    one.news.send()
    two.listen_until("a", "b")


def test_a_process_without_rounds_sends_at_once(process):
    """A process without a background thread, such as a command, sends at once."""
    one, two = process(), process()
    one.news.wake = None
    one.tell("a")
    two.listen_until("a")


def test_nothing_waits_where_there_is_no_redis():
    news = News(RedisLink("", PREFIX))
    news.publish("topic", "a", dict)
    assert not news.is_waiting("topic", "a")
