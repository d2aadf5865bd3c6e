"""Corrected types and encodings of artifacts override the declared and the detected ones everywhere."""

from __future__ import annotations

from encodings.aliases import aliases
from typing import Any

import pytest
from api_samples import BINARY, CHINESE, GB18030, pdf, png

from artifacts import library as actions
from artifacts.core.detection.encoding_names import canonical_encoding
from artifacts.models import Artifact
from artifacts.storage.content import byte_store
from capabilities.actors import SYSTEM
from capabilities.errors import ConflictError
from routing_admin.models import AuditEvent, Revision

pytestmark = [pytest.mark.both_stores, pytest.mark.django_db(databases=["default", "logs"])]

KOREAN = "안녕하세요. 오늘 회의는 세 시에 있습니다.\n" * 4
PAGE = "<html><body><p>Привет, это отчёт за третий квартал.</p></body></html>"


def patch(agent: Any, ref: str, **fields: Any) -> Any:
    return agent.call("PATCH", f"/artifacts/{ref}", fields)


def corrected(agent: Any, ref: str, **fields: Any) -> dict[str, Any]:
    answer = patch(agent, ref, **fields)
    assert answer.status_code == 200, answer.content
    return dict(answer.json())


def immutable_fields(artifact: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(
        artifact[name] for name in ("id", "sha256", "size", "filename", "createdAt", "owner", "detectedMimeType")
    )


def test_corrected_encoding_is_used_immediately_everywhere(text_agent: Any) -> None:
    stored = text_agent.stored("notes.txt", KOREAN.encode("cp949"), "text/plain")
    miscorrected = corrected(text_agent, stored["ref"], encoding="gb18030")
    assert (miscorrected["encoding"], miscorrected["corrected"]) == ("gb18030", {"encoding": "gb18030"})
    assert immutable_fields(miscorrected) == immutable_fields(stored)
    assert text_agent.artifact(stored["ref"])["content"] != KOREAN
    assert corrected(text_agent, stored["ref"], encoding="EUC-KR") == stored
    assert text_agent.artifact(stored["ref"])["content"] == KOREAN
    previewed = text_agent.get(f"/artifacts/{stored['ref']}/preview").json()
    assert previewed["artifact"]["encoding"] == "cp949"
    assert all(KOREAN.strip() in str(delivery["text"]) for delivery in previewed["deliveries"])
    assert text_agent.get(f"/artifacts/{stored['ref']}/raw").getvalue() == KOREAN.encode("cp949")


@pytest.mark.parametrize("name", ["text/csv", "image/jpg"])
def test_corrected_type_determines_kind_and_delivery(name: str, text_agent: Any) -> None:
    stored = text_agent.stored("data.bin", BINARY)
    assert (stored["kind"], stored["isBinary"]) == ("other", True)
    fixed = corrected(text_agent, stored["ref"], mimeType=name)
    assert (fixed["mimeType"], fixed["kind"]) == (("text/csv", "text") if "csv" in name else ("image/jpeg", "image"))
    service = {"serviceId": "vision-model"}
    assert text_agent.artifact(stored["ref"], **service)["routing"] == ("text" if "csv" in name else "image_url")
    file = text_agent.client.get(f"/v1/files/{stored['ref']}", headers=text_agent.headers).json()
    assert (file["kind"], file["mime_type"]) == (fixed["kind"], fixed["mimeType"])
    artifacts = text_agent.get("/artifacts", kind=fixed["kind"]).json()["artifacts"]
    assert [artifact["id"] for artifact in artifacts] == [stored["id"]]


def test_chat_request_uses_the_corrected_encoding(text_agent: Any) -> None:
    ref = text_agent.stored("notes.txt", KOREAN.encode("cp949"), "text/plain")["ref"]
    corrected(text_agent, ref, encoding="gb18030")
    part = {"type": "file", "file": {"file_id": ref}}
    body = {"model": "echo-text", "messages": [{"role": "user", "content": [part]}]}

    def ask_about_file() -> str:
        answer = text_agent.client.post("/v1/chat/completions", body, "application/json", headers=text_agent.headers)
        return str(answer.json()["choices"][0]["message"]["content"])

    assert "오늘 회의는" not in ask_about_file()
    corrected(text_agent, ref, encoding="euc-kr")
    assert "오늘 회의는" in ask_about_file()


def test_routed_message_without_a_type_uses_the_corrected_type(text_agent: Any) -> None:
    ref = text_agent.stored("data.bin", BINARY)["ref"]
    corrected(text_agent, ref, mimeType="application/pdf")
    body = {"message": {"text": "look", "attachments": [{"type": "file", "artifactRef": ref}]}}
    assert "application/pdf" in text_agent.post("/messages/route", body).json()["textDescription"]


def test_correction_to_a_text_type_detects_the_encoding(text_agent: Any) -> None:
    """If no encoding fits the bytes, UTF-8 is chosen and marked as uncertain."""
    row = actions.store_bytes(SYSTEM, GB18030, owner="text-agent", filename="a.txt")
    Artifact.objects.filter(pk=row.pk).update(mime_type="image/x-pcx", kind="image", is_binary=True, encoding="")
    fixed = corrected(text_agent, row.ref, mimeType="text/plain")
    assert (fixed["encoding"], fixed["encodingCertain"]) == ("gb18030", True)
    assert text_agent.artifact(row.ref)["content"] == CHINESE
    noise = text_agent.stored("data.bin", BINARY)
    fixed = corrected(text_agent, noise["ref"], mimeType="text/plain")
    assert (fixed["encoding"], fixed["encodingCertain"]) == ("utf-8", False)


def test_corrected_encoding_without_a_type_makes_a_binary_file_plain_text(text_agent: Any) -> None:
    stored = text_agent.stored("data.bin", BINARY)
    assert corrected(text_agent, stored["ref"], encoding="latin-1")["mimeType"] == "text/plain"
    image = corrected(text_agent, stored["ref"], mimeType="image/png")
    assert (image["kind"], image["corrected"], "encoding" in image) == ("image", {"mimeType": "image/png"}, False)
    assert corrected(text_agent, stored["ref"], encoding="cp1252")["corrected"] == {"encoding": "cp1252"}


def test_utf_16_without_a_bom_is_stored_with_its_byte_order(text_agent: Any) -> None:
    """Without a BOM, browsers need the byte order in the encoding's name. With a BOM, the name is stored as given."""
    without_mark, marked = (text_agent.stored("a.bin", CHINESE.encode(name))["ref"] for name in ("utf-16-le", "utf-16"))
    assert corrected(text_agent, without_mark, mimeType="text/csv", encoding="UTF-16")["encoding"] == "utf-16-le"
    assert corrected(text_agent, marked, mimeType="text/csv", encoding="UTF-16")["encoding"] == "utf-16"
    assert [text_agent.artifact(ref)["content"] for ref in (without_mark, marked)] == [CHINESE] * 2


def test_confirmed_encoding_is_no_longer_marked_as_a_guess(text_agent: Any) -> None:
    row = actions.store_bytes(SYSTEM, GB18030, owner="text-agent", filename="a.txt")
    Artifact.objects.filter(pk=row.pk).update(encoding_certain=False)
    assert corrected(text_agent, row.ref, encoding="GBK")["encodingCertain"] is True
    assert AuditEvent.objects.latest("pk").details["encodingCertain"] == {"from": False, "to": True}


def test_null_restores_the_detected_values(text_agent: Any) -> None:
    stored = text_agent.stored("report.pdf", pdf(), "application/pdf")
    corrected(text_agent, stored["ref"], mimeType="text/plain", encoding="cp1251")
    fixed = corrected(text_agent, stored["ref"], mimeType="text/markdown")
    assert fixed["corrected"] == {"mimeType": "text/markdown", "encoding": "cp1251"}
    byte_store().delete(stored["sha256"])
    assert corrected(text_agent, stored["ref"], mimeType=None, encoding=None) == stored
    before = AuditEvent.objects.count()
    assert corrected(text_agent, stored["ref"], mimeType="application/pdf", visibility="shared") == stored
    assert AuditEvent.objects.count() == before


def test_pixel_sizes_exist_only_for_images(text_agent: Any) -> None:
    stored = text_agent.stored("photo.png", png(), "image/png")
    assert (stored["width"], stored["height"]) == (3, 2)
    assert "width" not in corrected(text_agent, stored["ref"], mimeType="application/x-thing")
    assert corrected(text_agent, stored["ref"], mimeType=None)["width"] == 3


def test_web_page_is_extracted_again_in_its_corrected_encoding(text_agent: Any) -> None:
    stored = text_agent.stored("page.html", PAGE.encode("koi8-r"), "text/html")
    before = text_agent.get(f"/artifacts/{stored['ref']}/preview").json()
    corrected(text_agent, stored["ref"], encoding="koi8-u" if stored["encoding"] == "koi8-r" else "koi8-r")
    corrected(text_agent, stored["ref"], encoding="cp1251")
    after = text_agent.get(f"/artifacts/{stored['ref']}/preview").json()
    assert "Привет" in str(before["deliveries"])
    assert "Привет" not in str(after["deliveries"])
    corrected(text_agent, stored["ref"], encoding="koi8-r")
    assert "Привет" in str(text_agent.get(f"/artifacts/{stored['ref']}/preview").json()["deliveries"])


def test_lossy_encoding_is_accepted_and_marked(text_agent: Any) -> None:
    """An encoding that does not fit all bytes is accepted, because the file may be truncated."""
    stored = text_agent.stored("notes.txt", CHINESE.encode()[:-2], "text/plain; charset=latin-1")
    fixed = corrected(text_agent, stored["ref"], encoding="big5")
    assert [evidence["reason"] for evidence in fixed["evidence"]][-2:] == ["corrected_lossy", "corrected"]


WRONG = [
    ({"mimeType": "png"}, "mimeType", "image/png"),
    ({"mimeType": "image jpeg"}, "mimeType", "image/jpeg"),
    ({"mimeType": "x" * 300}, "mimeType", "image/png"),
    ({"mimeType": "a/" + "b" * 160}, "mimeType", "image/png"),
    ({"mimeType": "application/octet-stream"}, "mimeType", "is too general"),
    ({"mimeType": "<b>"}, "mimeType", "not a valid type"),
    ({"mimeType": "<b>\0"}, "mimeType", "cannot be stored"),
    ({"encoding": "utf-9"}, "encoding", "Did you mean utf-"),
    ({"encoding": "base64"}, "encoding", "no encoding base64"),
    ({"encoding": "x" * 41}, "encoding", "40 characters"),
    ({"encoding": ""}, "encoding", "Examples:"),
    ({"mimeType": "image/png", "encoding": "utf-8"}, "encoding", "is not text"),
    ({"visibility": "secret"}, "visibility", "shared"),
    ({"visibility": None}, "visibility", ""),
    ({"mimeType": 7}, "mimeType", "string"),
    ({}, "body", "mimeType, encoding, visibility"),
    ({"mime_type": "image/png"}, "body", "mimeType, encoding, visibility"),
]


@pytest.mark.parametrize(("correction", "field", "expected"), WRONG, ids=str)
def test_invalid_correction_is_rejected_with_a_valid_value(
    correction: dict[str, Any], field: str, expected: str, text_agent: Any
) -> None:
    stored = text_agent.stored("data.bin", BINARY)
    answer = patch(text_agent, stored["ref"], **correction)
    assert answer.status_code == 422
    problem = answer.json()["details"][0]
    assert (problem["path"], expected in problem["message"]) == (field, True)
    assert text_agent.get(f"/artifacts/{stored['ref']}/info").json() == stored


def test_every_python_codec_is_accepted_or_rejected_as_a_correction(text_agent: Any) -> None:
    names = sorted({*aliases, *aliases.values()})
    refused = [name for name in names if canonical_encoding(name) is None]
    one_of_each = {canonical_encoding(name): name for name in names}.values()
    ref = text_agent.stored("data.bin", BINARY * 40 + b"\xd8\x00\x1b$B~{")["ref"]
    statuses = {}
    for name in sorted({*refused, *one_of_each, "gbk"}):
        statuses[name] = patch(text_agent, ref, encoding=name).status_code
        assert statuses[name] in (200, 422)
        assert statuses[name] == 422 or text_agent.artifact(ref, limit=9000)["metadata"]["id"]
    assert text_agent.get(f"/artifacts/{ref}/preview").status_code == 200
    assert (statuses["rot13"], statuses["base64"], statuses["gbk"]) == (422, 422, 200)


def test_only_the_owner_can_correct_or_find_a_private_file(caller: Any) -> None:
    owner, stranger = caller("text-agent"), caller("vision-agent")
    stored = owner.stored("data.bin", BINARY)
    assert patch(stranger, stored["ref"], mimeType="text/plain").status_code == 403
    assert corrected(owner, stored["id"], visibility="private")["visibility"] == "private"
    for answer in (patch(stranger, stored["ref"], visibility="shared"), stranger.get(f"/artifacts/{stored['ref']}")):
        assert (answer.status_code, answer.json()["error"]) == (404, "artifact_not_found")
    assert patch(caller("text-agent", "artifacts:read"), stored["ref"], mimeType="text/plain").status_code == 403
    assert patch(owner, "artifact:" + "0" * 32, mimeType="text/plain").status_code == 404
    assert corrected(owner, stored["ref"], visibility="shared")["visibility"] == "shared"
    assert stranger.artifact(stored["ref"])["metadata"]["id"] == stored["id"]


def test_audit_log_has_old_and_new_values_of_a_correction(text_agent: Any) -> None:
    stored = text_agent.stored("data.bin", BINARY)
    revisions = Revision.objects.count()
    corrected(text_agent, stored["ref"], mimeType="text/plain", encoding="gbk", visibility="private")
    event = AuditEvent.objects.latest("pk")
    assert (event.action, event.actor, event.object_name) == ("artifact.correct", "text-agent", stored["id"])
    assert event.details == {
        "mimeType": {"from": "application/octet-stream", "to": "text/plain"},
        "encoding": {"from": "", "to": "gb18030"},
        "visibility": {"from": "shared", "to": "private"},
        "corrected": {"mimeType": "text/plain", "encoding": "gb18030"},
    }
    assert Revision.objects.count() == revisions


def test_second_of_two_concurrent_corrections_is_a_conflict(db: None) -> None:
    row = actions.store_bytes(SYSTEM, BINARY, filename="data.bin")
    actions.correct_artifact(SYSTEM, Artifact.objects.get(pk=row.pk), mime_type="text/plain")
    with pytest.raises(ConflictError, match="in the meantime"):
        actions.correct_artifact(SYSTEM, row, encoding="gbk")
    assert Artifact.objects.get(pk=row.pk).encoding == "utf-8"


def test_resent_media_reuse_their_corrected_artifact(db: None) -> None:
    row = actions.store_bytes(SYSTEM, BINARY, once=True, owner="text-agent")
    actions.correct_artifact(SYSTEM, row, mime_type="text/plain")
    repeated = actions.store_bytes(SYSTEM, BINARY, once=True, owner="text-agent")
    assert (repeated.pk, repeated.mime_type) == (row.pk, "text/plain")
