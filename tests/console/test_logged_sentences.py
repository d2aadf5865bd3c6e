"""The request log stores error messages as a code with values, called facts.

Pages render these messages in the user's language. Earlier versions stored English text, which is shown unchanged
(docs/decisions/0007).
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from django.utils import timezone, translation
from test_chinese_pages import find_english, find_english_in

from capabilities.core.delivery.obstacles import ReasonCode, make_reason
from capabilities.core.providers.redaction import summarize
from capabilities.core.translatable import Translatable, decode_text, encode_text, translatable
from capabilities.sentences import translate_sentence
from routing_admin.api.requests import timeline as render_timeline
from routing_admin.core.fallback.chain import Attempt
from routing_admin.core.fallback.errors import EXHAUSTED, REFUSED
from routing_admin.models import AttemptLog, RequestLog
from routing_admin.request_log.entries import RequestFacts, build_entry
from routing_admin.request_log.insertion import write
from routing_admin.request_log.search import find_logged_request
from routing_admin.request_log.sentences import QUOTING, RenderedSentence, logged_text, render_logged, render_sentence
from tests.console.page import Page
from tests.test_translated import literal_texts

ROOT = Path(settings.BASE_DIR)
APPS = ("capabilities", "artifacts", "routing_admin")
CARRIERS = (
    *("Failure", "ErrorBody", "MalformedEventError", "KeyUnreadableError", "ForbiddenAddressError", "bad_shape"),
    "BadRequestError",
)
"""Classes and functions that take a failure's message: `Failure` as its second parameter, the others as their first."""
pages = pytest.mark.django_db(databases=["default", "logs"])


def find_calls(*names: str) -> Iterator[ast.Call]:
    for app in APPS:
        for path in sorted((ROOT / app).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            if not any(f"{name}(" in source for name in names):
                continue
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
                    yield node


def message_arguments(call: ast.Call) -> list[ast.expr]:
    position = 1 if isinstance(call.func, ast.Name) and call.func.id == "Failure" else 0
    return [
        *call.args[position : position + 1],
        *(keyword.value for keyword in call.keywords if keyword.arg == "message"),
    ]


def string_value(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


TEMPLATES = sorted({text for call in find_calls("translatable") if call.args and (text := string_value(call.args[0]))})
"""Every message template outside the pages: all the messages that the program itself can write to the log."""


@pytest.mark.parametrize("template", TEMPLATES)
def test_logged_message_is_translated_into_chinese(template: str) -> None:
    facts = {name: f"{name}7" for name in re.findall(r"%\((\w+)\)s", template)}
    stored = json.loads(json.dumps(encode_text(Translatable(template, facts))))
    restored = decode_text(stored)
    assert isinstance(restored, Translatable)
    assert (restored, restored.template, restored.facts) == (Translatable(template, facts), template, facts)
    with translation.override("zh-hans"):
        rendered = render_sentence(restored)
        translated = translate_sentence(restored)
    assert find_english(rendered.ours) == []
    assert re.search(r"[\u3000-\u9fff\uff1a]", translated)
    assert all(fact in translated for fact in facts.values())


def test_search_for_message_templates_finds_more_than_150() -> None:
    """If no templates were found, the previous test would pass without checking anything."""
    assert len(TEMPLATES) > 150
    assert {str(sentence) for sentence in QUOTING} < set(TEMPLATES)


def test_failure_messages_are_translatable_or_quoted_from_providers() -> None:
    """A plain English string would be shown as if it were a provider's."""
    untranslated = {
        text for call in find_calls(*CARRIERS) for message in message_arguments(call) for text in literal_texts(message)
    }
    assert untranslated == set()


def test_translatable_message_equals_its_english_text_and_preserves_its_facts() -> None:
    """Commands and the API use the English text. A fact may be a list or another message."""
    message = translatable("%(path)s must be one of: %(allowed)s.", path="a.b", allowed=("x", "y"))
    assert message == "a.b must be one of: x, y."
    assert json.dumps(message) == '"a.b must be one of: x, y."'
    with translation.override("zh-hans"):
        assert translate_sentence(message) == "a.b 必须是以下之一：x、y。"
        assert translate_sentence(decode_text(encode_text(message))) == "a.b 必须是以下之一：x、y。"
        nested = translatable("%(path)s must be %(expected)s.", path="a", expected=translatable("an object"))
        assert translate_sentence(decode_text(encode_text(nested))) == "a 必须是对象。"


def test_provider_message_is_shown_unchanged_as_a_quotation() -> None:
    with translation.override("zh-hans"):
        assert render_sentence("insufficient balance") == RenderedSentence(quoted="insufficient balance")
        assert render_sentence("the model returned nothing") == RenderedSentence(quoted="the model returned nothing")
        refused = render_sentence(translatable(REFUSED, name="echo/m", said="bad temperature, sorry"))
    assert refused.quoted == "bad temperature, sorry"
    assert "拒绝了请求" in refused.ours


def test_provider_text_resembling_a_stored_message_is_not_parsed_as_a_message() -> None:
    forged = '{"code": "The provider is disabled.", "facts": {}}'
    assert encode_text(forged) == forged
    assert not isinstance(decode_text(json.loads(json.dumps(encode_text(forged)))), Translatable)


def test_masking_and_truncating_preserve_the_message_template() -> None:
    message = translatable(
        REFUSED, name="p/mm", said=translatable("got a web page: %(said)s", said="key sk-abcdef123456 " + "é" * 4000)
    )
    short = summarize(message, secrets=["p/mm"])
    assert isinstance(short, Translatable)
    assert short.template == REFUSED
    assert short.startswith("… refused the request: got a web page: key sk-… éé")
    assert 2000 < len(short.encode()) <= 2048


def test_secret_split_between_template_and_fact_is_redacted() -> None:
    assert "abcdef123456" not in summarize(translatable("api_key: %(said)s", said="abcdef123456"))


def timeline(row: RequestLog) -> dict[str, Any]:
    request = find_logged_request(row.pk)
    assert request is not None
    return render_timeline(request).model_dump(mode="json", by_alias=True)


@pages
def test_journal_stores_messages_as_code_and_facts() -> None:
    error = translatable("the body is not JSON: %(reason)s", reason=translatable("Expecting value"))
    attempts = (Attempt("a", "m", "bad_json", error=error), Attempt("b", "m", "http_402", error="余额不足"))
    final_error = translatable(EXHAUSTED, count=2, said="a/m: x; b/m: y")
    facts = RequestFacts(
        "req_data", datetime.now(UTC), "v1", outcome="all_providers_failed", status=502, error=final_error
    )
    write([build_entry(facts, attempts), build_entry(RequestFacts("req_fine", datetime.now(UTC), "v1"))])
    row = RequestLog.objects.get(pk="req_data")
    first, second = row.attempts.order_by("position")
    assert (row.error, first.error, second.error) == ("", "", "")
    assert row.sentence == {"code": str(EXHAUSTED), "facts": {"count": 2, "said": "a/m: x; b/m: y"}}
    inner = {"code": "Expecting value", "facts": {}}
    assert first.sentence == {"code": "the body is not JSON: %(reason)s", "facts": {"reason": inner}}
    assert second.sentence == "余额不足"
    answered = RequestLog.objects.get(pk="req_fine")
    assert (answered.sentence, logged_text(answered), bool(render_logged(answered))) == (None, "", False)
    answer = timeline(row)
    assert answer["error"] == "All 2 candidates failed (a/m: x; b/m: y)."
    assert [attempt["error"] for attempt in answer["attempts"]] == ["the body is not JSON: Expecting value", "余额不足"]
    assert timeline(answered)["error"] is None


ENGLISH = "All 2 candidates failed (echo/m0: boom; echo/m1: The provider is disabled.)."
NOT_SUPPORTED = "The model does not support vision."


def log_by_an_earlier_version() -> RequestLog:
    """Log a failed request as earlier versions did, with plain English in `error` and in the deliveries."""
    row = RequestLog.objects.create(
        id="req_old", started_at=timezone.now(), task_type="design", outcome="all_providers_failed", error=ENGLISH
    )
    delivery = {"kind": "image", "filename": "a.png", "shown": "described", "reason": "no_capability"}
    AttemptLog.objects.create(
        request=row,
        position=0,
        provider="echo",
        model="m0",
        outcome="skipped_disabled",
        error="The provider is disabled.",
        deliveries=[{**delivery, "sentence": NOT_SUPPORTED}],
        at=row.started_at,
    )
    return row


@pages
def test_plain_text_logged_by_an_earlier_version_is_shown_unchanged(demo: None, admin: Client) -> None:
    """The text is shown in both languages as a quotation without a source."""
    row, client = log_by_an_earlier_version(), admin
    for language in ("en", "zh-hans"):
        client.defaults["HTTP_ACCEPT_LANGUAGE"] = language
        answer = client.get(reverse("request", args=[row.pk]))
        page = Page(answer)
        assert answer.status_code == 200
        for text in (ENGLISH, "The provider is disabled.", NOT_SUPPORTED):
            quotation = page.quotation(text)
            assert quotation
            assert quotation.attributes["lang"] == "en"
        assert not [control for control in page.controls if control.attributes.get("class") == "said"]
    assert find_english_in(answer) == []


@pages
def test_api_returns_plain_text_logged_by_an_earlier_version() -> None:
    answer = timeline(log_by_an_earlier_version())
    assert answer["error"] == ENGLISH
    assert answer["attempts"][0]["error"] == "The provider is disabled."
    assert answer["attempts"][0]["deliveries"][0]["sentence"] == NOT_SUPPORTED


@pages
def test_description_reason_is_translated_on_pages_and_english_in_the_api(demo: None, admin: Client) -> None:
    row = log_by_an_earlier_version()
    attempt = row.attempts.get()
    attempt.deliveries[0]["sentence"] = encode_text(
        make_reason(ReasonCode.NO_CAPABILITY, capability="vision").sentence()
    )
    attempt.save()
    assert timeline(row)["attempts"][0]["deliveries"][0]["sentence"] == NOT_SUPPORTED
    client = admin
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "zh-hans"
    page = Page(client.get(reverse("request", args=[row.pk])))
    assert not page.shows(NOT_SUPPORTED)
    assert page.shows("vision")
