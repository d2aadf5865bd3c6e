"""A service's page shows the token limits of its model with their source, in the reader's language."""

from __future__ import annotations

import pytest
from django.test import Client

from capabilities.models import Provider, Service

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


@pytest.fixture
def page(admin: Client) -> str:
    provider = Provider.objects.create(
        name="api.openai.com", endpoint="https://api.openai.com/v1", default_model="gpt-4o", key_source="none"
    )
    Service.objects.create(service_id="eyes", name="Eyes", provider=provider, model="gpt-4o")
    return "/services/eyes/"


def test_the_catalogues_numbers_have_source_and_day(admin: Client, page: str):
    text = admin.get(page).content.decode()
    assert "at most 128,000 tokens" in text
    assert "at most 16,384 tokens" in text
    assert "Catalogue: " in text


def test_the_administrators_number_is_set_here(admin: Client, page: str):
    """An administrator's limit replaces only the corresponding limit in the catalogue."""
    Service.objects.filter(service_id="eyes").update(limits={"contextTokens": 32_000})
    text = admin.get(page).content.decode()
    assert "at most 32,000 tokens" in text
    assert "128,000" not in text
    assert "at most 16,384 tokens" in text


def test_sources_of_limits_are_in_the_readers_language(admin: Client, page: str):
    text = admin.get(page, headers={"accept-language": "zh-hans"}).content.decode()
    assert "OpenAI：图片与视觉" in text
    assert "images and vision" not in text
