"""The page of script tokens. A token is created with a name, scopes and an expiry, shown once, and can be revoked."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from routing_admin.models import AdminToken, AuditEvent
from tests.cast import create_token
from tests.console.page import Page
from tests.console.visits import newest_revision

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


def make_token(admin: Client, **fields: Any) -> Any:
    return admin.post(reverse("token_new"), {"name": "deploy", "scopes": ["routes:write"], "days": 30, **fields})


def test_token_is_shown_only_after_creation(admin: Client) -> None:
    token = Page(make_token(admin)).region("Copy it now. It is shown only once.").control("issued")
    row = AdminToken.objects.get()
    assert token
    assert token.text.startswith(f"rat_{row.public_id}_")
    answer = admin.get(reverse("tokens"))
    assert Page(answer).row("deploy").code(f"rat_{row.public_id}…")
    assert f"rat_{row.public_id}_" not in answer.content.decode()
    assert (row.owner.username, row.scopes) == ("admin", ["routes:write"])
    assert abs(row.expires_at - timezone.now() - timedelta(days=30)) < timedelta(minutes=5)


@pytest.mark.parametrize(
    ("fields", "label"),
    [
        ({"name": ""}, "Name"),
        ({"name": "a/b"}, "Name"),
        ({"days": ""}, "Expires after (days)"),
        ({"days": 366}, "Expires after (days)"),
    ],
)
def test_token_requires_a_name_and_an_expiry_within_a_year(fields: dict[str, Any], label: str, admin: Client) -> None:
    answer = make_token(admin, **fields)
    assert answer.status_code == 422
    assert Page(answer).error(label)
    assert not AdminToken.objects.exists()


def test_token_requires_a_scope_and_a_unique_name(admin: Client) -> None:
    assert make_token(admin, scopes=[]).status_code == 422
    make_token(admin)
    assert "You already have a token named deploy." in Page(make_token(admin)).error("Name")
    assert AdminToken.objects.count() == 1


def test_token_form_proposes_an_expiry_of_ninety_days(admin: Client) -> None:
    field = Page(admin.get(reverse("tokens"))).field("Expires after (days)")
    assert field is not None
    assert field.value == "90"


def test_any_administrator_can_revoke_a_token(admin: Client, admin_account: User) -> None:
    create_token(admin_account, "routes:read")
    row = AdminToken.objects.get()
    for _ in range(2):
        admin.post(reverse("token_revoke", args=[row.public_id]))
    row.refresh_from_db()
    assert row.revoked_at is not None
    assert AuditEvent.objects.filter(action="token.revoke", object_name="deploy").count() == 1
    row_shown = Page(admin.get(reverse("tokens"))).row("deploy")
    assert row_shown.shows("Revoked")
    assert not row_shown.button("Revoke")


def test_token_owner_is_shown_in_the_language_of_the_reader(admin: Client, admin_account: User) -> None:
    token = create_token(admin_account, "routes:write", "providers:write")
    body = {"endpoint": "https://api.deepseek.com", "defaultModel": "deepseek-chat"}
    headers = {"authorization": f"Bearer {token}"}
    Client().put("/api/v1/admin/providers/deepseek", body, "application/json", headers=headers)
    newest = str(newest_revision())
    assert Page(admin.get(reverse("history"))).row(newest).shows("admin's token deploy")
    admin.post("/language/", {"language": "zh-hans"})
    assert Page(admin.get(reverse("history"))).row(newest).shows("admin 的")
