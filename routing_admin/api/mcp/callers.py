"""Who calls over MCP: an agent by its key, as everywhere, and what the key may do with the tools."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from django.core.handlers.asgi import ASGIRequest

from capabilities.access import Principal, Refusal, authenticate, refuse_query
from capabilities.acts import Actor
from capabilities.core.permissions import TOOL_SCOPES
from routing_admin.api.artifacts.tool_calls import ToolCaller
from routing_admin.api.artifacts.uploads import base_url_of
from routing_admin.platform.databases.lock_timeout import lock_timeout
from routing_admin.platform.databases.router import borrowed_connections
from routing_admin.platform.databases.unavailable import WAIT_SECONDS

PATH = "/mcp"
KEY = "routing_admin.mcp_caller"
"""Where the caller stands in the scope of a request."""
TEXTS = "routing_admin.mcp_texts"
"""Where its long strings are, by the names that are in its body instead of them."""


@dataclass(frozen=True, slots=True)
class McpCaller:
    """The agent of a call, and what is known of the call."""

    principal: Principal
    address: str
    request_id: str
    base_url: str

    def list_tools(self) -> tuple[str, ...]:
        """The tools that its key may call."""
        return tuple(name for name, scope in TOOL_SCOPES.items() if self.principal.may(scope))

    def as_tool_caller(self, language: str) -> ToolCaller:
        """The same for a tool."""
        agent = self.principal.agent
        actor = Actor("agent", agent, self.address, self.request_id)
        return ToolCaller(agent=agent, actor=actor, language=language, key=self.principal.key, base_url=self.base_url)


async def identify(scope: Mapping[str, Any], headers: Mapping[str, str], request_id: str) -> McpCaller | Refusal:
    """The caller behind a request, or why there is none. Queries rows, in a thread."""
    refusal = refuse_query(scope["query_string"].decode("latin-1"))
    if refusal is not None:
        return refusal
    with lock_timeout(WAIT_SECONDS):
        caller = await asyncio.to_thread(_look_up, headers)
    if isinstance(caller, Refusal):
        return caller
    return McpCaller(
        caller, (scope.get("client") or ("",))[0], request_id, base_url_of(ASGIRequest(dict(scope), BytesIO()))
    )


def _look_up(headers: Mapping[str, str]) -> Principal | Refusal:
    with borrowed_connections():
        return authenticate(headers)
