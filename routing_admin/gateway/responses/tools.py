"""Parse the tools and the tool choice of the Responses API.

Tools are listed directly or grouped in namespaces, and their input is JSON or free text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from capabilities.core.message import Tool, VendorItem
from capabilities.core.protocols.vendor_tools import FUNCTION_FIELDS, canonical_tool_name, own_fields
from routing_admin.gateway.chat.parsing import MODES, NO_CHOICE, Choice, read_choice
from routing_admin.gateway.fields import (
    Object,
    check_list,
    check_object,
    invalid_choice_error,
    other_fields,
    read_flag,
    read_text,
    require_text,
)

FUNCTION, CUSTOM, NAMESPACE = "function", "custom", "namespace"
PROTOCOL = "openai-responses"
FUNCTION_KEYS = FUNCTION_FIELDS[PROTOCOL].keys() | {"type", "name", "description", "parameters", "strict"}
ADDED = "additional_tools"
"""Type of an input item that adds tools during a conversation."""
MAX_NAME_LENGTH = 64
"""Maximum length of a tool name; every vendor accepts names of this length."""


def join_name(namespace: str, name: str) -> str:
    """Return the single name that a model receives for a tool in a namespace; it is the same in every turn."""
    joined = f"{namespace}__{name}" if namespace else name
    if len(joined) <= MAX_NAME_LENGTH:
        return joined
    return f"{joined[: MAX_NAME_LENGTH - 9]}_{sha256(joined.encode()).hexdigest()[:8]}"


@dataclass(slots=True)
class ToolReader:
    """Reads a request's tools.

    `inner` collects the paths of nested fields that not every protocol supports, `namespaces` maps joined names to
    namespace and name, and `vendor` collects OpenAI's own tools. The first `earlier` items of the input are from the
    stored conversation that the request continues.
    """

    inner: list[str]
    earlier: int = 0
    namespaces: dict[str, tuple[str, str]] = field(default_factory=dict)
    vendor: list[VendorItem] = field(default_factory=list)

    def read_all(self, body: Object) -> tuple[Tool, ...]:
        """Return the tools of the request and of its input items; raise `BadRequestError` if one is invalid."""
        return tuple(
            tool for values, path in _list_tool_lists(body, self.earlier) for tool in self.read_list(values, path)
        )

    def read_list(self, values: Any, path: str, namespace: str = "") -> Iterator[Tool]:
        """Yield the tools of one list; raise `BadRequestError` with the path of an invalid tool as `param`."""
        for number, tool in enumerate(check_list(values or [], path)):
            tool_path = f"{path}[{number}]"
            value = check_object(tool, tool_path)
            kind = require_text(value, "type", tool_path)
            if kind == NAMESPACE and not namespace:
                self.inner += other_fields(value, {"type", "name", "tools"}, tool_path)
                yield from self.read_list(
                    value.get("tools"), f"{tool_path}.tools", require_text(value, "name", tool_path)
                )
            elif kind in (FUNCTION, CUSTOM):
                yield self._read(value, tool_path, kind, namespace)
            elif not namespace:
                self.vendor.append(VendorItem(PROTOCOL, canonical_tool_name(kind), value, tool_path))
            else:
                self.inner.append(tool_path)

    def _read(self, value: Object, path: str, kind: str, namespace: str) -> Tool:
        description, own_name = read_text(value, "description", path) or "", require_text(value, "name", path)
        name = join_name(namespace, own_name)
        if namespace:
            self.namespaces[name] = (namespace, own_name)
        if kind == CUSTOM:
            self.inner.append(f"{path}.custom")
            return Tool(
                name, description, custom=_nest_grammar(check_object(value.get("format") or {}, f"{path}.format"))
            )
        schema, strict = check_object(value.get("parameters") or {}, f"{path}.parameters"), read_flag(value, "strict")
        self.inner += other_fields(value, FUNCTION_KEYS, path)
        self.vendor += own_fields(PROTOCOL, value, name, path)
        return Tool(name, description, schema, strict)


def _nest_grammar(shape: Object) -> Mapping[str, Any]:
    # In chat completions, the grammar of a custom tool is in a separate object.
    if shape.get("type") != "grammar":
        return shape
    return {"type": "grammar", "grammar": {name: value for name, value in shape.items() if name != "type"}}


def item_path(index: int, earlier: int) -> str:
    """Return an input item's path for the caller; stored items have paths below `previous_response_id`."""
    return f"input[{index - earlier}]" if index >= earlier else f"previous_response_id[{index}]"


def _list_tool_lists(body: Object, earlier: int) -> Iterator[tuple[Any, str]]:
    yield body.get("tools"), "tools"
    items = body.get("input")
    for index, item in enumerate(items if isinstance(items, list) else []):
        if isinstance(item, dict) and item.get("type") == ADDED:
            yield item.get("tools"), f"{item_path(index, earlier)}.tools"


def read_flat_choice(body: Object, vendor: list[VendorItem]) -> Choice:
    """Return the tool choice, which names a tool without a nested object; raise `BadRequestError` if it is invalid.

    A choice of one of OpenAI's own tools is added to `vendor`.
    """
    value = body.get("tool_choice")
    if not isinstance(value, Mapping):
        return read_choice({"tool_choice": value})
    kind = require_text(value, "type", "tool_choice")
    if kind in (FUNCTION, CUSTOM):
        return Choice(name=require_text(value, "name", "tool_choice"))
    if kind != "allowed_tools":
        vendor.append(VendorItem(PROTOCOL, canonical_tool_name(kind), value, "tool_choice"))
        return NO_CHOICE
    tools = [tool for tool in check_list(value.get("tools"), "tool_choice.tools") if isinstance(tool, dict)]
    own_tool = next((tool for tool in tools if not tool.get("name")), None)
    if own_tool is not None:
        vendor.append(VendorItem(PROTOCOL, canonical_tool_name(str(own_tool.get("type"))), value, "tool_choice"))
    names = [require_text(tool, "name", "tool_choice.tools") for tool in tools if tool.get("name")]
    mode = require_text(value, "mode", "tool_choice")
    if mode not in MODES:
        raise invalid_choice_error(MODES, "tool_choice.mode")
    return Choice(mode, None, tuple(names))
