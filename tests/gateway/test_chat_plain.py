"""Chat completions through /v1: responses, fallback, adaptation of files to the model, and the log."""

from __future__ import annotations

import pytest

from tests.gateway.plane import chat_body, image, logged, post

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


def test_demo_chat_request_is_answered_without_provider_keys(key):
    """The demo's fallback chain of `task:planning` ends with the echo provider, which needs no key."""
    response = post(key, chat_body("Plan a picnic"))
    assert response.status_code == 200, response.content
    body = response.json()
    assert body["object"] == "chat.completion"
    assert "Plan a picnic" in body["choices"][0]["message"]["content"]
    assert body["usage"]["total_tokens"] > 0
    assert response.headers["x-routing-provider"] == "echo"
    assert response.headers["x-routing-attempts"] == "3"
    row = logged(response.headers["x-request-id"])
    assert (row.outcome, row.status, row.task_type, row.provider, row.agent) == (
        *("ok", 200, "planning", "echo"),
        "text-agent",
    )
    assert [chip["code"] for chip in row.chain] == ["key_missing", "key_missing", "200"]
    assert "picnic" not in repr(list(row.attempts.values())) + repr(row.__dict__)


def test_request_with_an_image_falls_back_to_a_vision_model(key):
    response = post(key, chat_body({"type": "text", "text": "What is this?"}, image(), model="task:design"))
    assert response.status_code == 200, response.content
    assert response.headers["x-routing-model"] == "echo-vision"
    assert response.headers["x-routing-adaptation"] == "image=native"
    row = logged(response.headers["x-request-id"])
    assert [chip["code"] for chip in row.chain] == ["503", "200"]
    first, second = row.attempts.all()
    assert second.deliveries[0]["outcome"] == "native"
    assert first.retry_attempts == 2
