"""The alerts page: active and ended alerts, acknowledging, muting, deliveries and the test button."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.test import Client
from django.utils import timezone

from capabilities.core.translatable import translatable
from capabilities.models import StoredKey
from routing_admin.console.alerts.actions import claim_next, end_kind, record_condition, record_failed
from routing_admin.console.alerts.conditions import AlertWatch
from routing_admin.console.alerts.queries import find_webhook
from routing_admin.core.alerts.kinds import STATE, AlertKind, Condition, Stage, build_condition, spent_subject
from routing_admin.core.alerts.webhook import parse_webhook
from routing_admin.models import AuditEvent, Installation
from tests.cast import HTMX, create_token
from tests.console.page import Page
from tests.console.visits import response_text
from tests.engines.webhook import WebhookReceiver, running_receiver

pytestmark = [pytest.mark.django_db(databases=["default", "logs"]), pytest.mark.usefixtures("demo")]
SECRETS = ("swordfish", "0123456789abcdef", "SECRETSECRET")


@pytest.fixture
def receiver(settings: Any) -> Iterator[WebhookReceiver]:
    with running_receiver() as server:
        address = f"{server.base}/hook/0123456789abcdef?key=swordfish-swordfish#shape=feishu&secret=SECRETSECRET"
        settings.ALERT_WEBHOOK = parse_webhook(address)
        yield server


def test_alert_without_a_webhook_is_shown_as_not_sent(viewer: Client, settings: Any) -> None:
    record_condition(build_condition(AlertKind.KEY_REFUSED, "openai", status=401), timezone.now())
    settings.ALERT_WEBHOOK = None
    link = Page(viewer.get("/alerts/")).link("not sent: no webhook")
    assert link
    assert link.attributes["href"] == "#webhook"
    settings.ALERT_WEBHOOK = parse_webhook("https://chat.example/hook")
    assert Page(viewer.get("/alerts/")).shows("not sent yet")


def test_page_lists_open_ended_and_unsent_alerts(viewer: Client) -> None:
    now = timezone.now()
    record_condition(build_condition(AlertKind.KEY_REFUSED, "openai", status=401), now)
    claimed = claim_next(now)
    assert claimed is not None
    record_failed(claimed, "It answered with status 503: busy")
    record_condition(build_condition(AlertKind.DISK, "data directory", free=12), now)
    end_kind(AlertKind.DISK, timezone.now())
    page = Page(viewer.get("/alerts/"))
    assert page.shows("1 active alert.")
    sentence = page.link("The provider openai refuses its key (401).")
    assert sentence
    assert sentence.attributes["href"] == "/providers/openai/"
    assert page.shows("Enter a new key, then test the connection.")
    document = page.link("What to do")
    assert document
    assert document.attributes["href"] == "/docs/alerts/#key_refused"
    assert page.shows("It answered with status 503: busy")
    assert page.region("Resolved").shows("Only 12 MiB left on the data directory's disk.")
    assert "/alerts/" in Page(viewer.get("/")).link_urls
    page = Page(viewer.get("/alerts/", headers={"accept-language": "zh-CN"}))
    assert page.shows("提供商 openai 拒绝了密钥")


@pytest.mark.parametrize(
    ("holder", "url"),
    [
        ("agent:text-agent", "/agents/text-agent/"),
        ("agent:deleted", "/agents/"),
        ("key:0123abcd", "/agents/"),
        ("label:team=atlas", "/usage/budgets/"),
    ],
)
def test_limit_alert_links_to_the_page_where_the_limit_is_set(holder: str, url: str, viewer: Client) -> None:
    facts = {"name": "X", "meter": "Tokens per day"}
    warned = build_condition(AlertKind.BUDGET, f"{holder} tokensPerDay", Stage.WARNED, percent=85, **facts)
    spent = build_condition(AlertKind.BUDGET, spent_subject(f"{holder} tokensPerDay"), Stage.SPENT, **facts)
    for condition in (warned, spent):  # The second condition replaces the first, so the first alert ends.
        record_condition(condition, timezone.now())
        page = Page(viewer.get("/alerts/"))
        (link,) = [
            control for control in page.controls if control.tag == "a" and control.name.startswith("X has used ")
        ]
        assert link.attributes["href"] == url


@pytest.mark.parametrize("kind", AlertKind)
def test_every_alert_kind_links_to_an_existing_page(kind: AlertKind, admin: Client) -> None:
    record_condition(Condition(kind, "unknown", translatable("It is so."), STATE), timezone.now())
    link = Page(admin.get("/alerts/")).link("It is so.")
    assert link
    assert admin.get((link.attributes["href"] or "").partition("#")[0]).status_code == 200


def test_test_button_sends_an_alert_and_reports_success(admin: Client, receiver: WebhookReceiver) -> None:
    for headers in ({}, HTMX):
        answer = admin.post("/alerts/test/", headers=headers)
        assert answer.status_code == 200
        assert Page(answer).region("Delivery").shows("The test was delivered. Check the chat.")
    assert len(receiver.received) == 2
    assert "admin" in receiver.received[0].body["content"]["text"]
    events = AuditEvent.objects.filter(action="alert.test")
    assert [event.details["arrived"] for event in events] == [True, True]


def test_rejected_test_alert_shows_the_reason(admin: Client, receiver: WebhookReceiver) -> None:
    """Some chat services reject a message with status 200 and an error code in the body."""
    receiver.replies[:] = [(200, b'{"code": 19021, "msg": "sign match fail: SECRETSECRET"}')]
    alert = Page(admin.post("/alerts/test/")).region("Delivery").alert
    assert alert == "The test was not delivered. It answered with code 19021: sign match fail: …"


def test_page_without_a_webhook_has_a_webhook_field_and_no_test_button(admin: Client, settings: Any) -> None:
    settings.ALERT_WEBHOOK = None
    answer = admin.get("/alerts/")
    assert Page(answer).shows("Enter the address of a chat")
    assert Page(answer).button("Test") is None
    assert Page(admin.post("/alerts/test/")).shows("No webhook is set")


def test_only_administrators_can_send_tests(viewer: Client, editor: Client, receiver: WebhookReceiver) -> None:
    for person in (viewer, editor):
        assert Page(person.get("/alerts/")).button("Test") is None
        assert person.post("/alerts/test/").status_code == 403
    assert receiver.received == []


def list_actions(page: Page) -> list[str]:
    actions = (control.attributes.get("action") or "" for control in page.controls if control.tag == "form")
    return [action for action in actions if re.fullmatch(r"/alerts/\d+/\w+/", action)]


def is_counted_in_navigation(page: Page) -> bool:
    return page.region("Main").link("Alerts 1") is not None


def test_acknowledged_alert_is_not_counted_in_the_navigation_until_a_recurrence(editor: Client, viewer: Client) -> None:
    now = timezone.now()
    record_condition(build_condition(AlertKind.KEY_REFUSED, "openai", status=401), now - timedelta(hours=1))
    page = Page(editor.get("/alerts/"))
    assert is_counted_in_navigation(page)
    (path, _) = list_actions(page)
    assert list_actions(Page(viewer.get("/alerts/"))) == []
    assert viewer.post(path).status_code == 403
    page = Page(editor.post(path, follow=True))
    assert not is_counted_in_navigation(page)
    assert page.shows("acknowledged by ed")
    assert page.shows("1 of them is acknowledged or muted.")
    assert page.button("Withdraw")
    end_kind(AlertKind.KEY_REFUSED, now - timedelta(minutes=30))
    record_condition(build_condition(AlertKind.KEY_REFUSED, "openai", status=401), now)
    assert is_counted_in_navigation(Page(editor.get("/alerts/")))
    end_kind(AlertKind.KEY_REFUSED, now + timedelta(minutes=1))
    assert editor.post(path, headers={"referer": "http://testserver/alerts/"}, follow=True).status_code == 200
    assert AuditEvent.objects.filter(action="alert.acknowledge").count() == 1


def test_muted_alert_is_not_sent_until_its_mute_ends(editor: Client) -> None:
    record_condition(build_condition(AlertKind.KEY_REFUSED, "openai", status=401), timezone.now())
    (_, path) = list_actions(Page(editor.get("/alerts/")))
    assert path.endswith("/mute/")
    page = Page(editor.post(path, {"hours": "8"}, follow=True))
    assert page.shows("muted until")
    assert not is_counted_in_navigation(page)
    assert claim_next(timezone.now() + timedelta(hours=7)) is None
    claimed = claim_next(timezone.now() + timedelta(hours=9))
    assert claimed is not None
    assert claimed.subject == "openai"
    assert not Page(editor.post(path, follow=True)).shows("muted until")


def test_alerts_of_one_kind_share_a_card_that_lists_the_first_five(admin: Client) -> None:
    for number in range(7):
        record_condition(build_condition(AlertKind.KEY_REFUSED, f"provider-{number}", status=401), timezone.now())
    record_condition(build_condition(AlertKind.DISK, "data directory", free=12), timezone.now())
    page = Page(admin.get("/alerts/"))
    assert page.text.count("Enter a new key, then test the connection.") == 1
    ids = [control.attributes.get("id") for control in page.controls if control.tag == "h2"]
    assert ids.index("key_refused") < ids.index("disk")
    assert page.button("and 2 more")


def test_webhook_entered_on_the_page_is_stored_encrypted_and_never_shown(admin: Client, settings: Any) -> None:
    settings.ALERT_WEBHOOK = None
    with running_receiver() as server:
        address = f"{server.base}/hook/0123456789abcdef#shape=feishu&secret=SECRETSECRET"
        page = response_text(admin.post("/alerts/webhook/", {"address": address}, follow=True))
        assert Page(page).region("Delivery").code(server.base.removeprefix("http://"))
        assert Page(admin.post("/alerts/test/")).region("Delivery").shows("The test was delivered.")
        assert [call.path for call in server.received] == ["/hook/0123456789abcdef"]
        stored = StoredKey.objects.get(pk=Installation.current().alert_webhook_id)
        for text in (page, stored.ciphertext, stored.origin, response_text(admin.get("/history/audit/"))):
            assert not any(secret in text for secret in SECRETS)
        for unusable in ("hooks.example/SECRETSECRET", "https://a.example/x#shape=SECRETSECRET", ""):
            refused = admin.post("/alerts/webhook/", {"address": unusable})
            assert refused.status_code == 422
            assert Page(refused).error("Webhook address")
            assert "SECRETSECRET" not in response_text(refused)
        assert Installation.current().alert_webhook_id == stored.pk
        admin.post("/alerts/webhook/", {"delete": "1"})
        assert find_webhook() is None


def test_alert_watch_sends_to_the_stored_webhook(admin: Client, settings: Any) -> None:
    settings.ALERT_WEBHOOK = None
    with running_receiver() as server:
        admin.post("/alerts/webhook/", {"address": f"{server.base}/hook"})
        record_condition(build_condition(AlertKind.KEY_REFUSED, "openai", status=401), timezone.now())
        AlertWatch().round()
        assert "openai" in [call.body["subject"] for call in server.received]


def test_webhook_in_the_environment_overrides_the_stored_webhook(admin: Client, receiver: WebhookReceiver) -> None:
    page = Page(admin.post("/alerts/webhook/", {"address": "https://hooks.slack.com/services/x"}, follow=True))
    assert page.region("Delivery").shows("Set by ROUTING_ADMIN_ALERT_WEBHOOK")
    assert not page.field("Webhook address")
    webhook = find_webhook()
    assert webhook is not None
    assert webhook.host == receiver.base.removeprefix("http://")


def test_stored_webhook_that_cannot_be_decrypted_is_reported(admin: Client, settings: Any) -> None:
    settings.ALERT_WEBHOOK = None
    admin.post("/alerts/webhook/", {"address": "https://hooks.slack.com/services/x"})
    StoredKey.objects.update(ciphertext=Fernet(Fernet.generate_key()).encrypt(b"{}").decode())
    assert "The webhook cannot be read." in Page(admin.get("/alerts/")).region("Delivery").alert
    assert find_webhook() is None


def test_scripts_can_acknowledge_and_mute_alerts_and_set_the_webhook(admin_account: Any, settings: Any) -> None:
    settings.ALERT_WEBHOOK = None
    record_condition(build_condition(AlertKind.KEY_REFUSED, "deepseek", status=401), timezone.now())
    headers = {"authorization": f"Bearer {create_token(admin_account)}"}

    def call(method: str, path: str, body: Any = None) -> Any:
        url = f"/api/v1/admin/alerts{path}"
        return Client().generic(method, url, json.dumps(body), "application/json", headers=headers)

    (alert,) = call("GET", "").json()["alerts"]
    assert (alert["acknowledged"], alert["mutedUntil"]) == (None, None)
    answer = call("POST", f"/{alert['id']}/acknowledge", {}).json()["alert"]
    assert (answer["acknowledgedBy"], answer["acknowledged"] is not None) == ("admin's token deploy", True)
    withdrawn = call("POST", f"/{alert['id']}/acknowledge", {"acknowledged": False})
    assert withdrawn.json()["alert"]["acknowledged"] is None
    until = (timezone.now() + timedelta(hours=2)).isoformat()
    muted = call("POST", f"/{alert['id']}/mute", {"until": until})
    assert muted.json()["alert"]["mutedUntil"] is not None
    assert call("POST", f"/{alert['id']}/mute", {"until": "2020-01-01T00:00:00Z"}).status_code == 422
    assert call("POST", "/99999/mute", {"until": None}).status_code == 404
    put = call("PUT", "/webhook", {"address": "https://hooks.slack.com/services/swordfish"})
    assert put.json() == {"webhook": {"host": "hooks.slack.com", "shape": "slack"}}
    assert call("PUT", "/webhook", {"address": "nowhere"}).status_code == 422
    assert call("PUT", "/webhook", {"address": None}).json() == {"webhook": None}


def test_scripts_can_read_alerts_and_send_test_alerts(admin_account: Any, receiver: WebhookReceiver) -> None:
    record_condition(build_condition(AlertKind.KEY_REFUSED, "deepseek", status=401), timezone.now())
    headers = {"authorization": f"Bearer {create_token(admin_account)}"}
    answer = Client().get("/api/v1/admin/alerts", headers=headers)
    (alert,) = answer.json()["alerts"]
    assert (alert["kind"], alert["subject"], alert["ended"], alert["sent"]) == ("key_refused", "deepseek", None, None)
    assert answer.json()["webhook"] == {"host": receiver.base.removeprefix("http://"), "shape": "feishu"}
    for reply, arrived in ((200, b'{"code": 0}'), True), ((200, b'{"code": 19021, "msg": "no"}'), False):
        receiver.replies[:] = [reply]
        tested = Client().post("/api/v1/admin/alerts/test", headers=headers).json()
        assert (tested["arrived"], tested["error"] is None) == (arrived, arrived)
    assert all(secret not in answer.content.decode() for secret in SECRETS)


def test_no_page_log_or_export_contains_the_webhook_path(
    admin: Client, receiver: WebhookReceiver, caplog: Any, monkeypatch: Any
) -> None:
    monkeypatch.setenv("ROUTING_ADMIN_ALERT_WEBHOOK", f"{receiver.base}/hook/0123456789abcdef#secret=SECRETSECRET")
    receiver.replies[:] = [(500, b"swordfish-swordfish SECRETSECRET /hook/0123456789abcdef")]
    pages = [admin.post("/alerts/test/").content.decode()]
    addresses = ("/alerts/", "/settings/", "/history/audit/", "/config/export/llm-routing/")
    answers = [admin.get(address) for address in addresses]
    assert [answer.status_code for answer in answers] == [200] * 4
    pages += [b"".join(answer).decode() for answer in answers]
    assert receiver.base.removeprefix("http://") in pages[1]
    assert "Feishu" in pages[1]
    for secret in SECRETS:
        assert all(secret not in page for page in pages)
        assert secret not in caplog.text
