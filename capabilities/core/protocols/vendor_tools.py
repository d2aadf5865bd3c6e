"""Tables of tools, fields, blocks and betas that only one vendor's API has, with their names in `vendorTools`.

A provider's `vendorTools` are the names that callers may use with it. The tables are based on the request and response
types of anthropic 2.11.0, openai 3.52.0 (2026-11-24) and google-genai 3.4.0 (2026-11-25), and a test compares them with
these types. In `vendorTools`, a type that is missing from the tables goes by its own name without the date, and such a
field by its name in snake_case. Administrators can therefore allow types and fields that are newer than the tables.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from capabilities.core.message import VendorItem
from capabilities.core.providers.presets import preset_for_url_host

BETA_HEADER = "anthropic-beta"
# This entry allows all names, including those that a vendor adds later.
EVERY = "*"
# Tools that run at the vendor while the model answers, and fields that control them.
RUN_BY_VENDOR = (
    *("web_search", "web_fetch", "code_execution", "code_interpreter", "file_search", "image_generation", "mcp"),
    *("tool_search", "tool_changes", "programmatic_tool_calling", "max_tool_calls", "citations", "image"),
    *("context_management", "input_examples", "eager_input_streaming", BETA_HEADER),
    *("google_maps", "retrieval", "media_processing", "server_side_tool_invocations"),
)
# Tools that the vendor's models are trained to use and that run on the caller's side. The vendor charges no more for
# them than for ordinary functions.
RUN_BY_CALLER = ("bash", "text_editor", "memory", "computer", "browser", "shell", "local_shell", "apply_patch")
# Tools and fields that use a different model or company than the route specifies, cost several times as much, move
# data, or name accounts at the vendor. They are not allowed by default.
ON_REQUEST = (
    *("advisor", "fallbacks", "speed", "inference_geo", "billing_policy", "diagnostics", "user_profile_id"),
    *("workspace_id", "access_programs", "client_metadata", "parallel_ai_search", "exa_ai_search"),
)
# These names are allowed if the provider's configuration has no list. Agents rely on these tools, and dropping them
# would save nothing.
DEFAULT_TOOL_NAMES = frozenset((*RUN_BY_VENDOR, *RUN_BY_CALLER))
# Presets of the vendors' own hosts. Other known hosts use the same format, but reject or ignore the tools.
VENDORS = frozenset({"anthropic", "openai", "gemini"})

# Maps top-level fields of a request to their `vendorTools` name, by protocol. For Gemini, these are fields of
# `toolConfig`.
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
# Maps fields of a caller's function to their `vendorTools` name, by protocol.
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
# Maps types, without the affixes in `_AFFIXES`, to their `vendorTools` name if it is different.
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
    """Return the `vendorTools` name for a type of tool, block or item.

    For example, return `web_search` for `web_search_20260318` and `web_search_call`.
    """
    while kind not in _TOOL_NAMES and (shorter := _AFFIXES.sub("", kind)) != kind:
        kind = shorter
    return _TOOL_NAMES.get(kind, kind)


def field_tool_name(name: str) -> str:
    """Return the `vendorTools` name for a field of Gemini's `Tool` or `Part`: `web_search` for `googleSearch`."""
    return canonical_tool_name(_CAPITAL.sub(r"_\1", name).lower())


def block_tool_name(block: Mapping[str, Any]) -> str:
    kind = str(block.get("type"))
    # The name of the tool is in the `name` of a `server_tool_use`, not in its type.
    return canonical_tool_name(str(block.get("name") if kind == "server_tool_use" else kind))


def allowed_tool_names(protocol: str, endpoint: str, configured: Collection[str] | None) -> frozenset[str]:
    """Return the allowed `vendorTools` names: the provider's own list, or the default for its protocol and host."""
    if protocol not in FIELDS:
        return frozenset()
    if configured is not None:
        return frozenset(configured)
    preset = preset_for_url_host(endpoint)
    return DEFAULT_TOOL_NAMES if preset is None or preset.name in VENDORS else frozenset()


def own_fields(protocol: str, function: Mapping[str, Any], name: str, path: str) -> list[VendorItem]:
    """Return the fields of a function that exist only in this protocol.

    `name` is the function's name in the request.
    """
    return [
        VendorItem(protocol, tool_word, {"name": name, key: function[key]}, f"{path}.{key}")
        for key, tool_word in FUNCTION_FIELDS[protocol].items()
        if function.get(key) is not None
    ]


def add_tools(functions: Sequence[dict[str, Any]], items: Iterable[VendorItem]) -> list[dict[str, Any]]:
    """Return the functions with their vendor fields, and the vendor's tools at their original positions among them."""
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
