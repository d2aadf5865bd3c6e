"""The door of the agents' API: keys, scopes, the error shape, limits, unknown calls, health."""

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
    """A signed-in administrator without a key is 401."""
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("boss"))
    assert client.get("/api/v1/services").status_code == 401


def test_both_headers_carry_a_key_and_a_revoked_one_is_none(text_agent: Any) -> None:
    """x-api-key works as well; revoking works at once."""
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
def test_a_near_miss_names_the_right_call(path: str, near: str) -> None:
    """404 in the error shape, for callers with and without a key."""
    response = Client().get(f"/api/v1{path}")
    assert response.status_code == 404
    assert near in response.json()["didYouMean"]
    assert near in response.json()["message"]


def test_a_path_like_nothing_is_told_plainly() -> None:
    """404, no guess, the way to the docs; any method, no login page."""
    for method in ("GET", "POST", "DELETE"):
        response = Client().generic(method, "/api/v1/qqqqqqqqqq/zzz")
        assert (response.status_code, response.json()["error"]) == (404, "not_found")
        assert "/api/v1/docs" in response.json()["message"]


@pytest.mark.parametrize("path", ["/services", "/artifacts/artifact:x/raw", "/config/llm-routing"])
def test_a_wrong_method_is_told_in_the_same_shape(path: str) -> None:
    """405 with what is possible, in sync and async calls alike."""
    response = Client().patch(f"/api/v1{path}")
    assert (response.status_code, response.json()["error"]) == (405, "method_not_allowed")
    assert response.json()["allowed"] == ["GET"]
    assert response["Allow"] == "GET"


def test_the_callers_request_id_comes_back(text_agent: Any) -> None:
    """A plain word is kept, in the header and in errors; anything else is replaced."""
    kept = text_agent.get("/agents/nobody", headers={"x-request-id": "my-call-1"})
    assert (kept["x-request-id"], kept.json()["requestId"]) == ("my-call-1", "my-call-1")
    replaced = text_agent.get("/agents/nobody", headers={"x-request-id": "<script>"})
    assert replaced["x-request-id"].startswith("req_")


def test_a_body_over_the_limit_is_refused_before_it_is_read(text_agent: Any) -> None:
    """413 by the announced length already."""
    response = text_agent.post("/messages/route", {}, headers={"content-length": str(10**10)})
    assert (response.status_code, response.json()["error"]) == (413, "body_too_large")


def test_a_packed_body_is_refused(text_agent: Any) -> None:
    """415: nothing is unpacked, so that a small body cannot become a large one."""
    response = text_agent.post("/messages/route", {}, headers={"content-encoding": "gzip"})
    assert (response.status_code, response.json()["error"]) == (415, "unsupported_encoding")


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"NaN", b"[" * 90_000, b'{"a":' * 80 + b"1" + b"}" * 80])
def test_what_is_no_json_is_told(body: bytes, text_agent: Any) -> None:
    """400 and a sentence; no traceback however deep it is."""
    response = text_agent.post("/messages/route", body)
    assert (response.status_code, response.json()["error"]) == (400, "invalid_json")
    assert "Traceback" not in response.content.decode()


def test_depth_is_counted_without_recursion() -> None:
    """A value is over the limit exactly when containers are nested deeper."""
    value: Any = 1
    for _ in range(64):
        value = [value]
    assert not nests_too_deeply(value)
    assert nests_too_deeply([value])


def test_every_address_of_the_api_belongs_to_machines() -> None:
    """The namespace is `agents-api`, which no login page stands before."""
    for path in ("/api/v1/services", "/api/v1/nothing", "/api/v1/docs"):
        assert "agents-api" in resolve(path).namespaces
    assert isinstance(agents_api().auth[0], AgentKeyAuth)


@pytest.mark.parametrize(
    ("path", "words"), [("/healthz", b"ok"), ("/readyz", b'"ok"'), ("/metrics", b"routing_admin_")]
)
def test_health_needs_no_key(path: str, words: bytes, demo: None) -> None:
    """200 for anybody; what is told helps no stranger."""
    response = Client().get(path)
    assert response.status_code == 200
    assert words in response.content
    assert b"example.com" not in response.content
