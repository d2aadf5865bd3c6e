"""An MCP server that offers the agents' tools. Only this module imports the official MCP package.

The server is stateless, so any process can answer any call (MCP specification of 2026-07-28).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import parse_qs

import mcp_types as types
from jsonschema import Draft202012Validator
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError

from artifacts.core.delivery.content_router import ContentRouteResult
from artifacts.core.delivery.get_artifact import ArtifactNotFound
from artifacts.core.delivery.tools import tool_definitions
from artifacts.core.errors import ArtifactError
from capabilities.core.json_codec import restore_strings
from capabilities.core.permissions import TOOL_SCOPES
from capabilities.core.texts.description import MAX_NAMED_AGENTS
from capabilities.errors import ActionError
from capabilities.fair_slots import requester
from capabilities.json_bodies import received_limit
from routing_admin.api.artifacts.tool_calls import TOOLS, ToolAnswer, choose_language
from routing_admin.api.mcp.callers import KEY, LONG_STRINGS, PATH, McpCaller
from routing_admin.platform.databases.lock_timeout import lock_timeout
from routing_admin.platform.databases.router import borrowed_connections
from routing_admin.platform.databases.unavailable import WAIT_SECONDS
from routing_admin.platform.server.fair_semaphore import slot, threads

INSTRUCTIONS = (
    "Files that agents hand to one another are artifacts, named artifact:<id>. get_artifact gives one in the form that "
    "your model can read; what it cannot read is described, with the agents that can."
)
READ_ONLY_TOOLS = frozenset({"get_artifact", "find_capable_agents", "get_my_capabilities", "list_artifacts"})
"""Names of the tools that change nothing; their MCP annotations mark them as read-only."""
Context = ServerRequestContext[Any, Any]


class ToolServer:
    def __init__(self) -> None:
        server: Server[Any] = Server(
            "routing_admin", version="1", instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
        )
        self._sessions = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=received_limit(PATH)
        )
        self._running = AsyncExitStack()

    async def start(self) -> None:
        """Start answering calls; `close` must be called by the same task."""
        await self._running.enter_async_context(self._sessions.run())

    async def close(self) -> None:
        await self._running.aclose()

    async def answer(self, scope: Any, receive: Any, send: Any) -> None:
        await self._sessions.handle_request(scope, receive, send)


async def list_tools(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    """List the tools that the caller's key allows, with descriptions in the caller's language."""
    caller, language = _read_caller(context)
    allowed = caller.list_tools()
    # Do not offer tools that the key does not allow.
    definitions = [tool["function"] for tool in tool_definitions(language) if tool["function"]["name"] in allowed]
    return types.ListToolsResult(tools=[_definition(function) for function in definitions])


def _definition(function: Mapping[str, Any]) -> types.Tool:
    hints = types.ToolAnnotations(read_only_hint=function["name"] in READ_ONLY_TOOLS, destructive_hint=False)
    described = {"name": function["name"], "description": function["description"]}
    return types.Tool(**described, input_schema=dict(function["parameters"]), annotations=hints)


async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Return a tool's result. A refusal is also a result, so that the model can correct its call.

    Raise `MCPError` if there is no such tool.
    """
    caller, language = _read_caller(context)
    if params.name not in TOOLS:
        message = f"There is no tool {params.name[:100]!r}. tools/list names those there are."
        raise MCPError(types.INVALID_PARAMS, message)
    raw_arguments = restore_strings(params.arguments or {}, _find_scope(context)[LONG_STRINGS])
    # Strict function calling makes every parameter required, so models write null for a parameter they omit.
    arguments = {name: value for name, value in raw_arguments.items() if value is not None}
    refusal = _refuse(caller, params.name, arguments)
    if refusal:
        return _error(refusal)
    try:
        async with slot(threads(), caller.principal.key_owner):
            with lock_timeout(WAIT_SECONDS):
                answer = await asyncio.to_thread(_run, params.name, caller, language, arguments)
    except (ActionError, ArtifactError) as error:
        return _error(str(error))
    return build_result(answer)


def _refuse(caller: McpCaller, name: str, arguments: Mapping[str, Any]) -> str:
    if name not in caller.list_tools():
        return f"This key does not have the scope {TOOL_SCOPES[name]}. An administrator can issue one that has it."
    problem = next(Draft202012Validator(_tool_schema(name)).iter_errors(arguments), None)
    if problem is None:
        return ""
    path = ".".join(str(step) for step in problem.absolute_path)
    # The validator's message repeats the invalid value, which may be long.
    return f"{path}: {problem.message[:300]}" if path else problem.message[:300]


def _tool_schema(name: str) -> Mapping[str, Any]:
    definitions = {tool["function"]["name"]: tool["function"] for tool in tool_definitions()}
    schema: Mapping[str, Any] = definitions[name]["parameters"]
    return schema


def _run(name: str, caller: McpCaller, language: str, arguments: Mapping[str, Any]) -> ToolAnswer:
    requester.set(caller.principal.key_owner)
    with borrowed_connections():
        return TOOLS[name](caller.as_tool_caller(language), arguments)


def _read_caller(context: Context) -> tuple[McpCaller, str]:
    # Descriptions are in the language of the URL's parameter `language`, or else in the default language.
    scope = _find_scope(context)
    language = parse_qs(scope["query_string"].decode("latin-1")).get("language", [""])[0]
    return scope[KEY], choose_language(language[:35])


def _find_scope(context: Context) -> Any:
    assert context.request is not None  # noqa: S101 - every call is made over HTTP
    return context.request.scope


def build_result(answer: ToolAnswer) -> types.CallToolResult:
    """Return a tool's answer in MCP's format: files as content blocks, anything else as text and as a JSON object."""
    if isinstance(answer, ArtifactNotFound):
        return _error(answer.message)
    if isinstance(answer, dict):
        text = types.TextContent(text=json.dumps(answer, ensure_ascii=False))
        return types.CallToolResult(content=[text], structured_content=answer)
    # Put facts about the file into `_meta`: given `structuredContent`, Claude Code and Codex show their models nothing
    # else, so the models would never receive the file.
    facts = {name: value for name, value in answer.as_json().items() if name not in ("content", "imageUrl", "file")}
    content: list[types.ContentBlock] = [build_content(answer.result)]
    if answer.readers:  # There are no readers if the model reads the file itself.
        names, others = answer.readers[:MAX_NAMED_AGENTS], len(answer.readers) - MAX_NAMED_AGENTS
        more = f" and {others} more (find_capable_agents lists them)" if others > 0 else ""
        content.append(types.TextContent(text=f"suggestedAgents: {', '.join(names)}{more}"))
    return types.CallToolResult(content=content, _meta={"artifact": facts})


def build_content(result: ContentRouteResult) -> types.ContentBlock:
    """Return a file as MCP content: an image, audio or text in its own content type, any other file as a resource."""
    if result.image_url is not None:
        head, _, data = result.image_url["image_url"]["url"].partition(";base64,")
        return types.ImageContent(data=data, mime_type=head.removeprefix("data:"))
    if result.file is None:
        return types.TextContent(text=result.content or "")
    file = result.file["file"]
    if str(file["mimeType"]).startswith("audio/"):
        return types.AudioContent(data=file["data"], mime_type=file["mimeType"])
    reference = f"artifact:{result.metadata['id']}"
    blob = types.BlobResourceContents(uri=reference, mime_type=file["mimeType"], blob=file["data"])
    return types.EmbeddedResource(resource=blob)


def _error(sentence: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=sentence)], is_error=True)
