"""Correcting an artifact's type, encoding and visibility on its page, and reverting to the detected values."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from artifacts import library as actions
from artifacts.core.detection.encoding_names import CHOICES
from artifacts.core.detection.kinds import clean_mime
from artifacts.models import Artifact
from capabilities.actors import SYSTEM
from routing_admin.console.artifacts.forms import ENCODINGS, TYPES
from routing_admin.models import AuditEvent
from tests.cast import HTMX
from tests.console.page import Page

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

BINARY = bytes(range(256)) * 8
CHINESE = "季度报告：收入增长百分之十二，成本下降。\n" * 20


@pytest.fixture
def binary_file(demo: None) -> Artifact:
    return actions.store_bytes(SYSTEM, BINARY, filename="data.bin", owner="text-agent")


@pytest.fixture
def guessed_file(demo: None) -> Artifact:
    """A Chinese text file whose encoding was guessed wrongly."""
    row = actions.store_bytes(SYSTEM, CHINESE.encode("gb18030"), filename="notes.txt", owner="text-agent")
    Artifact.objects.filter(pk=row.pk).update(encoding="big5", encoding_certain=False)
    return row


def get_artifact_page(client: Client, row: Artifact) -> Page:
    return Page(client.get(reverse("artifact", args=[row.pk])))


def submit_corrections(client: Client, row: Artifact, query: str = "", **corrections: str) -> Any:
    """Submit the page's form with its current values except for `corrections`."""
    row.refresh_from_db()
    before = {name: getattr(row, name) for name in ("mime_type", "encoding", "visibility")}
    form = {**before, **corrections, **{f"before_{name}": value for name, value in before.items()}}
    return client.post(reverse("artifact_correct", args=[row.pk]) + query, form, headers=HTMX, follow=True)


def test_correcting_the_type_updates_the_delivery_and_is_audited(admin: Client, binary_file: Artifact) -> None:
    answer = submit_corrections(admin, binary_file, "?language=en", mime_type="text/x-thing", encoding="cp1252")
    corrected_page = Page(answer)
    assert answer.redirect_chain == [(reverse("artifact", args=[binary_file.pk]) + "?language=en", 302)]
    assert "Models receive the file as it is shown now." in answer["HX-Trigger"]
    assert (corrected_page.field("Type").value, corrected_page.is_document) == ("text/x-thing", True)
    assert corrected_page.region("The file").fact("Type used").shows("corrected")
    binary_file.refresh_from_db()
    assert (binary_file.kind, binary_file.encoding, binary_file.encoding_certain) == ("text", "cp1252", True)
    # Viewing the page is also recorded as an event.
    event = AuditEvent.objects.filter(action="artifact.correct").latest("pk")
    assert (event.actor, event.object_name) == ("admin", binary_file.pk)


def test_reset_button_restores_the_detected_values(admin: Client, binary_file: Artifact) -> None:
    assert get_artifact_page(admin, binary_file).button("Restore the detected values") is None
    submit_corrections(admin, binary_file, mime_type="text/plain")
    assert get_artifact_page(admin, binary_file).button("Restore the detected values")
    admin.post(reverse("artifact_correct", args=[binary_file.pk]), {"back": "1"})
    row = Artifact.objects.get()
    assert (row.mime_type, row.kind, row.correction) == (binary_file.mime_type, binary_file.kind, None)


def test_guessed_encoding_can_be_confirmed_or_replaced_on_the_artifact_page(
    admin: Client, guessed_file: Artifact
) -> None:
    """Confirming a guessed encoding makes it certain. Choosing another one decodes the text again."""
    assert get_artifact_page(admin, guessed_file).button("Use this encoding")
    address = reverse("artifact_correct", args=[guessed_file.pk])
    admin.post(address, {"encoding": "big5"})
    assert Artifact.objects.get().encoding_certain
    answer = admin.post(address, {"encoding": "gb18030"}, follow=True)
    assert Page(answer).button("Use this encoding") is None
    assert Page(answer).control("main").shows("季度报告：收入增长百分之十二")


def test_saving_unchanged_fields_records_no_correction(admin: Client, guessed_file: Artifact) -> None:
    submit_corrections(admin, guessed_file, visibility="private")
    row = Artifact.objects.get()
    assert (row.visibility, row.encoding_certain, row.correction) == ("private", False, None)
    before = AuditEvent.objects.count()
    assert "Nothing was changed" in submit_corrections(admin, guessed_file)["HX-Trigger"]
    assert AuditEvent.objects.count() == before


def test_invalid_correction_stays_in_the_field_with_an_error(admin: Client, binary_file: Artifact) -> None:
    answer = submit_corrections(admin, binary_file, mime_type="png")
    assert answer.status_code == 422
    assert Page(answer).error("Type").endswith("png is not a valid type. Did you mean image/png?")
    assert Page(answer).field("Type").value == "png"
    response = submit_corrections(admin, binary_file, mime_type="image/png", encoding="cp1252")
    assert "is not text" in Page(response).error("Encoding")
    assert Artifact.objects.get().correction is None


def test_user_file_can_be_hidden_from_every_agent(admin: Client, demo: None) -> None:
    row = actions.store_bytes(SYSTEM, BINARY, filename="data.bin", uploaded_by="admin")
    visibility = Page(submit_corrections(admin, row, visibility="private")).region("The file").fact("Visible to")
    assert visibility.text.startswith("no agent, only people on these pages")
    assert visibility.field("Visible to").shows("no agent, only people on these pages")


def test_correcting_to_a_lossy_encoding_shows_a_warning(admin: Client, guessed_file: Artifact) -> None:
    assert (
        Page(submit_corrections(admin, guessed_file, encoding="utf-8"))
        .region("The file")
        .shows("Some bytes are not valid")
    )


def test_viewer_sees_no_correction_form_and_cannot_correct_artifacts(viewer: Client, guessed_file: Artifact) -> None:
    viewer_page = get_artifact_page(viewer, guessed_file)
    assert [viewer_page.button(name) for name in ("Save", "Use this encoding", "Correct the type")] == [None] * 3
    assert submit_corrections(viewer, guessed_file, encoding="gb18030").status_code == 403
    assert Artifact.objects.get().encoding == "big5"


def test_all_offered_encodings_and_types_are_valid(db: None) -> None:
    assert sorted(name for _, names in ENCODINGS for name in names) == sorted(CHOICES)
    assert [name for name in TYPES if clean_mime(name) != name] == []
