"""A service's page shows its model's token limits and their source, in the user's language."""

from __future__ import annotations

import pytest
from django.test import Client

from capabilities.models import Provider, Service
from tests.console.page import Page

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


@pytest.fixture
def service_url(admin: Client) -> str:
    provider = Provider.objects.create(
        name="api.openai.com", endpoint="https://api.openai.com/v1", default_model="gpt-4o", key_source="none"
    )
    Service.objects.create(service_id="eyes", name="Eyes", provider=provider, model="gpt-4o")
    return "/services/eyes/"


def test_catalogue_limits_are_shown_with_the_source(admin: Client, service_url: str):
    limits = Page(admin.get(service_url)).region("Limits")
    assert limits.shows("at most 128,000 tokens")
    assert limits.shows("at most 16,384 tokens")
    assert limits.shows("Catalogue: ")


def test_administrator_limit_replaces_only_the_same_catalogue_limit(admin: Client, service_url: str):
    Service.objects.filter(service_id="eyes").update(limits={"contextTokens": 32_000})
    limits = Page(admin.get(service_url)).region("Limits")
    assert limits.shows("at most 32,000 tokens")
    assert not limits.shows("128,000")
    assert limits.shows("at most 16,384 tokens")


def test_limit_sources_are_shown_in_the_language_of_the_reader(admin: Client, service_url: str):
    chinese = Page(admin.get(service_url, headers={"accept-language": "zh-hans"}))
    assert chinese.shows("OpenAI：图片与视觉")
    assert not chinese.shows("images and vision")
