"""Shared caches do not store responses to agents."""

from __future__ import annotations

import pytest
from django.test import Client

KEYS = {"Authorization", "x-api-key", "api-key", "x-agent-id"}


@pytest.mark.django_db(databases=["default", "logs"])
@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("/v1/models", "private, no-store"),
        ("/v1/files", "private, no-store"),
        ("/v1/nothing", "private, no-store"),
        ("/api/v1/agents/me", "private, no-store"),
        ("/api/v1/services", "private, no-store"),
        ("/api/v1/artifacts", "private, no-store"),
        ("/api/v1/requests/none", "private, no-store"),
        ("/api/v1/config/llmservices", "private, no-cache"),
    ],
)
def test_vary_lists_every_header_that_identifies_a_key_or_an_agent(key: str, path: str, rule: str):
    """Clients may store and revalidate responses to agents, so `Vary` lists each header that changes a response."""
    for headers in ({"Authorization": f"Bearer {key}"}, {}):
        answer = Client().get(path, headers=headers)
        assert {name.strip() for name in answer["Vary"].split(",")} >= KEYS
        if answer.status_code == 200 or rule.endswith("store"):
            assert answer["Cache-Control"] == (rule if answer.status_code == 200 else "private, no-store")
