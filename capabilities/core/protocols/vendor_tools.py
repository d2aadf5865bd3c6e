"""Tables of tools, fields, blocks and betas that exist in only one vendor's API, by their `vendorTools` names.

The source is the request and answer types of anthropic 2.11.0, openai 3.52.0 (2026-11-24) and google-genai 3.4.0
(2026-11-25). A test compares the tables with them. In `vendorTools`, a type that is in no table has its name without
the date, and a field its name in snake_case. Administrators can therefore allow types and fields that are newer than
the tables.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from capabilities.core.message import VendorItem
from capabilities.core.providers.presets import preset_for_url_host

BETA_HEADER = "anthropic-beta"
# Stands for all names, including those that a vendor adds later.
EVERY = "*"
# Tools that the vendor runs while the model answers, and fields that control them.
RUN_BY_VENDOR = (
    *("web_search", "web_fetch", "code_execution", "code_interpreter", "file_search", "image_generation", "mcp"),
    *("tool_search", "tool_changes", "programmatic_tool_calling", "max_tool_calls", "citations", "image"),
    *("context_management", "input_examples", "eager_input_streaming", BETA_HEADER),
    *("google_maps", "retrieval", "media_processing", "server_side_tool_invocations"),
)
# Tools that the vendor's models are trained on and that the caller runs. They cost no more than a function.
RUN_BY_CALLER = ("bash", "text_editor", "memory", "computer", "browser", "shell", "local_shell", "apply_patch")
# Tools and fields that use another model or company than the route's, cost several times as much, move data, or name
# accounts at the vendor. They are not allowed by default.
ON_REQUEST = (
    *("advisor", "fallbacks", "speed", "inference_geo", "billing_policy", "diagnostics", "user_profile_id"),
    *("workspace_id", "access_programs", "client_metadata", "parallel_ai_search", "exa_ai_search"),
)
# Names that are allowed if a provider's row has no list. Agents rely on these tools, and dropping them would save
# nothing.
DEFAULT_TOOL_NAMES = frozenset((*RUN_BY_VENDOR, *RUN_BY_CALLER))
# Presets of the vendors' own hosts. Other known hosts imitate the format, but reject or ignore the tools.
VENDORS = frozenset({"anthropic", "openai", "gemini"})

# Fields at the top level of a request, by protocol. For Gemini, fields of `toolConfig`.
FIELDS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "anthropic": {
            "container": "code_execution",
            "mcp_servers": "mcp",
            "compaction": "context_management",
            "fallback_credit_token": "fallbacks",
            BETA_HEADER: BETA_HEADER,
            **{
                name: name
                for name in (
                    *("billing_policy", "context_management", "diagnostics", "fallbacks", "inference_geo", "speed"),
                    *("user_profile_id", "workspace_id"),
                )
            },
        },
        "openai-responses": {
            name: name
            for name in ("access_programs", "client_metadata", "context_management", "image", "max_tool_calls")
        },
        "gemini": {
            "toolConfig.retrievalConfig": "google_maps",
            "toolConfig.includeServerSideToolInvocations": "server_side_tool_invocations",
        },
    }
)
# Fields of a caller's function, by protocol.
FUNCTION_FIELDS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "anthropic": {
            "allowed_callers": "code_execution",
            "defer_loading": "tool_search",
            "eager_input_streaming": "eager_input_streaming",
            "input_examples": "input_examples",
        },
        "openai-responses": {
            "allowed_callers": "programmatic_tool_calling",
            "defer_loading": "tool_search",
            "output_schema": "programmatic_tool_calling",
        },
    }
)
# Types (without the affixes in `_AFFIXES`) that have another name in `vendorTools`.
_TOOL_NAMES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("bash_code_execution", "text_editor_code_execution", "container_upload"), "code_execution"),
        **dict.fromkeys(("tool_search_tool_bm25", "tool_search_tool_regex", "tool_search_output"), "tool_search"),
        **dict.fromkeys(("mcp_list_tools", "mcp_tool_listing", "mcp_approval_request"), "mcp"),
        **dict.fromkeys(("mcp_approval_response", "mcp_toolset"), "mcp"),
        **dict.fromkeys(("program", "program_output"), "programmatic_tool_calling"),
        **dict.fromkeys(("tool_addition", "tool_removal", "configuration_update"), "tool_changes"),
        **dict.fromkeys(("executable_code", "code_execution_result"), "code_execution"),
        **dict.fromkeys(("google_search", "google_search_retrieval", "enterprise_web_search"), "web_search"),
        **dict.fromkeys(("google_search_web", "google_search_image"), "web_search"),
        "url_context": "web_fetch",
        "mcp_servers": "mcp",
        "computer_use": "computer",
        "compaction": "context_management",
        "fallback": "fallbacks",
    }
)
_CAPITAL = re.compile(r"(?<=[a-z])([A-Z])")
_AFFIXES = re.compile(r"_(\d{8}|\d{4}_\d\d_\d\d)$|_(tool_result|tool_use|call_output|call|toolset|preview)$")


def canonical_tool_name(kind: str) -> str:
    """Return the name of a type of tool, block or item: web_search for web_search_20260318 and web_search_call."""
    while kind not in _TOOL_NAMES and (shorter := _AFFIXES.sub("", kind)) != kind:
        kind = shorter
    return _TOOL_NAMES.get(kind, kind)


def field_tool_name(name: str) -> str:
    """Return the name of a field in Gemini's `Tool` or `Part`: web_search for googleSearch."""
    return canonical_tool_name(_CAPITAL.sub(r"_\1", name).lower())


def block_tool_name(block: Mapping[str, Any]) -> str:
    kind = str(block.get("type"))
    # A `server_tool_use` states its tool in `name`, not in its type.
    return canonical_tool_name(str(block.get("name") if kind == "server_tool_use" else kind))


def allowed_tool_names(protocol: str, endpoint: str, configured: Collection[str] | None) -> frozenset[str]:
    """Return the allowed names for a provider: its own list, or the default for its protocol and host."""
    if protocol not in FIELDS:
        return frozenset()
    if configured is not None:
        return frozenset(configured)
    preset = preset_for_url_host(endpoint)
    return DEFAULT_TOOL_NAMES if preset is None or preset.name in VENDORS else frozenset()


def own_fields(protocol: str, function: Mapping[str, Any], name: str, path: str) -> list[VendorItem]:
    """Return a function's fields that only this protocol has. `name` is the function's name in the request."""
    return [
        VendorItem(protocol, tool_word, {"name": name, key: function[key]}, f"{path}.{key}")
        for key, tool_word in FUNCTION_FIELDS[protocol].items()
        if function.get(key) is not None
    ]


def add_tools(functions: Sequence[dict[str, Any]], items: Iterable[VendorItem]) -> list[dict[str, Any]]:
    """Return the functions with their vendor fields, and the vendor's tools at the caller's positions among them."""
    tools = list(functions)
    for item in items:
        match = re.search(r"tools\[(\d+)\](\.)?", item.path)
        if match is None:
            continue
        if not match[2]:
            tools.insert(int(match[1]), item.value)
        for tool in tools if match[2] else ():
            if tool.get("name") == item.value["name"]:
                tool |= item.value
    return tools


def fields_among(items: Iterable[VendorItem]) -> dict[str, Any]:
    return {item.path: item.value for item in items if "[" not in item.path and item.path != BETA_HEADER}
