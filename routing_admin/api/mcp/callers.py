"""Authenticate callers over MCP, and list the tools that their keys allow."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from django.core.handlers.asgi import ASGIRequest

from capabilities.access import Principal, Refusal, authenticate, refuse_query
from capabilities.actors import Actor
from capabilities.core.permissions import TOOL_SCOPES
from routing_admin.api.artifacts.tool_calls import ToolCaller
from routing_admin.api.artifacts.uploads import request_base_url
from routing_admin.platform.databases.lock_timeout import lock_timeout
from routing_admin.platform.databases.router import borrowed_connections
from routing_admin.platform.databases.unavailable import WAIT_SECONDS

PATH = "/mcp"
KEY = "routing_admin.mcp_caller"
"""Key of the ASGI scope under which the caller is stored."""
LONG_STRINGS = "routing_admin.mcp_texts"
"""Key of the ASGI scope for a mapping from placeholders in the body to the long strings that they replace."""


@dataclass(frozen=True, slots=True)
class McpCaller:
    """An authenticated agent and its request."""

    principal: Principal
    address: str
    request_id: str
    base_url: str

    def list_tools(self) -> tuple[str, ...]:
        return tuple(name for name, scope in TOOL_SCOPES.items() if self.principal.may(scope))

    def as_tool_caller(self, language: str) -> ToolCaller:
        agent = self.principal.agent
        actor = Actor("agent", agent, self.address, self.request_id)
        return ToolCaller(agent=agent, actor=actor, language=language, key=self.principal.key, base_url=self.base_url)


async def identify(scope: Mapping[str, Any], headers: Mapping[str, str], request_id: str) -> McpCaller | Refusal:
    """Return the authenticated caller, or the error response; queries the database in a thread."""
    refusal = refuse_query(scope["query_string"].decode("latin-1"))
    if refusal is not None:
        return refusal
    with lock_timeout(WAIT_SECONDS):
        caller = await asyncio.to_thread(_look_up, headers)
    if isinstance(caller, Refusal):
        return caller
    return McpCaller(
        caller, (scope.get("client") or ("",))[0], request_id, request_base_url(ASGIRequest(dict(scope), BytesIO()))
    )


def _look_up(headers: Mapping[str, str]) -> Principal | Refusal:
    with borrowed_connections():
        return authenticate(headers)
