"""The page of a request says what the provider said beside its words."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from routing_admin.models import RequestLog

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

ANSWER = {"finishReason": "length", "stopReason": "MODEL_PAUSED", "serviceTier": "flex", "systemFingerprint": "fp_7"}


@pytest.fixture
def request_row(db: Any) -> RequestLog:
    """An answered request of which the provider said a lot."""
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


def words_on(browser: Client, row: RequestLog) -> str:
    """The words of a request's page, white space made single."""
    body = browser.get(reverse("request", args=[row.pk])).content.decode()
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", ["20 read from the cache", "7 thinking", "the provider's own word:", "service tier flex"]),
        ("zh-hans", ["20 读自缓存", "7 思考", "提供商的原词：", "服务等级 flex"]),
    ],
)
def test_a_request_s_page_says_why_it_stopped_and_what_was_counted(
    admin: Client, request_row: RequestLog, language: str, words: list[str]
) -> None:
    """Our word and the provider's, its explanation, every sort of tokens that there was, tier, fingerprint."""
    admin.defaults["HTTP_ACCEPT_LANGUAGE"] = language
    text = words_on(admin, request_row)
    for word in (*words, "length", "MODEL_PAUSED", "bio: It could do harm.", "fp_7"):
        assert word in text
    assert "0 written" not in text
