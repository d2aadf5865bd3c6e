"""Export of the audit log, and audit events for reading and exporting data."""

from __future__ import annotations

import csv
import json
import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from artifacts.library import store_bytes
from capabilities.actors import SYSTEM, Actor, AuditedAction
from routing_admin.configuration.audit import build_audit_entry, write_event
from routing_admin.core.audit import AuditEntry, verify_chain
from routing_admin.models import AuditEvent, RequestLog
from tests.console.page import Page

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


def read_body(answer: Any) -> str:
    return b"".join(answer.streaming_content).decode("utf-8-sig")


def list_events() -> list[tuple[str, str, str]]:
    return [(event.actor, event.action, event.object_name) for event in AuditEvent.objects.order_by("number")]


def test_exported_lines_pass_the_audit_chain_verification(admin: Client) -> None:
    write_event(Actor("person", "ada"), AuditedAction("key.issue", "agent", "文", {"scopes": ["route"]}))
    answer = admin.get(reverse("audit_export", args=["jsonl"]))
    values = [json.loads(line) for line in read_body(answer).splitlines()]
    fields = [entry.name for entry in AuditEntry.__dataclass_fields__.values()]
    entries = [AuditEntry(**dict(zip(fields, value.values(), strict=True))) for value in values]
    assert verify_chain(entries).problems == ()
    assert entries == [build_audit_entry(row) for row in AuditEvent.objects.order_by("number")]
    assert entries[-1].action == "audit.export"


def test_csv_export_applies_the_page_filters_and_escapes_formulas(admin: Client) -> None:
    for name in ("one", "=1+1"):
        write_event(Actor("person", name), AuditedAction("user.invite", "user", name))
    query = {"action": "user.invite", "actor": "=1", "since": "2020-01-01", "until": "no day"}
    rows = list(csv.DictReader(StringIO(read_body(admin.get(reverse("audit_export", args=["csv"]), query)))))
    assert [row["actor"] for row in rows] == ["'=1+1"]
    assert AuditEvent.objects.latest("number").details == {
        "form": "csv",
        "action": "user.invite",
        "actor": "=1",
        "since": "2020-01-01",
    }


def test_audit_search_finds_events_by_file_name(admin: Client) -> None:
    """The page shows a file's name, so the search must match names as well as references."""
    write_event(SYSTEM, AuditedAction("artifact.store", "artifact", "0a1b", {"filename": "计划.pdf"}))
    write_event(SYSTEM, AuditedAction("artifact.store", "artifact", "0c2d", {"size": 3}))
    for text in ("计划", "0a1"):
        assert Page(admin.get(reverse("audit"), {"object": text})).column("What") == ["计划.pdf Reference: 0a1b"]


def test_date_range_filter_includes_the_last_day(admin: Client) -> None:
    write_event(Actor("person", "ada"), AuditedAction("user.invite", "user", "eve"))
    today = str(AuditEvent.objects.get().created_at.date())
    assert Page(admin.get(reverse("audit"), {"since": today, "until": today})).column("What") == ["eve"]
    assert Page(admin.get(reverse("audit"), {"until": "2020-01-01"})).shows("Nothing matches these filters")


def test_viewer_is_offered_no_export(viewer: Client) -> None:
    assert not any("audit/export" in url for url in Page(viewer.get(reverse("audit"))).link_urls)
    assert viewer.get(reverse("audit_export", args=["csv"])).status_code == 403


def test_export_command_writes_a_private_file_and_never_overwrites_a_file(tmp_path: Path) -> None:
    write_event(Actor("person", "ada"), AuditedAction("key.issue", "agent", "one"))
    file = tmp_path / "audit.jsonl"
    call_command("audit_export", "--action", "key.issue", "--output", str(file))
    assert [json.loads(line)["objectName"] for line in file.read_text().splitlines()] == ["one"]
    assert file.stat().st_mode & 0o077 == 0
    with pytest.raises(CommandError, match="File exists"):
        call_command("audit_export", "--output", str(file))


def test_viewing_a_file_is_audited_at_most_once_per_ten_minutes(admin: Client, viewer: Client) -> None:
    row = store_bytes(SYSTEM, b"words", filename="a.txt")
    for client in (admin, admin, viewer):
        assert client.get(reverse("artifact", args=[row.pk])).status_code == 200
    admin.get(reverse("artifact_raw", args=[row.pk]))
    assert [act for act in list_events() if act[1] == "artifact.read"] == [("admin", "artifact.read", row.pk)]


def test_viewing_recorded_messages_is_audited(admin: Client, viewer: Client, demo: None) -> None:
    RequestLog.objects.create(pk="req_1", started_at=timezone.now(), body={"messages": []})
    RequestLog.objects.create(pk="req_2", started_at=timezone.now())
    for client in (admin, viewer):
        for key in ("req_1", "req_2"):
            client.get(reverse("request", args=[key]))
    assert [act for act in list_events() if act[1] == "request.read"] == [("admin", "request.read", "req_1")]


def test_configuration_export_is_audited(admin: Client, demo: None) -> None:
    admin.get(reverse("config_export", args=["llm-routing"]))
    call_command("export_config", "llmservices", "--for", "seed", stdout=StringIO(), stderr=StringIO())
    events = AuditEvent.objects.filter(action="configuration.export").order_by("number")
    found = [(event.actor_kind, event.object_name, event.details) for event in events]
    assert found == [
        ("person", "llm-routing", {"for": "full"}),
        ("command", "llmservices", {"for": "seed"}),
    ]


def test_event_details_are_listed_item_by_item_with_masked_secrets(admin: Client) -> None:
    details = {
        "key": "ra_0a1b2c3d",
        "scopes": ["route", "registry:read"],
        "expires": "2027-01-27T11:06:55+00:00",
        "size": 853,
        "on": True,
        "password": "swordfish",
        "was": [30, None],
    }
    write_event(SYSTEM, AuditedAction("key.issue", "agent", "text-agent", details))
    page = Page(admin.get("/history/audit/"))
    assert (
        "Key: ra_0a1b2c3d · Scopes: route, registry:read · Expires: 2027-01-27 11:06:55 · Size: 853 B · On: yes"
        " · password: … · was: 30, –"
    ) in page.text.replace(" UTC", "")
    chinese = Page(admin.get("/history/audit/", headers={"accept-language": "zh-hans"}))
    assert chinese.shows("密钥：ra_0a1b2c3d · 权限范围：route、registry:read")


def test_file_name_of_an_event_is_visible_on_narrow_screens(admin: Client) -> None:
    """Phones hide the columns for object, number and IP address, so the cell with the action repeats their contents."""
    write_event(SYSTEM, AuditedAction("artifact.store", "artifact", "0a1b", {"filename": "plan.pdf"}))
    controls = Page(admin.get("/history/audit/?action=artifact.store")).controls
    (narrow,) = (control for control in controls if "narrow" in (control.attributes.get("class") or "").split())
    assert re.fullmatch(r"plan\.pdf Reference: 0a1b \d+", narrow.name)
