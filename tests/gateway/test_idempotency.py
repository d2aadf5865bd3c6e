"""`Idempotency-Key`: a repeated call gets the first call's outcome. A different call with the same key is refused."""

from __future__ import annotations

import gzip
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from capabilities.actors import SYSTEM
from routing_admin.console.settings.pruning import prune
from routing_admin.gateway.http import HttpCall, RequestBytes
from routing_admin.gateway.idempotency import fingerprint_call
from routing_admin.models import IdempotencyRecord, RequestLog
from routing_admin.request_log import outcomes
from routing_admin.request_log.outcomes import (
    CallOutcome,
    Claim,
    ClaimRefusal,
    ConflictingCall,
    StoredOutcome,
    claim_key,
)
from tests.cast import create_key
from tests.gateway.plane import chat_body, logged, post

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
CHAT_APIS = {
    "/v1/chat/completions": chat_body("hello"),
    "/v1/responses": {"model": "task:planning", "input": "hello"},
    "/v1/messages": {"model": "task:planning", "max_tokens": 50, "messages": [{"role": "user", "content": "hello"}]},
}
NOW = timezone.now()


def count_records() -> int:
    return IdempotencyRecord.objects.count()


@pytest.mark.parametrize("path", CHAT_APIS)
def test_replay_has_the_same_bytes_in_every_chat_api(key: str, path: str) -> None:
    """Every answer has a new id, so equal bytes show that the answer was replayed."""
    first = post(key, CHAT_APIS[path], path, **{"idempotency-key": "once"})
    replay = post(key, CHAT_APIS[path], path, **{"idempotency-key": "once"})
    assert (first.status_code, replay.status_code) == (200, 200)
    assert first.content == replay.content
    assert replay["content-type"] == first["content-type"]
    assert replay["x-routing-provider"] == first["x-routing-provider"]
    assert "x-routing-replayed" not in first
    assert replay["x-routing-replayed"] == "true"
    assert replay["x-routing-original-request-id"] == first["x-request-id"] != replay["x-request-id"]


def test_call_without_an_idempotency_key_is_not_stored(key: str) -> None:
    assert post(key, chat_body("hello")).content != post(key, chat_body("hello")).content
    assert count_records() == 0


def test_replay_is_logged_without_usage_and_attempts(key: str) -> None:
    first, replay = (post(key, chat_body("hello"), **{"idempotency-key": "k"}) for _ in range(2))
    original, row = logged(first["x-request-id"]), logged(replay["x-request-id"])
    assert (row.outcome, row.status, row.agent, row.asked_model) == ("ok", 200, "text-agent", original.asked_model)
    assert (row.prompt_tokens, row.provider, row.attempts.count()) == (None, "", 0)
    assert row.answer == {"replayOf": original.pk}
    assert [chip["code"] for chip in row.chain] == ["replay"]


@pytest.mark.parametrize(
    ("path", "place"), [("/v1/chat/completions", "error"), ("/v1/responses", "error"), ("/v1/messages", "error")]
)
def test_same_key_with_another_body_is_422_in_the_apis_error_format(key: str, path: str, place: str) -> None:
    first = post(key, CHAT_APIS[path], path, **{"idempotency-key": "k"})
    refused = post(key, {**CHAT_APIS[path], "temperature": 0.5}, path, **{"idempotency-key": "k"})
    assert refused.status_code == 422
    assert first["x-request-id"] in refused.json()[place]["message"]
    assert refused["x-should-retry"] == "false"
    assert (refused.json().get("type") == "error") == (path == "/v1/messages")


def test_same_key_in_another_api_is_422(key: str) -> None:
    post(key, CHAT_APIS["/v1/responses"], "/v1/responses", **{"idempotency-key": "k"})
    assert post(key, CHAT_APIS["/v1/responses"], **{"idempotency-key": "k"}).json()["error"]["code"] == (
        "idempotency_key_reused"
    )


def test_same_key_with_another_strict_header_is_422(key: str) -> None:
    post(key, chat_body("hello"), **{"idempotency-key": "k"})
    strict = post(key, chat_body("hello"), **{"idempotency-key": "k", "x-routing-strict": "true"})
    assert strict.status_code == 422


def test_idempotency_keys_are_separate_for_each_agent_key(key: str) -> None:
    first = post(key, chat_body("hello"), **{"idempotency-key": "k"})
    for other_key in (create_key("vision-agent"), create_key("text-agent")):
        answer = post(other_key, chat_body("hello"), **{"idempotency-key": "k"})
        assert (answer.status_code, "x-routing-replayed" in answer) == (200, False)
        assert answer.content != first.content


@pytest.mark.parametrize("idempotency_key", ["", "x" * 256, "tab\there", "naïve"])
def test_invalid_idempotency_key_is_400(key: str, idempotency_key: str) -> None:
    answer = post(key, chat_body("hello"), **{"idempotency-key": idempotency_key})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "Idempotency-Key")
    assert "1 to 255" in answer.json()["error"]["message"]
    assert logged(answer["x-request-id"]).outcome == "invalid_value"
    assert count_records() == 0


@pytest.mark.parametrize("idempotency_key", ["x" * 255, '"8e03978e-40d5-43dd-bc93-6894a57f9324"', "a key with spaces"])
def test_idempotency_key_is_used_unchanged(key: str, idempotency_key: str) -> None:
    """The quotes that the IETF draft puts around an idempotency key are part of the key."""
    post(key, chat_body("hello"), **{"idempotency-key": idempotency_key})
    assert post(key, chat_body("hello"), **{"idempotency-key": idempotency_key})["x-routing-replayed"] == "true"


def test_unauthorized_call_is_refused_before_its_idempotency_key_is_looked_up(key: str) -> None:
    post(key, chat_body("hello"), **{"idempotency-key": "k"})
    assert post("ra_wrong", chat_body("hello"), **{"idempotency-key": "k"}).status_code == 401
    narrow = create_key("text-agent", scopes=("registry:read",))
    assert post(narrow, chat_body("hello"), **{"idempotency-key": "k"}).status_code == 403
    assert count_records() == 1


def test_refusal_that_depends_only_on_the_request_is_stored(key: str) -> None:
    """A 400 depends only on the request, so it is stored. The log row of the replay has the same outcome."""
    wrong = chat_body("hello", temperature="warm")
    first = post(key, wrong, **{"idempotency-key": "k"})
    replay = post(key, wrong, **{"idempotency-key": "k"})
    assert (first.status_code, replay.status_code) == (400, 400)
    assert replay.content == first.content
    assert logged(replay["x-request-id"]).outcome == logged(first["x-request-id"]).outcome


@pytest.mark.parametrize("model", ["echo/echo-503", "unknown"])
def test_refusal_that_may_change_is_not_stored(key: str, model: str) -> None:
    """A 5xx is not stored. Neither is a 404 for a model name, because an administrator may add the name later."""
    for _ in range(2):
        answer = post(key, chat_body("hello", model=model), **{"idempotency-key": "k"})
        assert answer.status_code in (502, 503, 404)
        assert "x-routing-replayed" not in answer
    assert count_records() == 0


def test_stored_row_reveals_neither_keys_nor_body_nor_answer(key: str) -> None:
    first = post(key, chat_body("the secret word"), **{"idempotency-key": "order-4711"})
    (row,) = IdempotencyRecord.objects.all()
    columns = " ".join(str(value) for value in (row.digest, row.fingerprint, row.holder, bytes(row.ciphertext)))
    assert "secret word" in first.content.decode()
    assert not {word for word in ("secret word", "order-4711", "text-agent") if word in columns}


def test_outcome_that_cannot_be_decrypted_is_410(key: str, settings: Any) -> None:
    """The call is not made a second time."""
    post(key, chat_body("hello"), **{"idempotency-key": "k"})
    settings.ENCRYPTION_KEYS = ["A" * 43 + "="]
    answer = post(key, chat_body("hello"), **{"idempotency-key": "k"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (410, "outcome_gone")


def test_outcome_that_is_too_large_is_reported_as_not_stored(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "OUTCOME_BYTES", 10)
    first = post(key, chat_body("hello"), **{"idempotency-key": "k"})
    assert (first.status_code, first["x-routing-not-stored"]) == (200, "too_large")
    again = post(key, chat_body("hello"), **{"idempotency-key": "k"})
    assert again.status_code == 410
    assert first["x-request-id"] in again.json()["error"]["message"]


def call(body: bytes, **headers: str) -> HttpCall:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpCall("POST", "/v1/chat/completions", "", named, "", "req_1", RequestBytes(body))


def test_fingerprint_ignores_encoding_and_form_boundary() -> None:
    path, plain = "/v1/chat/completions", fingerprint_call(call(b"{}"), "/v1/chat/completions")
    assert fingerprint_call(call(gzip.compress(b"{}"), content_encoding="gzip"), path) == plain
    assert fingerprint_call(call(b"{ }"), path) != plain
    forms = {
        fingerprint_call(
            call(b"--%b\r\n\r\nx\r\n--%b--" % (boundary, boundary), content_type=f"a/b; boundary={boundary.decode()}"),
            path,
        )
        for boundary in (b"one", b"another")
    }
    assert len(forms) == 1


def claim(fingerprint: str = "f", request_id: str = "req_1", **later: float) -> Any:
    return claim_key("d", fingerprint, request_id, NOW + timedelta(**later))


def test_claim_that_was_not_renewed_can_be_taken_over() -> None:
    """A claim expires if it is not renewed for a minute. The process that held it can then neither overwrite nor
    release it.
    """
    first_claim = claim()
    assert claim(seconds=59) == ConflictingCall(ClaimRefusal.RUNNING, "req_1")
    second_claim = claim(request_id="req_2", seconds=61)
    assert isinstance(second_claim, Claim)
    assert not outcomes.renew_claim(first_claim)
    outcomes.store_outcome(first_claim, CallOutcome(200, {}, b"late"))
    outcomes.release_key(first_claim)
    outcomes.store_outcome(second_claim, CallOutcome(200, {}, b"answer"))
    outcome = claim(seconds=70)
    assert isinstance(outcome, StoredOutcome)
    assert (outcome.outcome.body, outcome.request_id) == (b"answer", "req_2")


def test_outcome_expires_after_a_day() -> None:
    outcomes.store_outcome(claim(), CallOutcome(200, {"a": "b"}, b"answer"))
    assert isinstance(claim(hours=23), StoredOutcome)
    assert isinstance(claim(hours=25), Claim)
    claim_key("other", "f", "req_3", NOW + timedelta(hours=60))
    assert list(IdempotencyRecord.objects.values_list("pk", flat=True)) == ["other"]


def test_prune_removes_expired_outcomes() -> None:
    claim()
    prune(SYSTEM, NOW + timedelta(hours=23))
    assert count_records() == 1
    prune(SYSTEM, NOW + timedelta(hours=25))
    assert count_records() == 0
    assert RequestLog.objects.count() == 0
