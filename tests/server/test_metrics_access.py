"""Access to `/metrics` is allowed to local requests and to all requests with the metrics token."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "127.8.9.1"])
def test_local_request_can_read_the_metrics(address: str) -> None:
    answer = Client(REMOTE_ADDR=address).get("/metrics")
    assert answer.status_code == 200
    assert b"routing_admin_revision" in answer.content


@pytest.mark.parametrize("address", ["10.0.0.7", "8.8.8.8", "2606:4700::1", ""])
def test_remote_request_without_the_metrics_token_returns_403_with_instructions(address: str) -> None:
    answer = Client(REMOTE_ADDR=address).get("/metrics")
    assert answer.status_code == 403
    assert b"ROUTING_ADMIN_METRICS_TOKEN" in answer.content
    assert b"routing_admin_revision" not in answer.content


@pytest.mark.parametrize(("token", "status"), [("right", 200), ("wrong", 403), ("", 403)])
def test_metrics_token_allows_access_from_any_address(settings: Any, token: str, status: int) -> None:
    settings.METRICS_TOKEN = "right"
    client = Client(REMOTE_ADDR="8.8.8.8")
    assert client.get("/metrics", headers={"authorization": f"Bearer {token}"}).status_code == status


def test_unset_metrics_token_does_not_match_an_empty_token() -> None:
    client = Client(REMOTE_ADDR="8.8.8.8")
    assert client.get("/metrics", headers={"authorization": "Bearer "}).status_code == 403


def test_requests_through_a_local_proxy_do_not_count_as_local(settings: Any) -> None:
    remote, local = {"x-forwarded-for": "8.8.8.8"}, {"x-forwarded-for": "127.0.0.1"}
    assert [Client().get("/metrics", headers=headers).status_code for headers in (remote, local)] == [403, 403]
    settings.TRUSTED_PROXIES = 1
    assert [Client().get("/metrics", headers=headers).status_code for headers in (remote, local)] == [403, 200]


def test_metric_names_are_unique() -> None:
    """Prometheus rejects a scrape with duplicate metric names."""
    text = Client(REMOTE_ADDR="127.0.0.1").get("/metrics").content.decode()
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert sorted(names) == sorted(set(names))
