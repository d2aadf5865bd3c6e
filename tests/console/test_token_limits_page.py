"""A service's page shows the token limits of its model and where they come from, in the user's language."""

from __future__ import annotations

import pytest
from django.test import Client

from capabilities.models import Provider, Service
from tests.console.page import Page

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


@pytest.fixture
def page(admin: Client) -> str:
    provider = Provider.objects.create(
        name="api.openai.com", endpoint="https://api.openai.com/v1", default_model="gpt-4o", key_source="none"
    )
    Service.objects.create(service_id="eyes", name="Eyes", provider=provider, model="gpt-4o")
    return "/services/eyes/"


def test_the_catalogues_limits_have_their_source(admin: Client, page: str):
    limits = Page(admin.get(page)).region("Limits")
    assert limits.shows("at most 128,000 tokens")
    assert limits.shows("at most 16,384 tokens")
    assert limits.shows("Catalogue: ")


def test_an_administrators_limit_replaces_only_its_counterpart_in_the_catalogue(admin: Client, page: str):
    Service.objects.filter(service_id="eyes").update(limits={"contextTokens": 32_000})
    limits = Page(admin.get(page)).region("Limits")
    assert limits.shows("at most 32,000 tokens")
    assert not limits.shows("128,000")
    assert limits.shows("at most 16,384 tokens")


def test_sources_of_limits_are_in_the_readers_language(admin: Client, page: str):
    chinese = Page(admin.get(page, headers={"accept-language": "zh-hans"}))
    assert chinese.shows("OpenAI：图片与视觉")
    assert not chinese.shows("images and vision")
