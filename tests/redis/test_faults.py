"""A Redis outage is reported in one sentence, without the Redis password. Once Redis works, it is used again."""

from __future__ import annotations

import logging
from typing import Any

import environ
import pytest

from routing_admin.environment import redis_url
from routing_admin.platform.redis.link import RedisLink, RedisUnavailableError
from tests.engines.redis import RedisServer, redis_running
from tests.processes import free_port, wait_until


def outage_message(url: str) -> str:
    """Return the message about this Redis server's outage, or an empty string if the server works."""
    current = RedisLink(url, "test").look()
    return str(current.sentence) if current is not None else ""


def test_unreachable_redis_address_is_reported():
    port = free_port()
    assert outage_message(f"redis://:secret@127.0.0.1:{port}") == (
        f"Redis at 127.0.0.1:{port} cannot be reached: Connection refused."
    )


def test_unresolvable_redis_host_is_reported():
    sentence = outage_message("redis://redis.invalid:6379")
    assert sentence.startswith("Redis at redis.invalid:6379 cannot be reached: ")


def test_missing_redis_socket_is_reported(tmp_path):
    assert outage_message(f"unix://{tmp_path}/redis.sock") == (
        f"Redis at {tmp_path}/redis.sock cannot be reached: No such file or directory."
    )


@pytest.mark.parametrize(
    ("options", "login", "sentence"),
    [
        (
            ["--requirepass", "secret"],
            "",
            "Redis requires a password. Add it to REDIS_URL: redis://:password@host:port.",
        ),
        (
            ["--requirepass", "secret"],
            ":wrong@",
            "Redis rejects the user name or password in REDIS_URL. Correct them there.",
        ),
        (
            ["--requirepass", "secret"],
            "who:wrong@",
            "Redis rejects the user name or password in REDIS_URL. Correct them there.",
        ),
        ([], ":needless@", "Redis rejects the user name or password in REDIS_URL. Correct them there."),
        (
            ["--replicaof", "127.0.0.1", "1"],
            "",
            "REDIS_URL points to a read-only replica. Set it to the primary server.",
        ),
        (
            ["--maxmemory", "1"],
            "",
            "Redis is out of memory. Raise its limit (maxmemory), or let it evict old keys (maxmemory-policy).",
        ),
        (
            ["--user", "weak", "on", ">secret", "~*", "+get"],
            "weak:secret@",
            "The user in REDIS_URL lacks permission for the required commands. Grant it +@all on ~routing-admin:*.",
        ),
    ],
    ids=["no password", "wrong password", "wrong user", "needless password", "replica", "full", "weak user"],
)
def test_rejection_by_redis_is_explained(tmp_path, options, login, sentence):
    with redis_running(tmp_path, *options) as server:
        assert outage_message(f"redis://{login}127.0.0.1:{server.port}") == sentence


def test_calls_to_an_unresponsive_redis_fail_immediately_until_a_heartbeat_succeeds(own_redis: RedisServer):
    link = RedisLink(own_redis.url, "test")
    assert link.beat()
    own_redis.freeze()
    with pytest.raises(RedisUnavailableError):
        link.ask(lambda client: client.get("test"))
    assert (link.is_up, str(link.outage and link.outage.sentence)) == (
        False,
        f"Redis at 127.0.0.1:{own_redis.port} did not respond in time.",
    )
    calls: list[Any] = []
    with pytest.raises(RedisUnavailableError):
        link.ask(calls.append)
    assert calls == []
    own_redis.thaw()
    wait_until(link.beat)
    assert link.outage is None


def test_redis_outage_and_recovery_are_logged_in_one_line_each(own_redis: RedisServer, caplog):
    link = RedisLink(own_redis.url.replace("redis://", "redis://:needless@"), "test")
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            link.look()
        link.set_url(own_redis.url)
        link.look()
        own_redis.kill()
        for _ in range(3):
            link.look()
        own_redis.start()
        link.look()
    lines = [record.getMessage() for record in caplog.records]
    assert [line.partition(".")[0] for line in lines] == [
        "Redis rejects the user name or password in REDIS_URL",
        "Redis at 127",
        "Redis answers again",
    ]
    assert not any("needless" in line or record.exc_info for line, record in zip(lines, caplog.records, strict=True))


@pytest.mark.parametrize(
    "url", ["127.0.0.1:6379", "http://127.0.0.1", "redis://", "redis://host:port", "redis://host/name", "unix://"]
)
def test_invalid_redis_url_stops_every_command_in_one_line(monkeypatch, url):
    """The error about an invalid `REDIS_URL` does not repeat the URL, which may contain a password."""
    monkeypatch.setenv("REDIS_URL", url)
    with pytest.raises(SystemExit) as error:
        redis_url(environ.Env())
    line = str(error.value)
    assert line.startswith("REDIS_URL is no address of Redis. Write redis://host:6379, ")
    assert ("\n" in line, url in line and url != "redis://" and url != "unix://") == (False, False)


@pytest.mark.parametrize(
    "url", ["", "redis://host", "rediss://user:password@host:6380/1", "unix:///run/redis.sock", "redis://[::1]:6379"]
)
def test_valid_or_unset_redis_url_is_used_unchanged(monkeypatch, url):
    monkeypatch.setenv("REDIS_URL", url)
    assert redis_url(environ.Env()) == url
