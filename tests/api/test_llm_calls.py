"""`/llm/send`, `/llm/resolve` and the request timeline, called directly, and the request that the demo contains."""

from __future__ import annotations

import json

import pytest
from asgiref.sync import async_to_sync
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from capabilities.access import Principal, authenticate
from capabilities.core.wire import Failure, Fault
from capabilities.models import Provider
from routing_admin.api import llm, requests
from routing_admin.api.calls import CallError
from routing_admin.configuration import snapshot
from routing_admin.console.demo.load import record_demo_request
from routing_admin.core.fallback.policy import Policy
from routing_admin.dispatch.send import process_run_context
from routing_admin.models import RequestLog
from tests.gateway.plane import PNG, logged, post

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


def request(key: str, body: object = None) -> HttpRequest:
    http_request = RequestFactory().post("/api/v1/llm/send", json.dumps(body), content_type="application/json")
    http_request.auth = authenticate({"authorization": f"Bearer {key}"})  # type: ignore[attr-defined]
    assert isinstance(http_request.auth, Principal)  # type: ignore[attr-defined]
    return http_request


def send(key: str, **body: object) -> dict:
    return json.loads(answer_to(request(key, body)).content)


def answer_to(http_request: HttpRequest) -> HttpResponse:
    return async_to_sync(llm.send)(http_request)


@pytest.mark.requirement("MMR-P6", "MMR-P11")
def test_prompt_uses_the_route_of_its_task_and_the_directive_of_its_language(key):
    answer = send(key, prompt="Plan a picnic", taskType="planning", language="en")
    assert (answer["provider"], answer["taskType"], answer["language"]) == ("echo", "planning", "en")
    assert "Please respond in English." in answer["content"]
    assert "Plan a picnic" in answer["content"]
    assert [attempt["outcome"] for attempt in answer["attempts"]] == ["key_missing", "key_missing", "ok"]


@pytest.mark.requirement("MMR-E5", "MMR-P5")
def test_prompt_without_task_and_language_uses_the_defaults(key):
    answer = send(key, prompt="Hello")
    assert (answer["taskType"], answer["language"]) == ("default", "zh")
    assert "请使用中文回答。" in answer["content"]


@pytest.mark.requirement("MMR-P9")
def test_exhausted_chain_returns_502_with_one_attempt_per_candidate(key):
    Provider.objects.filter(name="echo").update(enabled=False)
    snapshot.refresh()
    http_request = request(key, {"prompt": "Hello", "taskType": "planning"})
    response = answer_to(http_request)
    answer = json.loads(response.content)
    assert (response.status_code, answer["error"]) == (502, "all_providers_failed")
    assert [attempt["outcome"] for attempt in answer["attempts"]] == [
        *("key_missing", "key_missing"),
        "skipped_disabled",
    ]
    row = logged(http_request.request_id)
    assert (row.outcome, row.status, row.surface) == ("all_providers_failed", 502, "api")


def test_exhausted_chain_says_whether_and_when_to_retry(key):
    """If all candidates are rate limited, `Retry-After` is the shortest of their waits."""
    busy = Failure(Fault.HTTP_429, "too many requests", 429, retry_after=30.0)
    process_run_context().cooldowns.record_failure("echo", "echo-text", busy, Policy().verdict(busy))
    response = post(key, {"prompt": "Hello"}, "/api/v1/llm/send")
    assert response.status_code == 429
    assert response.headers["x-should-retry"] == "false"
    assert 1 <= int(response.headers["Retry-After"]) <= 30


def test_resolve_lists_candidates_without_calling_or_logging(key):
    answer = json.loads(llm.resolve(request(key, {"taskType": "__proto__"})).content)
    assert (answer["taskType"], answer["matched"]) == ("default", False)
    assert [(candidate["model"], candidate["outcome"]) for candidate in answer["candidates"]] == [
        ("echo-text", "ready")
    ]
    assert not RequestLog.objects.exists()


def test_attachment_is_described_for_a_text_model(key):
    from artifacts.library import store_bytes
    from capabilities.actors import SYSTEM

    row = store_bytes(SYSTEM, PNG, owner="text-agent", filename="dot.png", declared="image/png")
    answer = send(key, prompt="Look", attachments=[{"type": "image", "artifactRef": row.ref}])
    assert row.ref in answer["content"]
    assert "vision-agent" in answer["content"]
    assert answer["attempts"][-1]["adaptation"] == "image=described"
    with pytest.raises(CallError) as caught:
        send(key, prompt="Look", attachments=[{"type": "image", "artifactRef": "artifact:../x"}])
    assert (caught.value.status, caught.value.code) == (404, "artifact_not_found")


def test_missing_attachment_is_named_in_the_prompt(key):
    """The file is named even if it was deleted. If it was another agent's private file, the call returns 404."""
    from artifacts.library import delete_artifacts, store_bytes
    from capabilities.actors import SYSTEM

    row = store_bytes(SYSTEM, PNG, owner="text-agent", filename="dot.png", declared="image/png")
    hidden = store_bytes(SYSTEM, PNG, owner="vision-agent", filename="dot.png", visibility="private")
    delete_artifacts(SYSTEM, [row.pk, hidden.pk])
    answer = send(key, prompt="Look", attachments=[{"type": "image", "artifactRef": row.ref}])
    assert "[文件处理失败: dot.png]" in answer["content"]
    assert f"工件ID: {row.ref}" in answer["content"]
    assert answer["attempts"][-1]["adaptation"] == "image=described"
    with pytest.raises(CallError) as caught:
        send(key, prompt="Look", attachments=[{"type": "image", "artifactRef": hidden.ref}])
    assert (caught.value.status, caught.value.code) == (404, "artifact_not_found")


def test_agent_reads_the_timeline_of_its_own_requests_only(key):
    http_request = request(key, {"prompt": "Hello"})
    answer_to(http_request)
    answer = json.loads(requests.one_request(request(key), http_request.request_id).content)
    assert (answer["outcome"], answer["attempts"][0]["statusCode"]) == ("ok", 200)
    logged(http_request.request_id).delete()
    RequestLog.objects.create(
        id="theirs", agent="vision-agent", started_at="2026-01-01T00:00Z", surface="v1", outcome="ok"
    )
    with pytest.raises(CallError) as caught:
        requests.one_request(request(key), "theirs")
    assert caught.value.status == 404


def test_demo_request_fails_twice_and_is_answered_from_a_description(key):
    row = logged(record_demo_request() or "")
    assert [chip["code"] for chip in row.chain] == ["503", "503", "200"]
    assert [attempt.deliveries[0]["outcome"] for attempt in row.attempts.all()] == ["native", "native", "described"]
    assert (row.outcome, row.adaptation, row.model) == ("ok", "image=described", "echo-text")


def test_llm_send_and_resolve_work_over_http(key):
    sent = post(key, {"prompt": "Hello", "taskType": "planning"}, "/api/v1/llm/send")
    assert (sent.status_code, sent.json()["provider"]) == (200, "echo")
    answer = post(key, {"taskType": "planning"}, "/api/v1/llm/resolve").json()
    assert [candidate["outcome"] for candidate in answer["candidates"]] == ["key_missing", "key_missing", "ready"]
    refused = post(key, {"prompt": "Hello", "maxTokens": 0}, "/api/v1/llm/send")
    assert (refused.status_code, refused.json()["details"][0]["path"]) == (422, "maxTokens")
    Provider.objects.update(enabled=False)
    snapshot.refresh()
    failed = post(key, {"prompt": "Hello"}, "/api/v1/llm/send")
    assert (failed.status_code, failed.json()["error"], len(failed.json()["attempts"])) == (
        502,
        "all_providers_failed",
        1,
    )


def test_request_is_found_only_by_its_whole_id(text_agent):
    """A prefix of an id may match many requests."""
    for number in (1, 2):
        text_agent.post("/llm/send", {"prompt": "hello"}, headers={"x-request-id": f"req_same-{number}"})
    assert text_agent.get("/requests/req_same-1").json()["id"] == "req_same-1"
    for beginning in ("req_same-", "req", "r"):
        answer = text_agent.get(f"/requests/{beginning}")
        assert (answer.status_code, answer.json()["error"]) == (404, "request_not_found")
        assert "id" in answer.json()["message"]
