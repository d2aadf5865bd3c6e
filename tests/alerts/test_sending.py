"""Alerts of every kind are sent to chats over real sockets, in every message format, signed and without secrets."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.conf import settings
from django.db import connections
from django.utils import timezone

from capabilities.core.providers.origins import OriginPolicy
from routing_admin.console.alerts import sending
from routing_admin.console.alerts.actions import end_kind, record_condition
from routing_admin.console.alerts.queries import list_alerts
from routing_admin.console.docs.rules import document_url
from routing_admin.core.alerts.kinds import KINDS, AlertKind, build_condition
from routing_admin.core.alerts.webhook import ShapeName, parse_webhook
from routing_admin.upstream import Upstream
from tests.engines.webhook import WebhookReceiver, hmac_signature, running_receiver

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

EXTRA_FACTS: dict[str, Any] = {"server": "one", "seconds": 7, "count": 2}
FACTS: dict[str, Any] = {
    **EXTRA_FACTS,
    "status": 401,
    "percent": 80,
    "meter": "Tokens per day",
    "free": 12,
    "day": "2026-11-01",
}
SECRET_PATH = "/hook/0123456789abcdef?key=swordfish-swordfish"


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    with running_receiver() as server:
        yield server


def make_condition(kind: AlertKind, **facts: Any) -> Any:
    return build_condition(
        kind, "deepseek", next(iter(KINDS[kind].sentences)), **{**FACTS, "problem": "twice", **facts}
    )


def make_webhook(receiver: WebhookReceiver, shape: str = "json", options: str = "") -> Any:
    return parse_webhook(f"{receiver.base}{SECRET_PATH}#shape={shape}{options}")


def body_text(shape: str, body: Any) -> str:
    return str({"feishu": lambda: body["content"]["text"]}.get(shape, lambda: _text(body["text"]))())


def _text(value: Any) -> Any:
    return value["content"] if isinstance(value, dict) else value


@pytest.mark.parametrize("shape", [name.value for name in ShapeName])
def test_every_alert_kind_is_delivered_once_in_every_message_format(receiver, shape):
    now = timezone.now()
    for kind in AlertKind:
        record_condition(make_condition(kind), now)
    for minutes in range(3):
        sending.send_due(make_webhook(receiver, shape), now + timedelta(minutes=minutes))
    texts = [body_text(shape, message.body) for message in receiver.received]
    assert len(texts) == len(AlertKind)
    for kind in AlertKind:
        of_kind = [text for text in texts if settings.PUBLIC_URL + document_url(KINDS[kind].page) in text]
        assert len(of_kind) == sum(row.page == KINDS[kind].page for row in KINDS.values())
        assert all(text.startswith("[routing_admin] ") and "/alerts/" in text for text in of_kind)
    assert {message.path for message in receiver.received} == {SECRET_PATH}
    assert all(alert.sent_at and not alert.error for alert in list_alerts())


def test_plain_json_message_has_machine_readable_fields_and_text(receiver):
    now = timezone.now()
    record_condition(make_condition(AlertKind.KEY_REFUSED), now)
    sending.send_due(make_webhook(receiver), now)
    end_kind(AlertKind.KEY_REFUSED, now + timedelta(seconds=1))
    sending.send_due(make_webhook(receiver), now + timedelta(minutes=5))
    begun, ended = (message.body for message in receiver.received)
    assert (begun["event"], begun["kind"], begun["subject"]) == ("begun", "key_refused", "deepseek")
    assert (begun["severity"], begun["since"], begun["times"]) == ("critical", now.isoformat(), 1)
    assert begun["message"]["en"] == "The provider deepseek refuses its key (401)."
    assert "deepseek" in begun["message"]["zh"] != begun["message"]["en"]
    assert (ended["event"], ended["ended"]) == ("over", (now + timedelta(seconds=1)).isoformat())


def test_alert_language_depends_on_the_chat_service_unless_set_in_the_url(receiver):
    now = timezone.now()
    record_condition(make_condition(AlertKind.DISK), now)
    sending.send_due(make_webhook(receiver, "wecom"), now)
    assert "数据目录所在磁盘只剩 12 MiB" in receiver.received[0].body["text"]["content"]
    assert sending.send(make_webhook(receiver, "wecom", "&lang=en"), sending.write_test("en", "ada", now)) == ""
    assert "Test: alerts arrive here." in receiver.received[1].body["text"]["content"]


def test_webhook_requests_are_signed_as_dingtalk_and_feishu_expect(receiver):
    """DingTalk expects the signature in the URL, Feishu in the body."""
    notice = sending.write_test("en", "ada", timezone.now())
    for shape in ("dingtalk", "feishu"):
        assert sending.send(make_webhook(receiver, shape, "&secret=SEC+/0123456789=="), notice) == ""
    secret, (dingtalk, feishu) = "SEC+/0123456789==", receiver.received
    query = parse_qs(urlsplit(dingtalk.path).query)
    assert query["sign"] == [hmac_signature(secret, f"{query['timestamp'][0]}\n{secret}")]
    assert feishu.body["sign"] == hmac_signature(f"{feishu.body['timestamp']}\n{secret}", "")
    assert all(secret not in message.path + json.dumps(message.body) for message in receiver.received)


def test_rejected_notice_is_retried_without_exposing_the_webhook_url(receiver, caplog):
    caplog.set_level(logging.DEBUG)
    echo = json.dumps(
        {"errcode": 93000, "errmsg": f"invalid webhook url {receiver.base}{SECRET_PATH} secret SECRETSECRET"}
    )
    receiver.replies[:] = [(200, echo.encode()), (503, b"busy")]
    now, hook = timezone.now(), make_webhook(receiver, "dingtalk", "&secret=SECRETSECRET")
    record_condition(make_condition(AlertKind.KEY_REFUSED), now)
    errors = []
    for minutes in (0, 1, 3, 10):
        sending.send_due(hook, now + timedelta(minutes=minutes))
        errors.append(list_alerts()[0].error)
    assert "93000" in errors[0]
    assert "503" in errors[1]
    assert errors[2:] == ["", ""]
    assert len(receiver.received) == 3
    for secret in ("swordfish", "0123456789abcdef", "SECRETSECRET"):
        assert secret not in caplog.text + "".join(errors)


@pytest.mark.parametrize(
    ("base", "expected"),
    [("http://127.0.0.1:9", "nothing is listening there"), ("http://no-such-host.invalid", "does not resolve")],
)
def test_error_about_an_unreachable_chat_contains_only_its_host(base, expected):
    error = sending.send(parse_webhook(base + SECRET_PATH), sending.write_test("en", "ada", timezone.now()))
    assert expected in error
    assert "swordfish" not in error


def test_webhook_redirect_is_not_followed(receiver):
    """Following a redirect would send the alert to a host that is not configured."""
    receiver.replies[:] = [(302, b"")]
    assert "redirects are not followed" in sending.send(
        make_webhook(receiver), sending.write_test("en", "ada", timezone.now())
    )
    assert len(receiver.received) == 1


def test_webhook_forbidden_by_the_origin_policy_is_not_called(receiver, monkeypatch):
    monkeypatch.setattr(sending, "process_upstream", lambda: Upstream(OriginPolicy()))
    error = sending.send(make_webhook(receiver), sending.write_test("en", "ada", timezone.now()))
    assert "ROUTING_ADMIN_ALLOWED_ORIGINS" in error
    assert "swordfish" not in error
    assert receiver.received == []


@pytest.mark.django_db(transaction=True, databases=["default", "logs"])
def test_concurrent_senders_deliver_each_alert_once(receiver):
    now, hook = timezone.now(), make_webhook(receiver)
    for kind in AlertKind:
        record_condition(make_condition(kind), now)

    def round_of_sending(_: int) -> None:
        try:
            sending.send_due(hook, now)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(round_of_sending, range(6)))
    assert sorted(message.body["kind"] for message in receiver.received) == sorted(AlertKind)
