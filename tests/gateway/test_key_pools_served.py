"""Several keys of one provider over real sockets. The upstream's response depends on the request's key."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.gateway.serving import Server, routing, served
from tests.lab import Lab
from tests.lab.server import key_in

KEYS = tuple(f"sk-lab-{name}-0123456789abcdef" for name in ("one", "two", "three", "four", "five"))
NAMES = ("main", "two", "three", "four", "five")


POOLS = ("dead", "dead-stream", "limited", "limited-stream", "affine", "passing", "refused")
"""One provider and one route for each test, so that the states of their keys are separate."""


def pooled(lab: Lab) -> dict[str, Any]:
    file = routing(lab)
    further_keys = [{"name": name, "apiKey": key} for name, key in zip(NAMES[1:], KEYS[1:], strict=True)]
    for name in POOLS:
        first = {"providerName": name, "apiKey": KEYS[0], "endpoint": lab.url("openai", name), "defaultModel": "lab"}
        file["providers"].append({**first, "keyName": NAMES[0], "keys": further_keys})
        file["routing"][name] = {"provider": name, "retries": 0}
    return file


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("pools"), configured=pooled) as server:
        yield server


def ask(client: openai.OpenAI, pool: str, question: str, **headers: str) -> str:
    """Request a complete response and return its request id."""
    stream = pool.endswith("-stream")
    request = {"model": f"task:{pool}", "messages": [{"role": "user", "content": question}], "extra_headers": headers}
    raw = client.chat.completions.with_raw_response.create(**request, stream=stream)
    if stream:
        text = "".join(piece.choices[0].delta.content or "" for piece in raw.parse() if piece.choices)
    else:
        text = raw.parse().choices[0].message.content
    assert question in text
    return raw.headers["x-request-id"]


def keys_used(server: Server) -> list[str]:
    return [NAMES[KEYS.index(key_in(received.headers))] for received in server.lab.requests]


@pytest.mark.parametrize("pool", ["dead", "dead-stream"])
def test_one_rejected_key_of_five_fails_no_call_and_is_logged(server, client, pool):
    server.lab.play({f"{pool}/{KEYS[2]}": 401})
    request_ids = [ask(client, pool, f"question {number}") for number in range(20)]
    used = Counter(keys_used(server))
    # One key's call was refused, and then the four other keys answered twenty calls.
    assert (used.pop("three"), sorted(used.values())) == (1, [5, 5, 5, 5])
    attempts = [server.timeline(request_id)["attempts"] for request_id in request_ids]
    assert {len(request_attempts) for request_attempts in attempts} == {1}
    tries = [
        [(entry["key"], entry["outcome"], entry["status"]) for entry in attempt["tries"]] for (attempt,) in attempts
    ]
    assert [("three", "http_401", 401), ("four", "ok", None)] in tries
    assert sum(map(len, tries)) == 21
    shown = json.dumps(attempts) + server.log
    assert not any(key in shown for key in KEYS)
    assert f"provider {pool}: key three: http_401; its next key is asked" in server.log


@pytest.mark.parametrize("pool", ["limited", "limited-stream"])
def test_rate_limited_key_is_used_again_after_its_wait(server, client, pool):
    server.lab.play({f"{pool}/{KEYS[1]}": ["http_429:retry_after=1"]})
    for number in range(5):
        ask(client, pool, f"question {number}")
    assert Counter(keys_used(server))["two"] == 1
    until = time.monotonic() + 30
    while keys_used(server).count("two") < 2 and time.monotonic() < until:
        ask(client, pool, f"another question {time.monotonic()}")
    assert keys_used(server).count("two") == 2
    assert server.lab.played.count("http_429") == 1


def test_calls_with_equal_first_messages_or_equal_affinity_use_the_same_key(server, client):
    server.lab.play({})
    for _ in range(4):
        ask(client, "affine", "the same question")
    assert len(set(keys_used(server))) == 1
    server.lab.play({})
    for number in range(4):
        ask(client, "affine", f"question {number}", **{"x-routing-affinity": "mine"})
    assert len(set(keys_used(server))) == 1


def test_embeddings_rotate_through_all_keys(server, client):
    server.lab.play({})
    for _ in range(5):
        client.embeddings.create(model="task:passing", input="hello")
    assert sorted(keys_used(server)) == sorted(NAMES)
    server.lab.play({})
    for _ in range(3):
        client.embeddings.create(
            model="task:passing", input="hello", extra_headers={"x-routing-affinity": "one caller"}
        )
    assert len(set(keys_used(server))) == 1


def test_rejection_of_every_key_returns_upstream_auth(server, client):
    server.lab.play({"refused": 401})
    with pytest.raises(openai.APIStatusError) as error:
        ask(client, "refused", "hello")
    assert (error.value.status_code, error.value.code) == (502, "upstream_auth")
    assert len(server.lab.requests) == 5
    assert not any(key in str(error.value.body) for key in KEYS)
