"""The tool get_artifact: validation of references, results that can be parsed, and tool definitions."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from artifacts.core.artifact import StoredArtifact, artifact_id
from artifacts.core.delivery.content_router import ArtifactContentRouter, ContentRouteResult
from artifacts.core.delivery.get_artifact import (
    ArtifactNotFound,
    BadBase64Error,
    InMemory,
    get_artifact,
    read_tool_result,
)
from artifacts.core.delivery.tools import TEXTS, tool_definitions
from artifacts.core.detection.detector import BinaryDetector
from capabilities.core.message import FilePart
from capabilities.core.services.registry import LlmServiceRegistry
from capabilities.core.vocabulary import Kind

SERVICES = LlmServiceRegistry.from_document(
    {
        "services": [
            {
                "id": name,
                "name": name,
                "baseURL": "https://example.org/v1",
                "model": name,
                "apiKey": "",
                "description": "",
                "capabilityTags": [],
                "capabilities": {"input": inputs, "output": ["text"]},
            }
            for name, inputs in (("eyes", ["text", "vision"]), ("reader", ["text", "file"]), ("plain", ["text"]))
        ]
    }
)
ROUTER = ArtifactContentRouter(SERVICES)


class FakeStore:
    """A store that contains the given artifacts and records the requested references."""

    def __init__(self, *artifacts: StoredArtifact) -> None:
        self.artifacts = {artifact.ref: artifact for artifact in artifacts}
        self.requested: list[str] = []

    def get_artifact(self, ref: str) -> StoredArtifact | None:
        self.requested.append(ref)
        return self.artifacts.get(ref)


PNG = StoredArtifact(
    "pic_1", "image/png", Kind.IMAGE, True, 8, "plan.png", content=InMemory(b"\x89PNG\r\n\x1a\n", Kind.IMAGE)
)
PDF = StoredArtifact(
    "doc-2", "application/pdf", Kind.DOCUMENT, True, 5, "report.pdf", content=InMemory(b"%PDF-", Kind.DOCUMENT)
)


@pytest.mark.requirement("ABR-2.1", "ABR-7.1")
@pytest.mark.parametrize("ref", ["artifact:pic_1", "pic_1"])
def test_artifact_is_found_by_reference_with_or_without_prefix(ref: str) -> None:
    """Agents may pass the full reference or only the id."""
    result = get_artifact(FakeStore(PNG), ROUTER, ref, "eyes")
    assert isinstance(result, ContentRouteResult)
    assert result.routing == "image_url"


@pytest.mark.requirement("ABR-8.1")
def test_missing_artifact_error_names_the_reference() -> None:
    error = get_artifact(FakeStore(), ROUTER, "artifact:gone", "eyes", language="zh")
    assert error.as_json() == {
        "error": "artifact_not_found",
        "ref": "artifact:gone",
        "message": "工件不存在或已被删除",
    }


BAD_REFS = [
    "artifact:../x",
    "",
    "artifact:",
    "../../etc/passwd",
    "a/b",
    "a b",
    "a\n",
    "é",
    "a" * 129,
    "artifact:artifact:a",
]


@pytest.mark.parametrize("ref", BAD_REFS)
def test_invalid_reference_never_reaches_the_store(ref: str) -> None:
    store = FakeStore(PNG)
    assert isinstance(get_artifact(store, ROUTER, ref, "eyes"), ArtifactNotFound)
    assert store.requested == []


@given(ref=st.text(max_size=140))
def test_accepted_ids_have_only_ascii_letters_digits_hyphens_and_underscores(ref: str) -> None:
    accepted_id = artifact_id(ref)
    assert accepted_id is None or (accepted_id.replace("-", "a").replace("_", "a").isalnum() and accepted_id.isascii())


@pytest.mark.parametrize(("artifact", "service"), [(PNG, "eyes"), (PDF, "reader")], ids=["image", "file"])
@pytest.mark.parametrize("status", [{}, {"status": "success"}], ids=["plain", "with status"])
def test_result_in_a_tool_message_is_parsed(artifact: StoredArtifact, service: str, status: dict[str, str]) -> None:
    """The field `introduced` of a file part is true if the file's name precedes its data."""
    text = json.dumps({**status, **ROUTER.route_content(artifact, service).as_json()})
    part = read_tool_result(text)
    assert part == FilePart(
        artifact.kind, artifact.mime_type, artifact.filename, artifact.size, artifact.id, introduced=True
    )
    assert part.content is not None
    assert artifact.content is not None
    assert list(part.content.blob().blocks()) == list(artifact.content.blob().blocks())


def test_svg_in_an_image_result_is_parsed_as_text() -> None:
    """A model can read SVG as text, so it is not an unsupported image type."""
    url = "data:image/svg+xml;base64," + base64.b64encode(b"<svg/>").decode()
    result = {"contentType": "image", "routing": "image_url", "imageUrl": {"image_url": {"url": url}}}
    part = read_tool_result(json.dumps(result))
    assert part is not None
    assert (part.kind, part.mime_type) == (Kind.TEXT, "image/svg+xml")


@pytest.mark.parametrize("ref", [None, 7, ["a"]])
def test_non_string_reference_is_rejected(ref: object) -> None:
    """A model may call the tool with any JSON value."""
    assert artifact_id(ref) is None


def test_result_without_data_is_parsed_without_content() -> None:
    """A short tool result has no data. A caller with access to the artifact store adds the content."""
    metadata = {"id": "pic_1", "filename": "plan.png", "mimeType": "image/png", "size": 8}
    short = {"status": "success", "contentType": "image", "routing": "image_url", "metadata": metadata}
    part = read_tool_result(json.dumps(short))
    assert part == FilePart(Kind.IMAGE, "image/png", "plan.png", 8, "pic_1", introduced=True)
    assert part.content is None


@pytest.mark.parametrize("size", [True, -5, "8", 2.5])
def test_invalid_size_in_a_result_is_ignored(size: object) -> None:
    metadata = {"id": "pic_1", "mimeType": "image/png", "size": size}
    part = read_tool_result(json.dumps({"contentType": "image", "routing": "image_url", "metadata": metadata}))
    assert part is not None
    assert part.size is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "{}",
        "[1]",
        '{"routing"',
        '{"routing": "image_url"}',
        '{"contentType": "image", "routing": ["image_url"]}',
        '{"contentType": "text", "routing": "text", "content": "x", "metadata": {"id": "a"}}',
        '{"contentType": "image", "routing": "image_url", "imageUrl": 3, "metadata": []}',
        '{"contentType": "binary", "routing": "file", "file": {"file": {}}, "metadata": {"id": "../x"}}',
        '{"contentType": "image", "routing": "text", "content": "described", "metadata": {"id": "a"}}',
        '{"routing": ' + "[" * 100_000,
    ],
)
def test_text_that_is_not_a_tool_result_yields_none(text: str) -> None:
    assert read_tool_result(text) is None


def test_invalid_base64_is_an_error_without_the_data() -> None:
    inner = {"type": "file", "file": {"filename": "a.pdf", "mimeType": "application/pdf", "data": "%%%SECRET%%%"}}
    text = json.dumps({"contentType": "binary", "routing": "file", "file": inner, "metadata": {"id": "a"}})
    with pytest.raises(BadBase64Error, match=r"file\.data") as caught:
        read_tool_result(text)
    assert "SECRET" not in str(caught.value)


def test_text_in_a_file_result_is_parsed_as_text() -> None:
    """Every model can read text."""
    data = base64.b64encode("名称,数量".encode()).decode()
    inner = {"type": "file", "file": {"filename": "t.csv", "mimeType": "text/csv", "data": data}}
    part = read_tool_result(json.dumps({"contentType": "binary", "routing": "file", "file": inner, "metadata": {}}))
    assert part is not None
    assert part.kind is Kind.TEXT
    assert part.content is not None
    text = part.content.text()
    assert text is not None
    assert text.text == "名称,数量"


@given(
    data=st.binary(max_size=60), filename=st.none() | st.text(max_size=20), service=st.sampled_from(["eyes", "reader"])
)
def test_every_result_of_get_artifact_can_be_parsed_back(data: bytes, filename: str | None, service: str) -> None:
    kind, mime_type = (Kind.IMAGE, "image/png") if service == "eyes" else (Kind.DOCUMENT, "application/pdf")
    sent = StoredArtifact("a1", mime_type, kind, True, len(data), filename, content=InMemory(data, kind))
    part = read_tool_result(json.dumps(ROUTER.route_content(sent, service).as_json(), ensure_ascii=False))
    assert part is not None
    assert (part.kind, part.mime_type, part.size, part.artifact_id) == (kind, mime_type, len(data), "a1")
    assert part.content is not None
    assert b"".join(part.content.blob().blocks()) == data


@pytest.mark.requirement("ABR-P3", "ABR-3.1", "ABR-1.4")
@given(
    data=st.binary(min_size=100, max_size=300),
    mime_type=st.sampled_from(["image/jpeg", "image/png", "image/gif", "image/webp"]),
)
def test_bytes_declared_as_an_image_are_sent_to_a_vision_model_as_image_url(data: bytes, mime_type: str) -> None:
    assume(_is_unrecognized(data))
    detection = BinaryDetector().detect(data, declared_mime=mime_type)
    artifact = StoredArtifact(
        "a1",
        detection.mime_type,
        detection.kind,
        detection.is_binary,
        len(data),
        content=InMemory(data, detection.kind),
    )
    result = ROUTER.route_content(artifact, "eyes").as_json()
    assert result["routing"] == "image_url"
    assert result["imageUrl"]["type"] == "image_url"
    assert result["imageUrl"]["image_url"]["url"].startswith(f"data:{mime_type};base64,")


@pytest.mark.requirement("ABR-P3")
@given(
    data=st.binary(min_size=40, max_size=300),
    mime_type=st.sampled_from(["image/jpeg", "image/png", "image/gif", "image/webp"]),
)
def test_bytes_with_control_characters_keep_their_declared_image_type(data: bytes, mime_type: str) -> None:
    """Whatever bytes follow them, the control characters at the beginning resemble neither text nor a signature."""
    junk = bytes([1, 2, 3, 4, 5, 6, 14, 15, 16, 17, 18, 19]) * 12 + data
    detection = BinaryDetector().detect(junk, declared_mime=mime_type)
    artifact = StoredArtifact(
        "a1", detection.mime_type, detection.kind, detection.is_binary, content=InMemory(junk, detection.kind)
    )
    result = ROUTER.route_content(artifact, "eyes")
    assert (result.routing, artifact.mime_type) == ("image_url", mime_type)


def _is_unrecognized(data: bytes) -> bool:
    return BinaryDetector().detect(data).mime_type == "application/octet-stream"


@pytest.mark.parametrize("language", ["en", "zh", None, "fr"])
def test_tools_have_the_function_format_and_describe_every_parameter(language: str | None) -> None:
    tools = tool_definitions(language)
    names = [tool["function"]["name"] for tool in tools]
    assert {"get_artifact", "find_capable_agents"} <= set(names)
    for tool in tools:
        function = tool["function"]
        assert tool["type"] == "function"
        assert function["description"]
        assert set(function["parameters"]["required"]) <= set(function["parameters"]["properties"])
        assert all(parameter["description"] for parameter in function["parameters"]["properties"].values())
    json.dumps(tools)


def test_both_languages_describe_the_same_tools() -> None:
    assert set(TEXTS["en"]) == set(TEXTS["zh"])
