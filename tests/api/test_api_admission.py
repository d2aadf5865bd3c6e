"""Access to the agents' API: keys, scopes, error format, limits, unknown paths and health checks."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import resolve

from capabilities.actors import SYSTEM
from capabilities.json_bodies import nests_too_deeply
from capabilities.models import AgentKey
from routing_admin.api.calls import AgentKeyAuth
from routing_admin.configuration.agents.actions import revoke_key
from routing_admin.console.api import agents_api

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


def test_browser_session_does_not_authenticate_an_agent(demo: None) -> None:
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("boss"))
    assert client.get("/api/v1/services").status_code == 401


def test_key_works_in_both_headers_until_it_is_revoked(text_agent: Any) -> None:
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
def test_misspelled_path_suggests_the_right_call(path: str, near: str) -> None:
    response = Client().get(f"/api/v1{path}")
    assert response.status_code == 404
    assert near in response.json()["didYouMean"]
    assert near in response.json()["message"]


def test_unknown_path_without_a_similar_call_returns_404() -> None:
    for method in ("GET", "POST", "DELETE"):
        response = Client().generic(method, "/api/v1/qqqqqqqqqq/zzz")
        assert (response.status_code, response.json()["error"]) == (404, "not_found")
        assert "/api/v1/docs" in response.json()["message"]


@pytest.mark.parametrize("path", ["/services", "/artifacts/artifact:x/raw", "/config/llm-routing"])
def test_wrong_method_returns_405_in_the_same_error_format(path: str) -> None:
    response = Client().patch(f"/api/v1{path}")
    assert (response.status_code, response.json()["error"]) == (405, "method_not_allowed")
    assert response.json()["allowed"] == ["GET"]
    assert response["Allow"] == "GET"


def test_valid_request_id_of_the_caller_is_returned(text_agent: Any) -> None:
    response = text_agent.get("/agents/unknown", headers={"x-request-id": "my-call-1"})
    assert (response["x-request-id"], response.json()["requestId"]) == ("my-call-1", "my-call-1")
    replaced = text_agent.get("/agents/unknown", headers={"x-request-id": "<script>"})
    assert replaced["x-request-id"].startswith("req_")


def test_body_over_the_limit_is_rejected_before_it_is_read(text_agent: Any) -> None:
    response = text_agent.post("/messages/route", {}, headers={"content-length": str(10**10)})
    assert (response.status_code, response.json()["error"]) == (413, "body_too_large")


def test_compressed_body_is_rejected(text_agent: Any) -> None:
    """Bodies are not decompressed, because a small compressed body may expand to a very large one."""
    response = text_agent.post("/messages/route", {}, headers={"content-encoding": "gzip"})
    assert (response.status_code, response.json()["error"]) == (415, "unsupported_encoding")


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"NaN", b"[" * 90_000, b'{"a":' * 80 + b"1" + b"}" * 80])
def test_invalid_json_is_rejected_no_matter_how_deeply_it_nests(body: bytes, text_agent: Any) -> None:
    response = text_agent.post("/messages/route", body)
    assert (response.status_code, response.json()["error"]) == (400, "invalid_json")
    assert "Traceback" not in response.content.decode()


def test_nesting_depth_is_counted_without_recursion() -> None:
    value: Any = 1
    for _ in range(64):
        value = [value]
    assert not nests_too_deeply(value)
    assert nests_too_deeply([value])


def test_agents_api_is_exempt_from_the_login_redirect() -> None:
    for path in ("/api/v1/services", "/api/v1/nothing", "/api/v1/docs"):
        assert "agents-api" in resolve(path).namespaces
    assert isinstance(agents_api().auth[0], AgentKeyAuth)


@pytest.mark.parametrize(
    ("path", "expected"), [("/healthz", b"ok"), ("/readyz", b'"ok"'), ("/metrics", b"routing_admin_")]
)
def test_health_check_needs_no_key(path: str, expected: bytes, demo: None) -> None:
    response = Client().get(path)
    assert response.status_code == 200
    assert expected in response.content
    assert b"example.com" not in response.content
