"""Agents and keys in the browser."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from routing_admin.demo import load

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


@pytest.fixture
def admin() -> Client:
    load.load()
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("admin", password="x"))
    return client


@pytest.mark.parametrize(
    "address",
    ["/providers/", "/matrix/", "/services/", "/agents/", "/new/provider/", "/new/provider/?preset=deepseek", "/new/service/", "/new/agent/",
     "/providers/echo/", "/providers/echo/models/", "/services/vision-model/", "/agents/text-agent/"],
)
def test_smoke(admin: Client, address: str) -> None:
    answer = admin.get(address)
    assert answer.status_code == 200, answer.content[:500]
