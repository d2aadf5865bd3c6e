"""For calls other than chat, the request log names the operation and shows only facts that apply to it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from capabilities.core.operations.table import OPERATIONS
from routing_admin.gateway.passthrough.endpoints import OPERATION_APIS
from routing_admin.models import RequestLog
from routing_admin.request_log.operations import OPERATION_NAMES
from tests.console.page import Page

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
EXPECTED_TEXTS = {
    "en": ("Embeddings", "Tokens: 9 in", "The call was passed through unchanged"),
    "zh-hans": ("嵌入向量", "输入 9 个 Token", "调用原样透传"),
}


@pytest.fixture
def request_row(db: Any) -> RequestLog:
    row = {"id": "req_vectors", "started_at": timezone.now(), "surface": "v1/embeddings", "asked_model": "one/embed"}
    return RequestLog.objects.create(**row, outcome="ok", status=200, prompt_tokens=9)


def test_every_operation_has_a_name_that_fits_into_the_log_column() -> None:
    surfaces = {api.surface for api in OPERATION_APIS.values()}
    assert surfaces == set(OPERATION_NAMES)
    assert len(surfaces) == len(OPERATIONS)
    assert max(map(len, surfaces)) <= (RequestLog._meta.get_field("surface").max_length or 0)


@pytest.mark.parametrize("language", EXPECTED_TEXTS)
def test_request_page_names_the_operation(admin: Client, request_row: RequestLog, language: str) -> None:
    """Prefix and simulation exist only for chat, so the pages of other calls show neither."""
    admin.defaults["HTTP_ACCEPT_LANGUAGE"] = language
    page = Page(admin.get(reverse("request", args=[request_row.pk])))
    assert [text for text in EXPECTED_TEXTS[language] if not page.shows(text)] == []
    assert [text for text in ("Prefix", "前缀", "? out") if page.shows(text)] == []
    assert not any(url.startswith(f"{reverse('simulate')}?request=") for url in page.link_urls)


@pytest.mark.parametrize("language", EXPECTED_TEXTS)
def test_request_list_names_the_operation_and_finds_requests_by_surface(admin: Client, request_row, language) -> None:
    admin.defaults["HTTP_ACCEPT_LANGUAGE"] = language
    page = Page(admin.get(reverse("requests"), {"q": "surface:v1/embeddings"}))
    (row,) = page.table_rows
    assert reverse("request", args=[request_row.pk]) in row.link_urls
    assert row.shows(EXPECTED_TEXTS[language][0])
    assert not row.shows("Text only")
    assert Page(admin.get(reverse("requests"), {"q": "surface:v1/rerank"})).table_rows == []


def test_search_suggests_the_operations(admin: Client, request_row: RequestLog) -> None:
    suggestions = Page(admin.get(reverse("requests_words"), {"q": "surface:v1/"}))
    assert "surface:v1/embeddings" in [control.value for control in suggestions.controls]
