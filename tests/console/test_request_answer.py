"""The page of a request shows what the provider's response contained besides text."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from artifacts.library import store_bytes
from capabilities.actors import SYSTEM
from routing_admin.models import RequestLog
from tests.console.page import Page
from tests.lab.recordings import PICTURE

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

ANSWER = {"finishReason": "length", "stopReason": "MODEL_PAUSED", "serviceTier": "flex", "systemFingerprint": "fp_7"}


@pytest.fixture
def request_row(db: Any) -> RequestLog:
    return RequestLog.objects.create(
        id="req_said",
        started_at=timezone.now(),
        surface="v1",
        outcome="ok",
        status=200,
        prompt_tokens=140,
        completion_tokens=30,
        token_details={"cachedTokens": 20, "cacheWriteTokens": 0, "reasoningTokens": 7},
        answer={**ANSWER, "stopDetails": {"type": "refusal", "category": "bio", "explanation": "It could do harm."}},
    )


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        (
            "en",
            [
                "Created by the model",
                "not stored",
                "It was stored, but has since been deleted",
                "It is hosted at another address",
            ],
        ),
        ("zh-hans", ["模型生成的内容", "未存储", "它曾被存储，现已删除或过期。", "它位于其他地址，未被下载。"]),
    ],
)
def test_request_page_links_to_generated_media_or_names_the_reason_for_their_absence(
    admin: Client, request_row: RequestLog, language: str, expected: list[str]
) -> None:
    stored = store_bytes(SYSTEM, PICTURE, filename="image.png")
    known = {"kind": "image", "mimeType": "image/png", "size": 70, "elsewhere": False}
    media = [{**known, "artifactId": stored.pk}, {**known, "artifactId": None}, {**known, "artifactId": "gone"}]
    request_row.answer = {**ANSWER, "media": [*media, {**known, "artifactId": None, "elsewhere": True}]}
    request_row.save()
    admin.defaults["HTTP_ACCEPT_LANGUAGE"] = language
    page = Page(admin.get(reverse("request", args=[request_row.pk])))
    assert reverse("artifact", args=[stored.pk]) in page.link_urls
    assert reverse("artifact_thumbnail", args=[stored.pk]) in [
        control.attributes.get("src") for control in page.controls
    ]
    assert [text for text in expected if not page.shows(text)] == []


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", ["20 read from the cache", "7 thinking", "as reported by the provider:", "service tier flex"]),
        ("zh-hans", ["读自缓存 20", "思考 7", "提供商原文：", "服务等级 flex"]),
    ],
)
def test_request_page_shows_finish_reason_and_token_details(
    admin: Client, request_row: RequestLog, language: str, expected: list[str]
) -> None:
    admin.defaults["HTTP_ACCEPT_LANGUAGE"] = language
    page = Page(admin.get(reverse("request", args=[request_row.pk])))
    texts = (*expected, "length", "MODEL_PAUSED", "bio: It could do harm.", "fp_7")
    assert [text for text in texts if not page.shows(text)] == []
    assert not page.shows("0 written")
