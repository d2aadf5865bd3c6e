"""Tests of the fault lab, a simulated provider for tests: its scenarios do what their descriptions say."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from urllib.parse import urlsplit

import pytest

from tests.lab import SCENARIOS, Lab

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def post(url: str, body: dict[str, object], timeout: float = 5) -> tuple[int, bytes]:
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=timeout)
    try:
        connection.request("POST", f"{address.path}/chat/completions", json.dumps(body))
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_scripted_steps_are_played_in_order_before_normal_answers() -> None:
    with Lab({"deepseek": [503, "http_429:retry_after=2", "say:at last"]}) as lab:
        responses = [post(lab.url("openai", "deepseek"), CHAT) for _ in range(4)]
        assert [status for status, _ in responses] == [503, 429, 200, 200]
        assert json.loads(responses[2][1])["choices"][0]["message"]["content"] == "at last"
        assert lab.played == ["http_503", "http_429", "ok", "ok"]


def test_single_step_repeats_and_a_fault_model_name_overrides_the_script() -> None:
    with Lab({"lab": "http_503"}) as lab:
        assert [post(lab.url(), CHAT)[0] for _ in range(3)] == [503] * 3
        assert post(lab.url(), {**CHAT, "model": "fault:http_500"})[0] == 500


def test_unknown_scenario_is_rejected_before_the_lab_starts() -> None:
    """A misspelt step must not be treated as a step without a fault."""
    with pytest.raises(ValueError, match="knows no scenario 'http_50'"):
        Lab({"lab": ["http_50"]})


def test_received_request_is_recorded_with_its_disconnect_time() -> None:
    with Lab({"lab": "silent"}) as lab:
        with pytest.raises(TimeoutError):
            post(lab.url(), CHAT, timeout=0.1)
        assert lab.wait_until(lambda: bool(lab.requests) and lab.requests[0].done)
        received = lab.requests[0]
        assert received.json == CHAT
        assert received.closed_at is not None
        assert received.closed_at - received.arrived_at < 2


@pytest.mark.parametrize(
    ("scenario", "error"),
    [
        ("reset_before_headers", ConnectionResetError),
        ("close_before_headers", http.client.RemoteDisconnected),
        ("truncated_body", http.client.IncompleteRead),
    ],
)
def test_connection_fault_scenario_breaks_the_connection(scenario: str, error: type[Exception]) -> None:
    with Lab({"lab": scenario}) as lab:
        with pytest.raises(error):
            post(lab.url(), CHAT)
        assert lab.played == [scenario]


def test_unreachable_lab_urls_fail_with_distinct_connection_errors() -> None:
    with Lab() as lab:
        with pytest.raises(ConnectionRefusedError):
            post(lab.broken_url("connect_refused"), CHAT)
        with pytest.raises(TimeoutError):
            post(lab.broken_url("connect_timeout"), CHAT, timeout=0.2)
        url = urlsplit(lab.broken_url("tls_cert_error"))
        address = (url.hostname or "", url.port or 0)
        context = ssl.create_default_context()
        with socket.create_connection(address) as raw, pytest.raises(ssl.SSLCertVerificationError):
            context.wrap_socket(raw, server_hostname="127.0.0.1")


def test_every_scenario_has_a_description_and_a_fault_table_row() -> None:
    for scenario in SCENARIOS.values():
        assert scenario.meaning
        assert scenario.row or (scenario.plain is None and scenario.stream is None), scenario.name
