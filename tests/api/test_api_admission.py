"""Access to the agents' API: keys, scopes, error format, limits, unknown paths and health checks."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import resolve

from capabilities.acts import SYSTEM
from capabilities.json_bodies import nests_too_deeply
from capabilities.models import AgentKey
from routing_admin.api.calls import AgentKeyAuth
from routing_admin.configuration.agents.actions import revoke_key
from routing_admin.console.api import agents_api

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


def test_a_browser_session_means_nothing_here(demo: None) -> None:
    """A signed-in administrator without a key gets 401."""
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("boss"))
    assert client.get("/api/v1/services").status_code == 401


def test_both_headers_carry_a_key_and_a_revoked_one_is_none(text_agent: Any) -> None:
    """A key also works in the header `x-api-key`, and its revocation takes effect immediately."""
    client = Client()
    assert client.get("/api/v1/services", headers={"x-api-key": text_agent.key}).status_code == 200
    revoke_key(SYSTEM, AgentKey.objects.get(public_id=text_agent.key.split("_")[1]))
    response = client.get("/api/v1/services", headers={"x-api-key": text_agent.key})
    assert (response.status_code, response.json()["error"]) == (401, "key_invalid")


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("/service", "GET /api/v1/services"),
        ("/artefacts", "GET /api/v1/artifacts"),
        ("/files", "POST /v1/files"),
        ("/models", "GET /v1/models"),
    ],
)
def test_misspelled_path_names_the_right_call(path: str, near: str) -> None:
    """A misspelled path returns 404 in the API's format, with and without a key."""
    response = Client().get(f"/api/v1{path}")
    assert response.status_code == 404
    assert near in response.json()["didYouMean"]
    assert near in response.json()["message"]


def test_unknown_path_gives_a_plain_404() -> None:
    """An unknown path returns 404 with a link to the docs and without a suggestion, for every method."""
    for method in ("GET", "POST", "DELETE"):
        response = Client().generic(method, "/api/v1/qqqqqqqqqq/zzz")
        assert (response.status_code, response.json()["error"]) == (404, "not_found")
        assert "/api/v1/docs" in response.json()["message"]


@pytest.mark.parametrize("path", ["/services", "/artifacts/artifact:x/raw", "/config/llm-routing"])
def test_wrong_method_uses_the_same_error_shape(path: str) -> None:
    """A wrong method returns 405 with the allowed methods, in synchronous and asynchronous calls alike."""
    response = Client().patch(f"/api/v1{path}")
    assert (response.status_code, response.json()["error"]) == (405, "method_not_allowed")
    assert response.json()["allowed"] == ["GET"]
    assert response["Allow"] == "GET"


def test_the_callers_request_id_is_returned(text_agent: Any) -> None:
    """A plain request id is returned in header and errors. Any other value is replaced."""
    response = text_agent.get("/agents/unknown", headers={"x-request-id": "my-call-1"})
    assert (response["x-request-id"], response.json()["requestId"]) == ("my-call-1", "my-call-1")
    replaced = text_agent.get("/agents/unknown", headers={"x-request-id": "<script>"})
    assert replaced["x-request-id"].startswith("req_")


def test_a_body_over_the_limit_is_refused_before_it_is_read(text_agent: Any) -> None:
    """A Content-Length over the limit is rejected with 413 before the body is read."""
    response = text_agent.post("/messages/route", {}, headers={"content-length": str(10**10)})
    assert (response.status_code, response.json()["error"]) == (413, "body_too_large")


def test_a_packed_body_is_refused(text_agent: Any) -> None:
    """A compressed body is rejected with 415. Nothing is decompressed, so a small body cannot become a large one."""
    response = text_agent.post("/messages/route", {}, headers={"content-encoding": "gzip"})
    assert (response.status_code, response.json()["error"]) == (415, "unsupported_encoding")


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"NaN", b"[" * 90_000, b'{"a":' * 80 + b"1" + b"}" * 80])
def test_invalid_json_is_refused(body: bytes, text_agent: Any) -> None:
    """Invalid JSON returns 400 with a message and no traceback, no matter how deeply it nests."""
    response = text_agent.post("/messages/route", body)
    assert (response.status_code, response.json()["error"]) == (400, "invalid_json")
    assert "Traceback" not in response.content.decode()


def test_depth_is_counted_without_recursion() -> None:
    """A value is too deep exactly when its containers nest deeper than the limit."""
    value: Any = 1
    for _ in range(64):
        value = [value]
    assert not nests_too_deeply(value)
    assert nests_too_deeply([value])


def test_every_address_of_the_api_belongs_to_machines() -> None:
    """The namespace `agents-api` is exempt from the login redirect."""
    for path in ("/api/v1/services", "/api/v1/nothing", "/api/v1/docs"):
        assert "agents-api" in resolve(path).namespaces
    assert isinstance(agents_api().auth[0], AgentKeyAuth)


@pytest.mark.parametrize(
    ("path", "expected"), [("/healthz", b"ok"), ("/readyz", b'"ok"'), ("/metrics", b"routing_admin_")]
)
def test_health_needs_no_key(path: str, expected: bytes, demo: None) -> None:
    """The health check returns 200 without authentication and reveals nothing."""
    response = Client().get(path)
    assert response.status_code == 200
    assert expected in response.content
    assert b"example.com" not in response.content
