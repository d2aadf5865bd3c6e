"""Binary files over MCP: a tool returns an upload link, and the agent's program sends the file with one PUT."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.artifacts.samples import SAMPLES
from tests.gateway.serving import Server, served

PHOTO = next(sample for sample in SAMPLES if sample.name == "photo.png").data
LIMIT = 1024 * 1024


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("uploads"), settings={"MAX_UPLOAD_BYTES": str(LIMIT)}) as server:
        yield server


@asynccontextmanager
async def connect_client(server: Server) -> Any:
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {server.key}"}) as http:
        transport = streamable_http_client(f"{server.url}/mcp?language=en", http_client=http)
        async with Client(transport) as client:
            yield client


async def request_upload_link(server: Server, filename: str, **fields: Any) -> dict[str, Any]:
    """Call the upload tool without text. Return its response, which contains an upload link."""
    async with connect_client(server) as client:
        result = await client.call_tool("store_artifact", {"filename": filename, **fields})
    assert not result.is_error
    return dict(result.structured_content)


async def test_tool_description_says_how_to_upload_and_requires_only_a_name(server: Server) -> None:
    async with connect_client(server) as client:
        tool = next(
            definition for definition in (await client.list_tools()).tools if definition.name == "store_artifact"
        )
    assert "PUT" in tool.description
    assert "curl -T" in tool.description
    assert tool.input_schema["required"] == ["filename"]


async def test_file_is_uploaded_once_and_can_be_read_by_every_agent(server: Server) -> None:
    link = await request_upload_link(server, "photo.png", mimeType="image/png", size=len(PHOTO))
    assert link["uploadUrl"].startswith(f"{server.url}/api/v1/uploads/")
    stored = httpx2.put(link["uploadUrl"], content=PHOTO)
    assert (stored.status_code, stored.json()["ref"], stored.json()["owner"]) == (201, link["ref"], "text-agent")
    repeated = httpx2.put(link["uploadUrl"], content=PHOTO)
    assert (repeated.status_code, repeated.json()["error"]) == (410, "upload_link_over")
    assert server.get(f"/api/v1/artifacts/{link['ref']}/info")["mimeType"] == "image/png"


async def test_large_file_can_be_uploaded_with_only_a_link(server: Server, tmp_path: Path) -> None:
    """With an upload link, the size limit for unknown callers does not apply, whether or not the upload is chunked."""
    (tmp_path / "large.bin").write_bytes(bytes(range(256)) * 4096)
    curl = shutil.which("curl")
    assert curl is not None
    for source in (("-T", "large.bin"), ("-T", "-")):
        link = await request_upload_link(server, "large.bin")
        with (tmp_path / "large.bin").open("rb") as file:
            completed = subprocess.run(
                [curl, "-sS", "-w", "%{http_code}", "-o", "answer.json", *source, link["uploadUrl"]],
                cwd=tmp_path,
                stdin=file,
                capture_output=True,
                text=True,
                check=True,
            )
        assert completed.stdout == "201"
        assert server.get(f"/api/v1/artifacts/{link['ref']}/info")["size"] == LIMIT


async def test_upload_over_the_limit_is_rejected_and_the_link_stays_valid(server: Server) -> None:
    link = await request_upload_link(server, "large.bin")
    for content in (b"x" * (LIMIT + 1), (b"x" * 1024 for _ in range(LIMIT // 1024 + 1))):
        refused = httpx2.put(link["uploadUrl"], content=content)
        assert (refused.status_code, refused.json()["error"]) == (413, "too_large")
    assert httpx2.put(link["uploadUrl"], content=b"x").status_code == 201
    async with connect_client(server) as client:
        result = await client.call_tool("store_artifact", {"filename": "large.bin", "size": LIMIT + 1})
    assert result.is_error
    assert str(LIMIT) in result.content[0].text


async def test_unknown_link_accepts_no_large_file(server: Server) -> None:
    link = await request_upload_link(server, "a.bin")
    for size in (10, LIMIT):
        assert httpx2.put(f"{link['uploadUrl']}x", content=b"x" * size).status_code == 404


async def test_text_is_stored_directly(server: Server) -> None:
    async with connect_client(server) as client:
        for text in ("words", ""):
            result = await client.call_tool("store_artifact", {"filename": "note.md", "text": text})
            assert result.structured_content["size"] == len(text)


async def test_server_log_contains_no_secret_of_a_link(server: Server) -> None:
    link = await request_upload_link(server, "a.bin")
    for _ in range(2):
        httpx2.put(link["uploadUrl"], content=b"x")
    httpx2.get(link["uploadUrl"])
    assert "/api/v1/uploads/…" in server.log
    assert link["uploadUrl"].rsplit("/", 1)[-1] not in server.log
