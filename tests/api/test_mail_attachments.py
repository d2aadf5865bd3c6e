"""A mail's attachment becomes its own artifact when an agent requests it."""

from __future__ import annotations

from email.message import EmailMessage
from typing import Any

import pytest

from artifacts.models import Artifact
from routing_admin.models import Installation

pytestmark = [pytest.mark.both_stores, pytest.mark.django_db(databases=["default", "logs"])]


def mail() -> bytes:
    message, inner = EmailMessage(), EmailMessage()
    message["Subject"], inner["Subject"] = "Outer", "Inner"
    message.set_content("words")
    inner.set_content("inner words")
    message.add_attachment(b"a,b\n1,2\n", maintype="text", subtype="csv", filename="data.csv")
    message.add_attachment(inner)
    return bytes(message)


@pytest.fixture
def call(demo: None, text_agent: Any) -> Any:
    ref = text_agent.stored("mail.eml", mail(), "message/rfc822")["ref"]
    return lambda number: text_agent.post(f"/artifacts/{ref}/attachments/{number}", {})


def test_attachment_is_stored_once_with_its_name_and_type(call: Any) -> None:
    first, again = call(1), call(1)
    assert (first.status_code, again.json()["ref"]) == (201, first.json()["ref"])
    row = Artifact.objects.get(filename="data.csv")
    assert (row.size, row.mime_type, row.owner) == (8, "text/csv", "text-agent")
    assert row.metadata["attachmentOf"].startswith("artifact:")


def test_attached_mail_becomes_a_mail_artifact(call: Any) -> None:
    assert call(2).json()["mimeType"] == "message/rfc822"


def test_missing_attachment_returns_404(call: Any) -> None:
    assert (call(3).status_code, call(3).json()["error"]) == (404, "attachment_not_found")
    assert call(0).status_code == 404


def test_attachment_counts_towards_the_quota(call: Any) -> None:
    Installation.objects.update_or_create(id=1, defaults={"agent_quota_bytes": len(mail()) + 4})
    assert (call(1).status_code, Artifact.objects.count()) == (507, 1)
