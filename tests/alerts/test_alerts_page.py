"""The page of alerts: active and ended ones, their delivery, and the test of the webhook."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from capabilities.core.translatable import translatable
from routing_admin.console.alerts.actions import claim_next, end_kind, note_failed, note_trouble
from routing_admin.core.alerts.kinds import STATE, AlertKind, Condition, condition_of
from routing_admin.core.alerts.webhook import parse_webhook
from routing_admin.models import AuditEvent
from tests.cast import HTMX, token_of
from tests.console.visits import text_of
from tests.engines.webhook import Chat, running_chat

pytestmark = [pytest.mark.django_db(databases=["default", "logs"]), pytest.mark.usefixtures("demo")]
SECRETS = ("swordfish", "0123456789abcdef", "SECRETSECRET")


@pytest.fixture
def chat(settings: Any) -> Iterator[Chat]:
    with running_chat() as server:
        address = f"{server.base}/hook/0123456789abcdef?key=swordfish-swordfish#shape=feishu&secret=SECRETSECRET"
        settings.ALERT_WEBHOOK = parse_webhook(address)
        yield server


def test_page_lists_open_ended_and_unsent_alerts(viewer: Client) -> None:
    """The page shows active and ended alerts and failed deliveries, with the remedy, in the page's language."""
    now = timezone.now()
    note_trouble(condition_of(AlertKind.KEY_REFUSED, "openai", status=401), now)
    claimed = claim_next(now)
    assert claimed is not None
    note_failed(claimed, "It answered with status 503: busy")
    note_trouble(condition_of(AlertKind.DISK, "data directory", free=12), now)
    end_kind(AlertKind.DISK, timezone.now())
    answer = viewer.get("/alerts/")
    page = text_of(answer)
    assert "1 active alert." in page
    assert "The provider openai refuses its key (401)." in page
    assert "Enter a new key, then test the connection." in page
    assert 'href="/providers/openai/"' in answer.content.decode()
    assert "docs/alerts.md#key_refused" in page
    assert "It answered with status 503: busy" in page
    assert "Only 12 MiB left on the data directory&#x27;s disk." in page
    assert 'href="/alerts/"' in viewer.get("/").content.decode()
    assert "提供商 openai 拒绝了密钥" in text_of(viewer.get("/alerts/", headers={"accept-language": "zh-CN"}))


@pytest.mark.parametrize("kind", AlertKind)
def test_every_alert_kind_links_to_an_existing_page(kind: AlertKind, admin: Client) -> None:
    """Every kind of alert links to a page that exists, even if the alert's subject does not."""
    note_trouble(Condition(kind, "unknown", translatable("It is so."), STATE), timezone.now())
    link = re.search(
        r'<div class="small t2 row tight">.*?<a href="([^"#]+)', admin.get("/alerts/").content.decode(), re.DOTALL
    )
    assert link is not None
    assert admin.get(link[1]).status_code == 200


def test_test_button_sends_an_alert_and_reports_success(admin: Client, chat: Chat) -> None:
    """The button sends a test with and without scripts, and the audit log names who sent it."""
    for headers in ({}, HTMX):
        answer = admin.post("/alerts/test/", headers=headers)
        assert answer.status_code == 200
        assert "The test was delivered. Check the chat." in text_of(answer)
    assert len(chat.received) == 2
    assert "admin" in chat.received[0].body["content"]["text"]
    events = AuditEvent.objects.filter(action="alert.test")
    assert [event.details["arrived"] for event in events] == [True, True]


def test_refused_test_alert_shows_the_reason(admin: Client, chat: Chat) -> None:
    """If the chat rejects the test, its reason is shown, even from a response with status 200."""
    chat.replies[:] = [(200, b'{"code": 19021, "msg": "sign match fail: SECRETSECRET"}')]
    page = text_of(admin.post("/alerts/test/"))
    assert "The test was not delivered." in page
    assert "It answered with code 19021: sign match fail: …" in page


def test_without_a_webhook_the_page_says_how_to_set_one(admin: Client, settings: Any) -> None:
    """Without a webhook the page has no button, and the response to a POST explains how to set one."""
    settings.ALERT_WEBHOOK = None
    page = text_of(admin.get("/alerts/"))
    assert "set ROUTING_ADMIN_ALERT_WEBHOOK and restart" in page
    assert "Send a test" not in page
    assert "No webhook is set" in text_of(admin.post("/alerts/test/"))


def test_only_administrators_send_tests(viewer: Client, editor: Client, chat: Chat) -> None:
    """Only administrators can send a test; others see the page without the button."""
    for person in (viewer, editor):
        assert "Send a test" not in text_of(person.get("/alerts/"))
        assert person.post("/alerts/test/").status_code == 403
    assert chat.received == []


def test_scripts_read_alerts_and_send_tests(admin_account: Any, chat: Chat) -> None:
    """The administrators' API lists alerts and sends tests, without the webhook's secrets."""
    note_trouble(condition_of(AlertKind.KEY_REFUSED, "deepseek", status=401), timezone.now())
    headers = {"authorization": f"Bearer {token_of(admin_account)}"}
    answer = Client().get("/api/v1/admin/alerts", headers=headers)
    (alert,) = answer.json()["alerts"]
    assert (alert["kind"], alert["subject"], alert["ended"], alert["sent"]) == ("key_refused", "deepseek", None, None)
    assert answer.json()["webhook"] == {"host": chat.base.removeprefix("http://"), "shape": "feishu"}
    for reply, arrived in ((200, b'{"code": 0}'), True), ((200, b'{"code": 19021, "msg": "no"}'), False):
        chat.replies[:] = [reply]
        tested = Client().post("/api/v1/admin/alerts/test", headers=headers).json()
        assert (tested["arrived"], tested["error"] is None) == (arrived, arrived)
    assert all(secret not in answer.content.decode() for secret in SECRETS)


def test_no_page_log_or_export_has_the_address(admin: Client, chat: Chat, caplog: Any, monkeypatch: Any) -> None:
    """Pages, logs and exports show only the webhook's host and shape."""
    monkeypatch.setenv("ROUTING_ADMIN_ALERT_WEBHOOK", f"{chat.base}/hook/0123456789abcdef#secret=SECRETSECRET")
    chat.replies[:] = [(500, b"swordfish-swordfish SECRETSECRET /hook/0123456789abcdef")]
    pages = [admin.post("/alerts/test/").content.decode()]
    addresses = ("/alerts/", "/settings/", "/history/audit/", "/config/export/llm-routing/")
    answers = [admin.get(address) for address in addresses]
    assert [answer.status_code for answer in answers] == [200] * 4
    pages += [b"".join(answer).decode() for answer in answers]
    assert chat.base.removeprefix("http://") in pages[1]
    assert "Feishu" in pages[1]
    for secret in SECRETS:
        assert all(secret not in page for page in pages)
        assert secret not in caplog.text
