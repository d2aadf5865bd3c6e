"""Each agent's storage quota: the error message, how deduplicated bytes count, and the dashboard's warning."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from artifacts.library import store_bytes
from artifacts.models import Artifact
from capabilities.actors import SYSTEM
from routing_admin.configuration import snapshot
from routing_admin.models import Installation
from tests.console.visits import response_text

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


@pytest.fixture(autouse=True)
def _quota(demo: None) -> None:
    # In these tests, each agent has a quota of 100 bytes.
    Installation.objects.update_or_create(id=1, defaults={"agent_quota_bytes": 100})


def test_agent_over_its_quota_gets_507_with_advice_and_others_can_store(text_agent: Any, vision_agent: Any) -> None:
    text_agent.stored("first.txt", b"x" * 80, "text/plain")
    answer = text_agent.upload("second.txt", b"y" * 30, "text/plain")
    assert (answer.status_code, answer.json()["error"]) == (507, "storage_full")
    for text in ("text-agent has used 80 of the 100 bytes", "Delete some of its artifacts", "in Settings"):
        assert text in answer.json()["message"]
    assert text_agent.upload("second.txt", b"y" * 20, "text/plain").status_code == 201
    assert vision_agent.upload("second.txt", b"y" * 30, "text/plain").status_code == 201
    store_bytes(SYSTEM, b"z" * 500, uploaded_by="ada")
    assert Artifact.objects.filter(owner="text-agent").count() == 2


def test_identical_files_count_once_towards_an_agents_quota(text_agent: Any) -> None:
    text_agent.stored("first.txt", b"x" * 100, "text/plain")
    assert text_agent.upload("again.txt", b"x" * 100, "text/plain").status_code == 201


def test_dashboard_warns_when_90_percent_of_a_quota_is_used(admin: Client, text_agent: Any) -> None:
    text_agent.stored("first.txt", b"x" * 80, "text/plain")
    assert "Beyond that, files are refused" not in response_text(admin.get(reverse("dashboard")))
    text_agent.stored("second.txt", b"y" * 15, "text/plain")
    Installation.objects.update(quota_bytes=1000)
    snapshot.refresh()
    store_bytes(SYSTEM, b"z" * 900, uploaded_by="ada")
    page = response_text(admin.get(reverse("dashboard")))
    assert "2 storage quotas are nearly used up" in page
    assert "95 B of 100 B stored. Beyond that, files are refused." in page


def test_settings_page_accepts_and_shows_both_quotas_in_mib(admin: Client) -> None:
    form = {"request_days": "30", "quota_bytes": "512", "agent_quota_bytes": "64", "content_policy": "extract+convert"}
    assert admin.post(reverse("settings"), form).status_code == 302
    row = Installation.objects.get()
    assert (row.quota_bytes, row.agent_quota_bytes) == (512 << 20, 64 << 20)
    assert "of 512.0 MB are used" in response_text(admin.get(reverse("settings")))
