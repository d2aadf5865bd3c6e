"""get_artifact returns an artifact in a form that the service can read, and never its bytes as text."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifacts.core.artifact import StoredArtifact
from artifacts.core.delivery.content_router import ArtifactContentRouter, ContentRouteResult
from artifacts.core.delivery.get_artifact import InMemory
from capabilities.core.message import Blob, Converted, ConvertTo, Text, UnreadableError
from capabilities.core.vocabulary import Capabilities, Kind
from tests.artifacts.faults import collect_errors

pytestmark = pytest.mark.smoke

DATA = bytes(range(64))


class FakeServices:
    """Services whose ids are their capabilities, such as `text+vision`.

    The lookup of `down` fails, and ids that do not begin with `text` are unknown.
    """

    def get_capabilities(self, service_id: str) -> Capabilities | None:
        if service_id == "down":
            raise ConnectionError("no database")
        return Capabilities(tuple(service_id.split("+"))) if service_id.startswith("text") else None


class UnreadableContent:
    def __init__(self, reason: str) -> None:
        self.reason = reason

    def blob(self) -> Blob:
        raise UnreadableError(self.reason)

    def text(self) -> Text | None:
        raise UnreadableError(self.reason)

    def convert(self, target: ConvertTo) -> Converted | None:
        raise UnreadableError(self.reason)


ROUTER = ArtifactContentRouter(FakeServices())


def make_artifact(
    kind: Kind, mime_type: str, filename: str | None, data: bytes = DATA, **fields: object
) -> StoredArtifact:
    text = kind is Kind.TEXT
    return StoredArtifact(
        id="abc123",
        mime_type=mime_type,
        kind=kind,
        is_binary=not text,
        size=len(data),
        filename=filename,
        created_at="2026-11-20T12:00:00Z",
        content=InMemory(data, kind),
        **fields,  # type: ignore[arg-type]
    )


def text_artifact(content: str) -> StoredArtifact:
    return make_artifact(Kind.TEXT, "text/plain", "notes.txt", content.encode())


PNG = make_artifact(Kind.IMAGE, "image/png", "screenshot.png")
MP3 = make_artifact(Kind.AUDIO, "audio/mpeg", "recording.mp3")
MP4 = make_artifact(Kind.VIDEO, "video/mp4", "clip.mp4")
PDF = make_artifact(Kind.DOCUMENT, "application/pdf", "report.pdf")
BIN = make_artifact(Kind.OTHER, "application/octet-stream", None)
TXT = text_artifact("能力路由, as it is: YWJj")

TABLE = """
file  service         contentType  routing
TXT   text            text         text
TXT   text+vision     text         text
TXT   text+file       text         text
PNG   text            image        text
PNG   text+file       image        text
PNG   text+vision     image        image_url
MP3   text            binary       text
MP3   text+vision     binary       text
MP3   text+audio      binary       file
MP3   text+file       binary       file
MP4   text+video      binary       file
MP4   text+audio      binary       text
MP4   text+file       binary       file
PDF   text            binary       text
PDF   text+vision     binary       text
PDF   text+file       binary       file
BIN   text            binary       text
BIN   text+file       binary       file
PNG   not-configured    image        text
PNG   down            image        text
PDF   not-configured    binary       text
PDF   down            binary       text
"""
ARTIFACTS = {"TXT": TXT, "PNG": PNG, "MP3": MP3, "MP4": MP4, "PDF": PDF, "BIN": BIN}


@pytest.mark.requirement(
    "ABR-2.1", "ABR-2.2", "ABR-2.3", "ABR-2.4", "ABR-3.1", "ABR-3.4", "ABR-4.1", "ABR-4.2", "ABR-5.1", "ABR-8.4"
)
@pytest.mark.parametrize("row", [line.split() for line in TABLE.strip().splitlines()[1:]], ids=" ".join)
def test_route_depends_on_artifact_kind_and_service(row: list[str]) -> None:
    """A service that is unknown or whose capabilities cannot be read counts as text-only."""
    name, service, content_type, routing = row
    result = ROUTER.route_content(ARTIFACTS[name], service)
    assert (result.content_type, result.routing) == (content_type, routing)


@pytest.mark.requirement("ABR-3.2", "ABR-3.3", "ABR-7.1", "ABR-7.2", "ABR-7.3")
def test_image_for_a_vision_model_becomes_a_data_url() -> None:
    assert ROUTER.route_content(PNG, "text+vision").as_json() == {
        "contentType": "image",
        "routing": "image_url",
        "imageUrl": {
            "type": "image_url",
            "image_url": {"url": "data:image/png;base64," + base64.b64encode(DATA).decode()},
        },
        "metadata": {
            "id": "abc123",
            "filename": "screenshot.png",
            "mimeType": "image/png",
            "size": 64,
            "createdAt": "2026-11-20T12:00:00Z",
            "binaryType": "image",
        },
    }


@pytest.mark.requirement("ABR-7.4", "ABR-4.1")
def test_document_for_a_file_model_becomes_a_file_object() -> None:
    """An artifact without a file name is named by its id."""
    result = ROUTER.route_content(PDF, "text+file").as_json()
    assert result["file"] == {
        "type": "file",
        "file": {"filename": "report.pdf", "mimeType": "application/pdf", "data": base64.b64encode(DATA).decode()},
    }
    assert ROUTER.route_content(BIN, "text+file").as_json()["file"]["file"]["filename"] == "abc123"


@pytest.mark.requirement("ABR-4.3", "ABR-4.4", "ABR-6.2", "ABR-6.4", "ABR-7.5")
def test_unreadable_file_is_described_with_name_type_size_and_a_suggestion() -> None:
    result = ROUTER.route_content(PDF, "text", language="zh").as_json()
    assert result["content"] == (
        "[无法读取] report.pdf (artifact:abc123)\n"
        "类型: PDF 文档\n"
        "大小: 64 B\n"
        "当前模型不支持读取此类文件。建议创建具备相应能力的智能体协助处理。"
    )
    assert not {"imageUrl", "file", "warnings"} & set(result)
    assert ROUTER.generate_text_description(PDF, "zh") == result["content"]


@pytest.mark.requirement("ABR-5.1", "ABR-5.2", "ABR-5.3")
def test_text_is_returned_unchanged_with_its_metadata() -> None:
    result = ROUTER.route_content(TXT, "text+vision+file").as_json()
    assert result["content"] == "能力路由, as it is: YWJj"
    assert "binaryType" not in result["metadata"]
    assert set(result) == {"contentType", "routing", "content", "metadata"}


def test_pages_of_a_long_text_join_to_the_whole_text() -> None:
    whole = "".join(chr(0x4E00 + index % 500) for index in range(50_000))
    first = ROUTER.route_content(text_artifact(whole), "text", language="en")
    assert first.metadata["totalChars"] == 50_000
    assert first.content is not None
    assert "get_artifact(ref, offset=40000)" in first.content
    assert first.content.endswith(whole[-4_000:])
    pages, offset = [], 0
    while offset < len(whole):
        result = ROUTER.route_content(text_artifact(whole), "text", offset=offset, limit=20_000)
        page, _, note = (result.content or "").partition("\n")
        assert len(page) == min(20_000, len(whole) - offset)
        pages.append(page)
        offset += len(page)
        assert (f"offset={offset}" in note) == (offset < len(whole))
    assert "".join(pages) == whole


@pytest.mark.parametrize(("offset", "content"), [(3, "de"), (5, ""), (900, ""), (-1, "abcde")])
def test_text_page_past_the_end_is_empty(offset: int, content: str) -> None:
    """Every page has the text's total length in its metadata."""
    result = ROUTER.route_content(text_artifact("abcde"), "text", offset=offset)
    assert (result.content, result.metadata["totalChars"]) == (content, 5)


@pytest.mark.requirement("ABR-8.4")
@pytest.mark.parametrize(
    ("service", "warnings"),
    [("text", ()), ("not-configured", ("unknown_service",)), ("down", ("capabilities_unknown",))],
)
def test_unknown_or_failing_service_adds_a_warning(service: str, warnings: tuple[str, ...]) -> None:
    result = ROUTER.route_content(PNG, service)
    assert result.warnings == warnings
    assert result.as_json().get("warnings", []) == list(warnings)
    assert ROUTER.has_capability(service, "vision") is False


@pytest.mark.parametrize("reason", ["artifact_missing", "artifact_corrupt"])
@pytest.mark.parametrize("artifact", [PNG, PDF, TXT], ids=["image", "document", "text"])
@pytest.mark.parametrize("known", [True, False], ids=["known beforehand", "found out while reading"])
def test_unreadable_bytes_add_a_warning(reason: str, artifact: StoredArtifact, known: bool) -> None:
    broken = replace(artifact, unreadable=reason) if known else replace(artifact, content=UnreadableContent(reason))
    result = ROUTER.route_content(broken, "text+vision+file", language="zh").as_json()
    assert (result["routing"], result["warnings"]) == ("text", [reason])
    assert result["content"] == f"[文件处理失败: {artifact.filename}]\n错误: 无法读取文件内容\n请检查文件是否损坏"


@pytest.mark.requirement("ABR-1.1", "ABR-1.2", "ABR-1.3", "ABR-1.4")
@pytest.mark.parametrize(
    ("mime_type", "filename", "kind"),
    [
        ("image/webp", "x.pdf", Kind.IMAGE),
        ("application/octet-stream", "photo.JPG", Kind.IMAGE),
        ("", "song.flac", Kind.AUDIO),
        ("nonsense", "film.webm", Kind.VIDEO),
        ("application/octet-stream", "letter.docx", Kind.DOCUMENT),
        ("application/zip", "photo.jpg", Kind.OTHER),
        ("application/octet-stream", "mystery", Kind.OTHER),
        ("application/octet-stream", None, Kind.OTHER),
    ],
)
def test_binary_type_depends_on_mime_type_then_extension(mime_type: str, filename: str | None, kind: Kind) -> None:
    artifact = make_artifact(Kind.OTHER, mime_type, filename)
    assert ROUTER.detect_binary_type(artifact) is kind


@pytest.mark.requirement("ABR-1.5", "ABR-8.2")
def test_detected_type_is_used_without_metadata() -> None:
    router = ArtifactContentRouter(FakeServices(), detect=lambda _: "image/gif")
    assert router.detect_binary_type(BIN) is Kind.IMAGE
    result = router.route_content(BIN, "text+vision").as_json()
    assert result["imageUrl"]["image_url"]["url"].startswith("data:image/gif;base64,")
    assert result["metadata"]["binaryType"] == "image"


@pytest.mark.requirement("ABR-8.3")
def test_artifact_is_described_if_the_type_detector_fails() -> None:
    def failing(error: Exception) -> ArtifactContentRouter:
        def detect(_: StoredArtifact) -> str | None:
            raise error

        return ArtifactContentRouter(FakeServices(), detect=detect)

    for error, logged in ((UnreadableError("artifact_missing"), 0), (OSError("disk"), 0), (TypeError("ours"), 1)):
        with collect_errors() as faults:
            result = failing(error).route_content(BIN, "text+vision")
        assert (result.content_type, result.routing, result.metadata["binaryType"]) == ("binary", "text", "other")
        assert len(faults) == logged


@pytest.mark.requirement("ABR-8.3")
def test_undecodable_text_is_described() -> None:
    result = ROUTER.route_content(make_artifact(Kind.TEXT, "text/plain", "x.txt", b"\xff\xfe\x00\xff"), "text")
    assert (result.content_type, result.routing) == ("binary", "text")
    assert "[Unreadable] x.txt" in (result.content or "")


def test_image_url_is_built_from_bytes_or_base64() -> None:
    """Bytes and base64 result in the same object (ABR-3.3)."""
    encoded = base64.b64encode(DATA).decode()
    assert ROUTER.format_image_url(DATA, "image/png") == ROUTER.format_image_url(encoded, "image/png")


SERVICES = st.lists(st.sampled_from(["vision", "audio", "video", "file"]), unique=True).map(
    lambda capabilities: "+".join(["text", *capabilities])
) | st.sampled_from(["not-configured", "down"])
BINARY = st.builds(
    make_artifact,
    kind=st.sampled_from([Kind.IMAGE, Kind.AUDIO, Kind.VIDEO, Kind.DOCUMENT, Kind.OTHER]),
    mime_type=st.sampled_from(["image/png", "audio/wav", "application/pdf", "application/octet-stream", "", "x"]),
    filename=st.none() | st.text(max_size=20),
    data=st.binary(min_size=1, max_size=100),
)


@pytest.mark.requirement("ABR-P1", "ABR-INV2")
@given(content=st.text(), service=SERVICES)
def test_any_text_artifact_is_routed_as_its_unchanged_text(content: str, service: str) -> None:
    result = ROUTER.route_content(text_artifact(content), service)
    assert (result.content_type, result.routing, result.content) == ("text", "text", content)


@pytest.mark.requirement("ABR-P2", "ABR-INV1", "ABR-6.1", "ABR-6.3")
@given(artifact=BINARY, data=st.binary(min_size=16, max_size=100), service=SERVICES)
def test_description_contains_no_file_data(artifact: StoredArtifact, data: bytes, service: str) -> None:
    result = ROUTER.route_content(replace(artifact, content=InMemory(data, artifact.kind), size=len(data)), service)
    if result.routing != "text":
        return
    content = result.content or ""
    encoded = base64.b64encode(data).decode()
    # 22 base64 characters encode 16 bytes.
    assert not any(encoded[start : start + 22] in content for start in range(max(1, len(encoded) - 21)))
    assert data.decode("latin-1") not in content


@pytest.mark.requirement("ABR-INV4", "ABR-INV5", "ABR-7.1", "ABR-7.2")
@given(artifact=BINARY, service=SERVICES, broken=st.sampled_from([None, "artifact_missing", "artifact_corrupt"]))
def test_every_result_has_exactly_one_content_field_of_its_type(
    artifact: StoredArtifact, service: str, broken: str | None
) -> None:
    result = ROUTER.route_content(replace(artifact, unreadable=broken), service).as_json()
    assert result["contentType"] in ("image", "binary")
    field = {"text": "content", "image_url": "imageUrl", "file": "file"}[result["routing"]]
    assert {"content", "imageUrl", "file"} & set(result) == {field}
    assert isinstance(result["metadata"]["id"], str)
    assert isinstance(result[field], str if field == "content" else dict)


@pytest.mark.requirement("ABR-INV3")
@given(first=BINARY, second=BINARY, service=SERVICES)
def test_route_does_not_depend_on_filename_size_or_bytes(
    first: StoredArtifact, second: StoredArtifact, service: str
) -> None:
    if ROUTER.detect_binary_type(first) is ROUTER.detect_binary_type(second):
        first_result, second_result = ROUTER.route_content(first, service), ROUTER.route_content(second, service)
        assert isinstance(first_result, ContentRouteResult)
        assert (first_result.content_type, first_result.routing) == (second_result.content_type, second_result.routing)


@pytest.mark.requirement("ABR-3.1")
@given(
    data=st.binary(min_size=100, max_size=200),
    mime_type=st.sampled_from(["image/jpeg", "image/png", "image/gif", "image/webp"]),
)
def test_data_url_decodes_to_the_same_bytes(data: bytes, mime_type: str) -> None:
    result = ROUTER.route_content(make_artifact(Kind.IMAGE, mime_type, "x", data), "text+vision").as_json()
    head, _, encoded = result["imageUrl"]["image_url"]["url"].partition(",")
    assert head == f"data:{mime_type};base64"
    assert base64.b64decode(encoded) == data
