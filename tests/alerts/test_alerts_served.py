"""Alerts from a server with two processes: each condition's beginning and end are reported once."""

from __future__ import annotations

import json
import os
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.engines.webhook import WebhookReceiver, running_receiver
from tests.gateway.serving import Server, served
from tests.processes import wait_until

TIMEOUT_SECONDS = 60
HELLO = json.dumps({"model": "one/lab", "messages": [{"role": "user", "content": "hello"}]}).encode()


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    with running_receiver() as started:
        yield started


@pytest.fixture
def server(tmp_path: Any, receiver: WebhookReceiver) -> Iterator[Server]:
    settings = {"ALERT_WEBHOOK": f"{receiver.base}/hook/swordfish-swordfish", "ALLOWED_ORIGINS": "*"}
    with served(tmp_path, settings=settings, options=("--workers", "2")) as started:
        yield started


def open_alerts(server: Server, kind: str) -> bool:
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=10) as answer:
        return f'routing_admin_alerts_open{{kind="{kind}"}} 1.0' in answer.read().decode()


def call(server: Server) -> None:
    try:
        server.post("/v1/chat/completions", HELLO)
    except urllib.error.HTTPError as refused:
        refused.close()


def test_two_processes_report_a_rejected_key_its_recovery_and_a_crash_once(
    server: Server, receiver: WebhookReceiver
) -> None:
    server.lab.play({"one": "http_401"})
    for _ in range(8):
        call(server)
    wait_until(lambda: bool(receiver.received), TIMEOUT_SECONDS)
    wait_until(lambda: open_alerts(server, "key_refused"), TIMEOUT_SECONDS)
    server.lab.play({})

    def is_healthy() -> bool:
        call(server)
        return not open_alerts(server, "key_refused")

    wait_until(is_healthy, TIMEOUT_SECONDS)
    assert received_alerts(receiver, "key_refused") == [("begun", "one")]
    assert "swordfish" not in server.log
    wait_until(lambda: len(child_processes(server)) == 2, TIMEOUT_SECONDS)
    victim = int(child_processes(server)[-1])
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: received_alerts(receiver, "process_crashed"), TIMEOUT_SECONDS)
    wait_until(lambda: len(child_processes(server)) == 2, TIMEOUT_SECONDS)
    server.process.terminate()
    server.process.wait(timeout=60)
    assert list((server.directory / "processes").glob("*")) == []
    kinds = [message.body["kind"] for message in receiver.received]
    assert kinds == ["key_refused", "process_crashed"]


def received_alerts(receiver: WebhookReceiver, kind: str) -> list[tuple[str, str]]:
    bodies = [message.body for message in receiver.received]
    return [(body["event"], body["subject"]) for body in bodies if body["kind"] == kind]


def child_processes(server: Server) -> list[str]:
    return [path.name.partition("-")[0] for path in (server.directory / "processes").glob("[0-9]*-*")]
