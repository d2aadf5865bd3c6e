"""Artifacts in the agents' API: stored, routed, previewed, downloaded and deleted."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from api_samples import BINARY, CHINESE, GB18030, mp3, pdf, png
from asgiref.sync import sync_to_async
from django.test import AsyncClient, override_settings
from django.utils import timezone

from artifacts.models import Artifact
from artifacts.storage.content import byte_store
from capabilities.core.texts.description import parse
from routing_admin.models import AuditEvent, Installation, Revision
from tests.artifacts.faults import expect_no_internal_error
from tests.stored_bytes import list_unfinished, overwrite

pytestmark = [pytest.mark.both_stores, pytest.mark.django_db(databases=["default", "logs"])]

FILES = {
    "png": ("photo.png", png(), "image/png"),
    "pdf": ("report.pdf", pdf(), "application/pdf"),
    "mp3": ("talk.mp3", mp3(), "audio/mpeg"),
    "gb18030": ("notes.txt", GB18030, "text/plain"),
    "bin": ("data.bin", BINARY, "application/octet-stream"),
}
KINDS = {"png": "image", "pdf": "document", "mp3": "audio", "gb18030": "text", "bin": "other"}

# The form in which `get_artifact` delivers each file to each service.
DELIVERIES = [
    ("png", "text-model", "image", "text"),
    ("png", "vision-model", "image", "image_url"),
    ("png", "multimodal-model", "image", "image_url"),
    ("pdf", "text-model", "binary", "text"),
    ("pdf", "vision-model", "binary", "text"),
    ("pdf", "multimodal-model", "binary", "file"),
    ("mp3", "text-model", "binary", "text"),
    ("mp3", "vision-model", "binary", "text"),
    ("mp3", "multimodal-model", "binary", "file"),
    ("gb18030", "text-model", "text", "text"),
    ("gb18030", "vision-model", "text", "text"),
    ("gb18030", "multimodal-model", "text", "text"),
    ("bin", "text-model", "binary", "text"),
    ("bin", "vision-model", "binary", "text"),
    ("bin", "multimodal-model", "binary", "file"),
]


@pytest.mark.parametrize("name", FILES)
def test_file_is_stored_with_its_detected_kind_type_size_and_hash(name: str, text_agent: Any) -> None:
    filename, data, kind = FILES[name]
    created = text_agent.stored(filename, data, kind)
    assert created["ref"] == f"artifact:{created['id']}"
    assert (created["filename"], created["size"], created["kind"]) == (filename, len(data), KINDS[name])
    assert created["isBinary"] is (name != "gb18030")
    assert created.get("encoding") == ("gb18030" if name == "gb18030" else None)
    assert created.get("encodingCertain") == (True if name == "gb18030" else None)
    assert len(created["id"]) >= 26
    assert list_unfinished(byte_store()) == []


# Each case: declared type, file name, bytes, and expected encoding. An invalid or unsuitable declared encoding is
# ignored.
WITH_CHARSET = [
    ("text/plain; charset=utf-8", "notes.txt", CHINESE.encode(), "utf-8"),
    ('text/plain; charset="UTF-8"', "notes.txt", CHINESE.encode(), "utf-8"),
    ("application/json;charset=utf-8", "data.json", b'{"a": 1}', "utf-8"),
    ("text/csv; header=present; charset=gbk", "table.csv", GB18030, "gb18030"),
    ("text/plain; charset=GB2312", "notes.txt", GB18030, "gb18030"),
    ("text/plain; charset=windows-1251", "privet.txt", "Привет".encode("cp1251"), "cp1251"),
    ("text/plain; charset=", "notes.txt", CHINESE.encode(), "utf-8"),
    ("text/plain; charset=no-such-encoding", "notes.txt", GB18030, "gb18030"),
    ("text/plain; charset=base64", "notes.txt", GB18030, "gb18030"),
    ("text/plain; charset=utf-16", "notes.txt", b"plain words", "utf-8"),
    ("text/plain; charset=\u00fctf-8", "notes.txt", GB18030, "gb18030"),
    ("text/plain; charset=" + "x" * 900, "notes.txt", GB18030, "gb18030"),
]


@pytest.mark.parametrize(("kind", "name", "data", "encoding"), WITH_CHARSET)
def test_correct_charset_parameter_is_used_and_a_wrong_one_is_ignored(
    kind: str, name: str, data: bytes, encoding: str, text_agent: Any
) -> None:
    with expect_no_internal_error():
        created = text_agent.stored(name, data, kind)
    assert (created["kind"], created["mimeType"], created["encoding"]) == ("text", kind.split(";")[0], encoding)
    assert text_agent.artifact(created["ref"])["content"] == data.decode(encoding)


@pytest.mark.requirement("ABR-3.1", "ABR-3.3", "ABR-3.4", "ABR-4.1", "ABR-4.4", "ABR-5.1", "ABR-7.1", "ABR-7.5")
@pytest.mark.parametrize(("name", "service", "content_type", "routing"), DELIVERIES)
def test_each_service_gets_each_file_in_a_form_it_can_read(
    name: str, service: str, content_type: str, routing: str, text_agent: Any
) -> None:
    filename, data, kind = FILES[name]
    ref = text_agent.stored(filename, data, kind)["ref"]
    result = text_agent.artifact(ref, serviceId=service)
    assert (result["contentType"], result["routing"]) == (content_type, routing)
    assert sum(key in result for key in ("content", "imageUrl", "file")) == 1
    assert result["metadata"]["filename"] == filename
    deliveries = {
        delivery["serviceId"]: delivery for delivery in text_agent.get(f"/artifacts/{ref}/preview").json()["deliveries"]
    }
    assert (deliveries[service]["contentType"], deliveries[service]["routing"]) == (content_type, routing)
    assert deliveries[service].get("content") == result.get("content")
    encoded = base64.b64encode(data).decode()
    if routing == "image_url":
        assert result["imageUrl"]["image_url"]["url"] == f"data:image/png;base64,{encoded}"
    elif routing == "file":
        assert result["file"]["file"] == {
            "filename": filename,
            "mimeType": result["metadata"]["mimeType"],
            "data": encoded,
        }
    elif content_type == "text":
        assert result["content"] == CHINESE
    else:
        assert encoded[:24] not in result["content"]
        assert parse(result["content"]).artifact_ref == ref


@pytest.mark.requirement("MCR-4.1", "MCR-6.3", "ABR-2.1")
def test_text_agent_hands_a_reference_to_a_vision_agent(text_agent: Any, vision_agent: Any) -> None:
    """The calling agent's model service determines the form in which the file is delivered."""
    ref = text_agent.stored("photo.png", png(), "image/png")["ref"]
    description = text_agent.artifact(ref, language="zh")
    assert description["routing"] == "text"
    assert description["content"].startswith("[无法读取] photo.png (artifact:")
    assert description["suggestedAgents"] == ["multimodal-agent", "vision-agent"]
    helpers = text_agent.get("/agents/me").json()["forwardTo"]["vision"]
    assert "vision-agent" in helpers
    delivered = vision_agent.artifact(ref.removeprefix("artifact:"))
    assert delivered["routing"] == "image_url"
    assert delivered["imageUrl"]["image_url"]["url"].endswith(base64.b64encode(png()).decode())
    assert "suggestedAgents" not in delivered


def test_run_time_agent_is_suggested_from_the_next_request_on(text_agent: Any) -> None:
    """The preview does not name the new agent, since the prefix of an ongoing conversation must not change."""
    ref = text_agent.stored("photo.png", png(), "image/png")["ref"]
    before = text_agent.get(f"/artifacts/{ref}/preview").json()["deliveries"]
    text_agent.call("PUT", "/agents/eye-1", {"serviceId": "vision-model"})
    assert "eye-1" in text_agent.artifact(ref)["suggestedAgents"]
    message = {"text": "look", "attachments": [{"type": "image", "artifactRef": ref}]}
    assert "eye-1" in text_agent.call("POST", "/messages/route", {"message": message}).json()["textDescription"]
    assert text_agent.get(f"/artifacts/{ref}/preview").json()["deliveries"] == before


def test_preview_shows_media_as_a_byte_count_with_reason_and_capable_agents(text_agent: Any) -> None:
    data = png()
    ref = text_agent.stored("photo.png", data, "image/png")["ref"]
    body = text_agent.get(f"/artifacts/{ref}/preview").json()
    rows = {delivery["serviceId"]: delivery for delivery in body["deliveries"]}
    assert f"<{len(data)} bytes>" in str(rows["vision-model"]["payload"])
    assert (rows["vision-model"]["outcome"], rows["text-model"]["outcome"]) == ("native", "described")
    assert rows["vision-model"]["bytes"] > len(data)
    assert "vision" in rows["text-model"]["reason"]
    assert "vision-agent" in rows["text-model"]["text"]
    assert rows["vision-model"]["wire"] == "openai"
    assert base64.b64encode(data).decode()[:24] not in str(body)
    assert "vision-agent" in body["canRead"]


def test_empty_file_is_stored(text_agent: Any) -> None:
    created = text_agent.stored("empty.txt", b"", "text/plain")
    assert created["size"] == 0
    assert text_agent.get(f"/artifacts/{created['id']}/raw").getvalue() == b""


@pytest.mark.requirement("ABR-5.2", "ABR-5.3", "ABR-P1")
@pytest.mark.parametrize(
    "text", ["你好，世界", "", "\ufeffmark", "a\x00b\x01\x02", '{"a": 1}', "data:image/png;base64,AAAA"]
)
def test_json_text_is_stored_unchanged_as_text(text: str, text_agent: Any) -> None:
    created = text_agent.post("/artifacts", {"text": text, "filename": "a.png"}).json()
    assert (created["kind"], created["isBinary"], created["encoding"]) == ("text", False, "utf-8")
    assert text_agent.artifact(created["ref"])["content"] == text


def test_long_text_is_read_in_pages_counted_in_characters(text_agent: Any) -> None:
    text = "字" * 100_000
    ref = text_agent.post("/artifacts", {"text": text, "filename": "long.md"}).json()["ref"]
    first = text_agent.artifact(ref)
    assert first["metadata"]["totalChars"] == 100_000
    assert "offset=40000" in first["content"]
    page = text_agent.artifact(ref, offset=99_990, limit=50)
    assert page["content"] == "字" * 10


@pytest.mark.requirement("ABR-8.1")
@pytest.mark.parametrize("call", ["", "/raw", "/info", "/preview"])
@pytest.mark.parametrize(
    "ref", ["artifact:0123456789abcdef", "nothing-here", "artifact:../../etc/passwd", "artifact:", "%00", "a'--", "æ—"]
)
def test_missing_or_invalid_reference_returns_404(ref: str, call: str, text_agent: Any) -> None:
    response = text_agent.get(f"/artifacts/{ref}{call}")
    assert response.status_code == 404
    body = response.json()
    assert body["error"] == "artifact_not_found"
    assert body["message"]
    assert body["requestId"] == response["x-request-id"]


@pytest.mark.requirement("ABR-8.4", "ABR-2.4")
def test_unknown_service_counts_as_text_only_with_a_warning(text_agent: Any) -> None:
    """MCR-E3 requires a description instead of an error."""
    ref = text_agent.stored("photo.png", png(), "image/png")["ref"]
    result = text_agent.artifact(ref, serviceId="no-such-service")
    assert (result["routing"], result["warnings"]) == ("text", ["unknown_service"])


@pytest.mark.requirement("MCR-E4")
@pytest.mark.parametrize(("harm", "warning"), [("remove", "artifact_missing"), ("change", "artifact_corrupt")])
@pytest.mark.parametrize("service", ["text-model", "vision-model"])
def test_unreadable_bytes_are_reported_and_never_served(harm: str, warning: str, service: str, text_agent: Any) -> None:
    created = text_agent.stored(f"{harm}-{service}.png", png(5, len(harm + service)), "image/png")
    if harm == "remove":
        byte_store().delete(created["sha256"])
    else:
        overwrite(byte_store(), created["sha256"], b"\x00" * created["size"])
    result = text_agent.artifact(created["ref"], serviceId=service, language="zh")
    assert result["content"].startswith("[文件处理失败: ")
    assert result["warnings"] == [warning]
    raw = text_agent.get(f"/artifacts/{created['ref']}/raw")
    assert (raw.status_code, raw.json()["error"]) == (410, warning)
    assert text_agent.get(f"/artifacts/{created['ref']}/preview").status_code == 200
    healed = text_agent.upload("again.png", png(5, len(harm + service)), "image/png")
    assert healed.status_code == 201
    assert text_agent.get(f"/artifacts/{created['ref']}/raw").status_code == 200


def test_private_artifact_is_missing_for_other_agents(text_agent: Any, vision_agent: Any) -> None:
    ref = text_agent.stored("secret.txt", b"mine", "text/plain", visibility="private")["ref"]
    for call in ("", "/raw", "/info", "/preview"):
        assert vision_agent.get(f"/artifacts/{ref}{call}").status_code == 404
    assert vision_agent.call("DELETE", f"/artifacts/{ref}").status_code == 404
    assert text_agent.artifact(ref)["content"] == "mine"


def test_agent_lists_its_own_artifacts_newest_first_in_pages(text_agent: Any, vision_agent: Any) -> None:
    ids = [text_agent.stored(f"note {number}.txt", b"x%d" % number, "text/plain")["id"] for number in range(5)]
    text_agent.stored("photo.png", png(), "image/png")
    vision_agent.stored("other.txt", b"not yours", "text/plain")
    ids_seen, cursor = [], ""
    for _ in range(3):
        page = text_agent.get("/artifacts", limit=2, cursor=cursor, kind="text").json()
        ids_seen += [artifact["id"] for artifact in page["artifacts"]]
        cursor = page["nextCursor"] or ""
    assert ids_seen == ids[::-1]
    assert cursor == ""
    assert [artifact["filename"] for artifact in text_agent.get("/artifacts", q="PHOTO").json()["artifacts"]] == [
        "photo.png"
    ]


@pytest.mark.parametrize(
    "query", [{"limit": 0}, {"limit": 9999}, {"limit": "x"}, {"cursor": "bm9uZQ"}, {"kind": "cat"}]
)
def test_invalid_list_parameters_are_rejected_with_their_path(query: dict[str, Any], text_agent: Any) -> None:
    response = text_agent.get("/artifacts", **query)
    assert response.status_code == 422
    assert response.json()["details"][0]["path"] == next(iter(query))


def test_artifact_can_be_deleted_by_its_owner_only(text_agent: Any, vision_agent: Any) -> None:
    ref = text_agent.stored("a.txt", b"words", "text/plain")["ref"]
    revisions = Revision.objects.count()
    assert vision_agent.call("DELETE", f"/artifacts/{ref}").status_code == 403
    assert text_agent.call("DELETE", f"/artifacts/{ref}").status_code == 204
    assert text_agent.get(f"/artifacts/{ref}").status_code == 404
    assert text_agent.call("DELETE", f"/artifacts/{ref}").status_code == 404
    actions = list(AuditEvent.objects.values_list("action", "actor")[:2])
    assert actions == [("artifact.delete", "text-agent"), ("artifact.store", "text-agent")]
    assert Revision.objects.count() == revisions


def test_expired_artifact_is_missing(text_agent: Any) -> None:
    created = text_agent.stored("a.txt", b"words", "text/plain", expiresInSeconds="60")
    assert created["expiresAt"]
    Artifact.objects.filter(pk=created["id"]).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert text_agent.get(f"/artifacts/{created['ref']}").status_code == 404
    assert text_agent.upload("b.txt", b"x", "text/plain", expiresInSeconds="-5").status_code == 422
    assert text_agent.upload("b.txt", b"x", "text/plain", expiresInSeconds="soon").status_code == 422


def test_download_of_an_html_file_is_a_sandboxed_attachment(text_agent: Any) -> None:
    page = b"<!doctype html><html><script>alert(1)</script></html>"
    ref = text_agent.stored('evil"\r\nSet-Cookie: a=b.html', page, "text/html")["ref"]
    response = text_agent.get(f"/artifacts/{ref}/raw")
    assert response.getvalue() == page
    assert response["Content-Disposition"].startswith("attachment")
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert response["Cross-Origin-Resource-Policy"] == "same-origin"
    assert response["Cache-Control"] == "private, no-store"
    assert "html" not in response["Content-Type"]
    assert "Set-Cookie" not in response


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "..\\..\\boot.ini", "a\u202egnp.exe", ".hidden", "con.txt", "a" * 500]
)
def test_filename_is_cleaned_and_never_used_as_a_path(name: str, text_agent: Any) -> None:
    created = text_agent.post("/artifacts", {"text": "words", "filename": name}).json()
    assert not set("/\\\u202e") & set(created["filename"])
    assert not created["filename"].startswith(".")
    assert len(created["filename"].encode()) <= 255
    assert byte_store().exists(created["sha256"])


@override_settings(MAX_UPLOAD_BYTES=1000)
def test_upload_over_the_limit_leaves_nothing(text_agent: Any) -> None:
    response = text_agent.upload("big.bin", b"x" * 1001)
    assert response.status_code == 413
    body = response.json()
    assert (body["error"], body["limit"]) == ("too_large", 1000)
    assert "1000 bytes" in body["message"]
    assert not Artifact.objects.exists()
    assert list_unfinished(byte_store()) == []
    assert text_agent.upload("fits.bin", b"x" * 1000).status_code == 201


@pytest.mark.parametrize("cut", [1, 20, 40, 60])
def test_truncated_upload_leaves_nothing(cut: int, text_agent: Any) -> None:
    body = (
        b'--edge\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n'
        b"Content-Type: text/plain\r\n\r\n" + b"words " * 20 + b"\r\n--edge--\r\n"
    )
    response = text_agent.client.generic(
        "POST",
        "/api/v1/artifacts",
        body[: -cut - 10],
        content_type="multipart/form-data; boundary=edge",
        headers=text_agent.headers,
    )
    assert response.status_code in (400, 422)
    assert response.json()["message"]
    assert not Artifact.objects.exists()
    assert list_unfinished(byte_store()) == []


def test_upload_of_a_rejected_caller_leaves_no_bytes(text_agent: Any, caller: Callable[..., Any]) -> None:
    reader = caller("text-agent", "artifacts:read")
    assert reader.upload("a.txt", b"words", "text/plain").status_code == 403
    assert text_agent.upload("a.txt", b"words", "text/plain", visibility="everyone").status_code == 422
    assert list_unfinished(byte_store()) == []
    assert not Artifact.objects.exists()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"filename": "a"}, 422),
        ({"text": 5}, 422),
        (["text"], 422),
        (b"{", 400),
        (b"[" * 100_000, 400),
        ({"text": "\ud800"}, 400),
    ],
)
def test_invalid_json_upload_is_rejected(body: Any, status: int, text_agent: Any) -> None:
    response = text_agent.post("/artifacts", body)
    assert response.status_code == status
    error = response.json()
    assert error["error"] == ("invalid_json" if status == 400 else "invalid")
    assert ("details" in error) is (status == 422)
    assert not Artifact.objects.exists()


def test_form_without_a_file_and_other_content_types_are_rejected(text_agent: Any) -> None:
    form = text_agent.client.post("/api/v1/artifacts", {"filename": "x"}, headers=text_agent.headers)
    assert (form.status_code, form.json()["details"][0]["path"]) == (422, "file")
    csv_response = text_agent.client.post(
        "/api/v1/artifacts", b"words", content_type="text/csv", headers=text_agent.headers
    )
    assert (csv_response.status_code, csv_response.json()["error"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize("metadata", ["{", "[1]", '{"a": "\\ud800"}', '{"a": "\\u0000"}', '{"a": NaN}', "x" * 20_000])
def test_invalid_metadata_is_rejected_and_an_object_stored_unchanged(metadata: str, text_agent: Any) -> None:
    response = text_agent.upload("a.txt", b"words", "text/plain", metadata=metadata)
    assert (response.status_code, response.json()["details"][0]["path"].split(".")[0]) == (422, "metadata")
    assert text_agent.stored("b.txt", b"words", "text/plain", metadata='{"页": [1]}')["metadata"] == {"页": [1]}


def test_upload_over_the_installations_quota_is_rejected(text_agent: Any) -> None:
    text_agent.stored("a.txt", b"x" * 60, "text/plain")
    Installation.objects.update_or_create(id=1, defaults={"quota_bytes": 100})
    response = text_agent.upload("b.txt", b"y" * 60, "text/plain")
    assert (response.status_code, response.json()["error"]) == (507, "storage_full")
    assert list_unfinished(byte_store()) == []
    assert text_agent.upload("c.txt", b"y" * 40, "text/plain").status_code == 201


def test_identical_artifacts_share_one_stored_file(text_agent: Any, vision_agent: Any) -> None:
    first = text_agent.stored("a.txt", b"same words", "text/plain")
    second = vision_agent.stored("b.txt", b"same words", "text/plain")
    assert first["sha256"] == second["sha256"]
    assert first["id"] != second["id"]
    assert list(byte_store().digests()).count(first["sha256"]) == 1
    text_agent.call("DELETE", f"/artifacts/{first['ref']}")
    assert vision_agent.artifact(second["ref"])["content"] == "same words"


def test_detected_type_takes_precedence_and_the_mismatch_is_reported(text_agent: Any) -> None:
    created = text_agent.stored("photo.pdf", png(), "application/pdf")
    info = text_agent.get(f"/artifacts/{created['ref']}/info").json()
    assert (info["kind"], info["mimeType"], info["declaredMimeType"]) == ("image", "image/png", "application/pdf")
    assert info["mismatch"] is True
    assert info["evidence"]
    assert (info["width"], info["height"]) == (3, 2)
    deliveries = text_agent.get(f"/artifacts/{created['ref']}/preview").json()["deliveries"]
    assert all("type_mismatch" in delivery["warnings"] for delivery in deliveries)


@pytest.mark.django_db(databases=["default", "logs"], transaction=True)
async def test_asynchronous_handler_sends_a_download_in_blocks(text_agent: Any) -> None:
    data = BINARY * 600
    created = await sync_to_async(text_agent.stored)("big.bin", data)
    response = await AsyncClient().get(f"/api/v1/artifacts/{created['ref']}/raw", headers=text_agent.headers)
    assert response.status_code == 200
    assert response.is_async
    assert b"".join([block async for block in response.streaming_content]) == data
