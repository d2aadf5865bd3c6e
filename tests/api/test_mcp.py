"""The agents' tools over MCP: the official client against a served installation, in both protocol revisions."""

from __future__ import annotations

import base64
import http.client
import json
import os
import urllib.request
from collections.abc import Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult

from artifacts.core.delivery.tools import tool_definitions
from capabilities.core.permissions import TOOL_SCOPES
from routing_admin.api.artifacts.tool_calls import TOOLS
from tests.artifacts.samples import SAMPLES
from tests.gateway.serving import Server, manage, served, server_environment
from tests.preloaded import run_python

FILES = {sample.name: sample for sample in SAMPLES}
READERS = ("text-agent", "vision-agent", "multimodal-agent")
# A script that issues a key for each agent, and one key with fewer scopes.
KEYS = """
import json
from routing_admin.configuration.agents.actions import issue_key
from capabilities.actors import SYSTEM
from capabilities.models import Agent
agents = {each.agent_id: each for each in Agent.objects.all()}
scopes = ("artifacts:write", "artifacts:read", "registry:read")
keys = {name: issue_key(SYSTEM, agent, scopes=scopes)[0] for name, agent in agents.items()}
keys["narrow"] = issue_key(SYSTEM, agents["text-agent"], scopes=("registry:read",))[0]
print(json.dumps(keys))
"""
ERAS = pytest.mark.parametrize("era", ["2026-07-28", "legacy"])


@dataclass
class Installation:
    """A served installation, a key for each agent, and references to files that all agents may read."""

    server: Server
    keys: dict[str, str] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, agent: str) -> Any:
        headers = {"authorization": f"Bearer {self.keys[agent]}"}
        with urllib.request.urlopen(urllib.request.Request(self.server.url + path, headers=headers)) as response:
            return json.loads(response.read())

    @asynccontextmanager
    async def client(self, agent: str, era: str = "auto", query: str = "") -> Any:
        headers = {"authorization": f"Bearer {self.keys[agent]}"} if agent else {}
        async with httpx2.AsyncClient(headers=headers) as http:
            transport = streamable_http_client(f"{self.server.url}/mcp{query}", http_client=http)
            async with Client(transport, mode=era) as client:
                yield client


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    directory = tmp_path_factory.mktemp("mcp")
    with served(directory) as server:
        output = manage(server_environment(directory, server.lab), "shell", "--no-imports", "-c", KEYS)
        installed = Installation(server, json.loads(output))
        for name in ("photo.png", "song.mp3", "report.pdf", "readme.md"):
            installed.refs[name] = _upload(server, installed.keys["text-agent"], name)
        yield installed


def _upload(server: Server, key: str, name: str) -> str:
    boundary, file = "lab", FILES[name]
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
    body = f"{head}Content-Type: {file.mime}\r\n\r\n".encode() + file.data + f"\r\n--{boundary}--\r\n".encode()
    headers = {"authorization": f"Bearer {key}", "content-type": f"multipart/form-data; boundary={boundary}"}
    request = urllib.request.Request(f"{server.url}/api/v1/artifacts", body, headers)
    with urllib.request.urlopen(request) as response:
        return str(json.loads(response.read())["ref"])


def first_text(result: CallToolResult) -> str:
    (first, *_) = result.content
    assert first.type == "text"
    return first.text


def test_tool_definitions_implementations_and_scopes_name_the_same_tools() -> None:
    assert [definition["function"]["name"] for definition in tool_definitions()] == list(TOOLS)
    assert list(TOOLS) == list(TOOL_SCOPES)


@ERAS
async def test_mcp_tools_equal_the_api_tools_in_the_requested_language(installation: Installation, era: str) -> None:
    for language in ("en", "zh"):
        async with installation.client("text-agent", era, f"?language={language}") as client:
            tools = (await client.list_tools()).tools
        defined = installation.get(f"/api/v1/tools?language={language}", "text-agent")["tools"]
        functions = [tool["function"] for tool in defined]
        assert [(tool.name, tool.description, tool.input_schema) for tool in tools] == [
            (function["name"], function["description"], function["parameters"]) for function in functions
        ]


@ERAS
@pytest.mark.parametrize("agent", READERS)
async def test_get_artifact_returns_the_same_content_over_mcp_and_the_api(
    installation: Installation, agent: str, era: str
) -> None:
    """Images and audio have their own MCP content types, documents are sent as resources, and text as text."""
    async with installation.client(agent, era) as client:
        for name, ref in installation.refs.items():
            by_api = installation.get(f"/api/v1/artifacts/{ref}", agent)
            result = await client.call_tool("get_artifact", {"ref": ref})
            assert not result.is_error
            assert decode_result(result) == decode_routing(by_api)
            assert name not in ("photo.png", "song.mp3", "report.pdf") or decode_result(result)[1] in (
                "",
                FILES[name].data,
            )
            facts = {key: value for key, value in by_api.items() if key not in ("content", "imageUrl", "file")}
            assert (result.meta["artifact"], result.structured_content) == (facts, None)


def decode_result(result: CallToolResult) -> tuple[str, Any, str]:
    """Return the type, bytes and text of an MCP result's first content block."""
    first = result.content[0]
    if first.type == "text":
        return ("", "", first.text)
    inner, data = (first.resource, first.resource.blob) if first.type == "resource" else (first, first.data)
    assert first.type == {"image": "image", "audio": "audio"}.get(inner.mime_type.split("/")[0], "resource")
    return (inner.mime_type, base64.b64decode(data), "")


def decode_routing(routed: dict[str, Any]) -> tuple[str, Any, str]:
    """Return the type, bytes and text of a response from the agents' API."""
    if routed["routing"] == "image_url":
        head, _, data = routed["imageUrl"]["image_url"]["url"].partition(";base64,")
        return (head.removeprefix("data:"), base64.b64decode(data), "")
    if routed["routing"] == "file":
        file = routed["file"]["file"]
        return (file["mimeType"], base64.b64decode(file["data"]), "")
    return ("", "", routed["content"])


async def test_each_agent_gets_readable_files_natively_and_descriptions_of_all_others(
    installation: Installation,
) -> None:
    kinds = {}
    for agent in READERS:
        async with installation.client(agent) as client:
            for name in ("photo.png", "song.mp3"):
                result = await client.call_tool("get_artifact", {"ref": installation.refs[name]})
                kinds[agent, name] = [block.type for block in result.content]
                if agent == "text-agent":
                    assert "multimodal-agent" in result.content[-1].text
    assert kinds["vision-agent", "photo.png"] == ["image"]
    assert kinds["multimodal-agent", "song.mp3"] == ["audio"]
    assert kinds["text-agent", "photo.png"] == ["text", "text"]


async def test_text_is_stored_listed_and_read_in_pages(installation: Installation) -> None:
    async with installation.client("vision-agent") as client:
        stored = await client.call_tool("store_artifact", {"text": "你好 agents", "filename": "greeting.md"})
        ref = stored.structured_content["ref"]
        page = await client.call_tool("get_artifact", {"ref": ref, "offset": 3, "limit": 3})
        assert first_text(page).startswith("age\n[")
        assert "offset=6" in first_text(page)
        result = await client.call_tool("list_artifacts", {"q": "greeting", "kind": "text", "limit": 1})
        assert [artifact["ref"] for artifact in result.structured_content["artifacts"]] == [ref]
    async with installation.client("multimodal-agent") as client:
        result = await client.call_tool("list_artifacts", {})
        assert ref not in json.dumps(result.structured_content)


async def test_incomplete_list_says_how_to_continue(installation: Installation) -> None:
    async with installation.client("vision-agent") as client:
        for name in ("one.md", "two.md"):
            await client.call_tool("store_artifact", {"text": name, "filename": name})
        first = (await client.call_tool("list_artifacts", {"limit": 1})).structured_content
        assert "nextCursor" in first["more"]
        result = await client.call_tool("list_artifacts", {"q": "one.md", "limit": 1, "cursor": ""})
        assert "more" not in result.structured_content


async def test_long_text_is_stored_unchanged(installation: Installation) -> None:
    """Long text is taken out before the JSON is parsed, and put back before the tool is called."""
    text = 'He said: "你好 😀\\"\n' * 60_000
    async with installation.client("vision-agent") as client:
        stored = await client.call_tool("store_artifact", {"text": text, "filename": "long.txt"})
    key = {"authorization": f"Bearer {installation.keys['vision-agent']}"}
    address = f"{installation.server.url}/api/v1/artifacts/{stored.structured_content['ref']}/raw"
    with urllib.request.urlopen(urllib.request.Request(address, headers=key)) as response:
        assert response.read().decode() == text


async def test_tools_return_capabilities_and_capable_agents(installation: Installation) -> None:
    async with installation.client("text-agent") as client:
        capable = await client.call_tool("find_capable_agents", {"capability": "vision"})
        capabilities = await client.call_tool("get_my_capabilities", {})
    assert capable.structured_content == {"agents": ["multimodal-agent", "vision-agent"]}
    assert capabilities.structured_content == installation.get("/api/v1/agents/text-agent", "text-agent")


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("get_artifact", {}, "'ref' is a required property"),
        ("get_artifact", {"ref": "artifact:unknown"}, "does not exist"),
        ("get_artifact", {"ref": "artifact:x", "limit": 0}, "limit: 0 is less than the minimum of 1"),
        ("list_artifacts", {"kind": "smell"}, "kind: 'smell' is not one of"),
        ("list_artifacts", {"cursor": "nonsense"}, "cursor"),
        ("store_artifact", {"text": "x", "filename": "n", "more": 1}, "'more' was unexpected"),
    ],
)
async def test_invalid_tool_call_returns_a_message_that_explains_the_error(
    installation: Installation, name: str, arguments: dict[str, Any], sentence: str
) -> None:
    async with installation.client("text-agent", query="?language=en") as client:
        result = await client.call_tool(name, arguments)
    assert result.is_error
    assert sentence in first_text(result)


async def test_null_argument_counts_as_absent(installation: Installation) -> None:
    """With strict function calling, models must send null for unused parameters."""
    async with installation.client("text-agent") as client:
        artifacts = await client.call_tool("list_artifacts", dict.fromkeys(("q", "kind", "limit", "cursor")))
        artifact = await client.call_tool("get_artifact", {"ref": installation.refs["readme.md"], "offset": None})
    assert not artifacts.is_error
    assert first_text(artifact) == FILES["readme.md"].data.decode()


async def test_key_lists_and_calls_the_tools_that_its_scopes_allow(installation: Installation) -> None:
    async with installation.client("narrow") as client:
        tool_names = [tool.name for tool in (await client.list_tools()).tools]
        assert tool_names == ["find_capable_agents", "get_my_capabilities"]
        result = await client.call_tool("store_artifact", {"text": "x", "filename": "n"})
        assert result.is_error
        assert "artifacts:write" in first_text(result)
        with pytest.raises(MCPError, match="There is no tool 'remove'"):
            await client.call_tool("remove", {})


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({}, 401, "key_missing"),
        ({"authorization": "Bearer ra_wrong"}, 401, "key_invalid"),
        ({"host": "elsewhere.example"}, 400, "host_not_allowed"),
    ],
)
def test_requests_without_a_key_are_rejected_before_the_package_is_imported(
    installation: Installation, headers: dict[str, str], status: int, code: str
) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    answer = httpx2.post(f"{installation.server.url}/mcp", json=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (status, code)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_get_and_delete_return_405(installation: Installation, method: str) -> None:
    """An event stream opened by GET would stay open, without any event, for as long as the client runs."""
    headers = {"authorization": f"Bearer {installation.keys['text-agent']}", "accept": "text/event-stream"}
    answer = httpx2.request(method, f"{installation.server.url}/mcp", headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (405, "method_not_allowed")


def test_mcp_body_size_is_limited_by_the_gateways_setting(installation: Installation) -> None:
    """The MCP package's own limit is four MiB."""
    headers = {
        "authorization": f"Bearer {installation.keys['text-agent']}",
        "accept": "application/json, text/event-stream",
    }
    arguments = {"text": "x" * (6 * 1024 * 1024), "filename": "long.txt"}
    params = {"name": "store_artifact", "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    stored = httpx2.post(f"{installation.server.url}/mcp", json=body, headers=headers, timeout=30)
    assert stored.json()["result"]["structuredContent"]["size"] == 6 * 1024 * 1024
    connection = http.client.HTTPConnection("127.0.0.1", installation.server.port, timeout=30)
    connection.putrequest("POST", "/mcp")
    for name, value in (headers | {"content-type": "application/json", "content-length": str(10**9)}).items():
        connection.putheader(name, value)
    connection.endheaders()
    assert connection.getresponse().status == 413


def test_mcp_package_is_not_imported_at_startup() -> None:
    """Importing the MCP package takes 19 MB and half a second."""
    script = "import sys, routing_admin.asgi; sys.exit('mcp' in sys.modules or 'jsonschema' in sys.modules)"
    assert run_python(os.environ, "-c", script).returncode == 0
