"""The fault lab's scenarios that exceed a client's timeouts or size limits do what their names say."""

from __future__ import annotations

import gzip
import http.client
import json
import zlib
from urllib.parse import urlsplit

import pytest

from tests.lab import Lab

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
STREAM = {**CHAT, "stream": True}


def open_response(lab: Lab, body: dict[str, object], timeout: float = 5) -> http.client.HTTPResponse:
    address = urlsplit(lab.url())
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=timeout)
    connection.request("POST", f"{address.path}/chat/completions", json.dumps(body))
    return connection.getresponse()


def test_gzip_bomb_is_small_on_the_wire_and_large_when_decompressed() -> None:
    """A few KiB unpack to a megabyte, which a client without a limit would hold in memory."""
    with Lab({"lab": "gzip_bomb:bytes=1048576"}) as lab:
        response = open_response(lab, CHAT)
        packed = response.read()
        assert response.headers["content-encoding"] == "gzip"
        assert len(packed) < 8192
        # A value of 31 selects the gzip format.
        assert len(zlib.decompress(packed, 31)) > 1024 * 1024


def test_gzip_scenario_sends_a_compressed_answer() -> None:
    with Lab({"lab": "gzip"}) as lab:
        assert json.loads(gzip.decompress(open_response(lab, CHAT).read()))["choices"]


def test_huge_body_scenario_sends_the_requested_size() -> None:
    with Lab({"lab": "huge_body:bytes=1048576"}) as lab:
        assert len(open_response(lab, CHAT).read()) > 1024 * 1024


@pytest.mark.parametrize("scenario", ["stall", "stall_first", "drip", "comments_forever", "comments_after", "endless"])
def test_endless_stream_ends_and_records_the_time_when_the_client_disconnects(scenario: str) -> None:
    """Endless scenarios send a head, but too little data for a complete response."""
    with Lab({"lab": f"{scenario}:seconds=0.01"}) as lab:
        response = open_response(lab, STREAM)
        assert response.status == 200
        assert response.read1(10)
        assert lab.requests[0].closed_at is None
        response.close()
        assert lab.wait_until(lambda: lab.requests[0].done)
        assert lab.requests[0].closed_at is not None


@pytest.mark.parametrize(
    ("scenario", "error"), [("reset_mid_body", ConnectionResetError), ("truncated_body", http.client.IncompleteRead)]
)
def test_cut_stream_scenario_breaks_the_connection_after_content(scenario: str, error: type[Exception]) -> None:
    with Lab({"lab": scenario}) as lab:
        response = open_response(lab, STREAM)
        received: list[bytes] = []
        with pytest.raises(error):
            received.extend(iter(response.read1, b""))
        assert b'"content": "You s"' in b"".join(received)
        assert lab.played == [scenario]


def test_lab_serves_concurrent_requests_and_reuses_connections() -> None:
    """The lab keeps its connections alive for further requests."""
    with Lab() as lab:
        address = urlsplit(lab.url())
        connection = http.client.HTTPConnection(address.hostname or "", address.port)
        for _ in range(3):
            connection.request("POST", f"{address.path}/chat/completions", json.dumps(STREAM))
            assert connection.getresponse().read().endswith(b"data: [DONE]\n\n")
        connection.close()
        assert len(lab.requests) == 3


def test_request_body_that_violates_the_protocol_is_rejected() -> None:
    with Lab() as lab:
        body = {"model": "m", "messages": [{"role": "user", "content": [{"type": "image_url"}]}]}
        assert open_response(lab, body).status == 400
