"""Convert OpenAI's messages to canonical messages: every type of part in every role, including tool results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any

from capabilities.core.message import Message, Part, Role, TextPart, ToolCall
from capabilities.core.protocols.thought_fields import parse_signature
from capabilities.core.thoughts import ReasoningBlock
from capabilities.core.translatable import translatable
from capabilities.core.values import value_class
from routing_admin.gateway.chat.parts import PARTS
from routing_admin.gateway.errors import BadRequestError
from routing_admin.gateway.fields import (
    KNOWN_BY_PART,
    KNOWN_BY_ROLE,
    KNOWN_CALL_FIELDS,
    KNOWN_FIELDS,
    STRING_OR_PARTS,
    Object,
    check_list,
    check_object,
    invalid_choice_error,
    missing_field_error,
    other_fields,
    read_mark,
    read_text,
    require_text,
    wrong_type_error,
)
from routing_admin.gateway.media import Find, References, parse_tool_text
from routing_admin.gateway.messages.thinking_blocks import THINKING, parse_block
from routing_admin.gateway.reasoning_signatures import read_own_thoughts, read_signature

ROLES: Mapping[str, Role] = MappingProxyType(
    {
        "system": Role.SYSTEM,
        "developer": Role.SYSTEM,
        "user": Role.USER,
        "assistant": Role.ASSISTANT,
        "tool": Role.TOOL,
        "function": Role.TOOL,
    }
)
PLAIN = 2
"""Number of fields in a plain message or part: its role or type, and its content."""
FUNCTION = "function"
"""Role of a function result in the old function API. Such a message contains the function's name instead of a call id.
"""


@value_class
class MessageReader:
    """Reads one agent's messages. `find` looks up artifacts visible to the agent.

    With `must_exist`, artifacts in the newest user message must exist. `inner` collects the paths of nested fields that
    not every protocol supports. `old_calls` maps function names to the ids that are generated for calls in the old API
    (`function_call`).
    """

    find: Find
    must_exist: bool = True
    inner: list[str] = field(default_factory=list)
    old_calls: dict[str, str] = field(default_factory=dict)

    def read_all(self, value: Any) -> tuple[Message, ...]:
        """Return all messages; raise `BadRequestError` with the path of the first invalid field."""
        if value is None:
            # A missing list, a value of another type and an empty list each have their own error message.
            raise missing_field_error("messages")
        values = check_list(value, "messages")
        if not values:
            raise BadRequestError(
                translatable("messages must be a list with at least one message."), "messages", "empty_array"
            )
        newest = _find_newest_user_message(values)
        return tuple(
            MessageReader(self.find, index == newest, self.inner, self.old_calls).read(
                check_object(message, f"messages[{index}]"), f"messages[{index}]"
            )
            for index, message in enumerate(values)
        )

    def read(self, value: Object, path: str) -> Message:
        """Return one message; raise `BadRequestError` for an invalid role or part."""
        role_name = require_text(value, "role", path)
        role = ROLES.get(role_name)
        if role is None:
            raise invalid_choice_error(tuple(ROLES), f"{path}.role")
        calls = self._read_calls(value, path) if role is Role.ASSISTANT else ()
        thoughts: tuple[ReasoningBlock, ...] = ()
        if role is Role.ASSISTANT and isinstance(value.get("content"), list):
            value, thoughts = take_thinking(value)
        parts = self._read_content(value, role, path, optional=role is Role.ASSISTANT)
        if len(value) > PLAIN:
            self.inner.extend(other_fields(value, KNOWN_BY_ROLE.get(role, KNOWN_FIELDS), path))
            parts = self._mark_last(parts, value, path)
        call_id = self._read_call_id(value, role_name, path) if role is Role.TOOL else None
        message = Message(role, parts, calls, call_id, read_text(value, "name", path))
        return _add_reasoning(message, value, path, thoughts) if role is Role.ASSISTANT else message

    def _mark_last(self, parts: tuple[Part, ...], value: Object, path: str) -> tuple[Part, ...]:
        # A cache breakpoint ends the part of the prompt that the vendor caches. A message's breakpoint applies to the
        # message's last part, unless that part has a breakpoint of its own.
        mark = read_mark(value, path)
        if mark is None or (parts and parts[-1].cache):
            return parts
        return (*parts[:-1], replace(parts[-1], cache=mark)) if parts else (TextPart("", mark),)

    def _read_calls(self, value: Object, path: str) -> tuple[ToolCall, ...]:
        # A `function_call` of the old API has no id, so an id is generated.
        calls = _read_calls(value.get("tool_calls"), f"{path}.tool_calls", self.inner)
        if value.get("function_call") is None:
            return calls
        call_path = f"{path}.function_call"
        old_call = check_object(value["function_call"], call_path)
        name = require_text(old_call, "name", call_path)
        self.old_calls[name] = f"call_{path.removeprefix('messages[').removesuffix(']')}"
        return (*calls, ToolCall(self.old_calls[name], name, read_text(old_call, "arguments", call_path) or "{}"))

    def _read_call_id(self, value: Object, role_name: str, path: str) -> str:
        if role_name != FUNCTION:
            return require_text(value, "tool_call_id", path)
        name = require_text(value, "name", path)
        return self.old_calls.get(name, name)

    def _read_content(self, value: Object, role: Role, path: str, *, optional: bool) -> tuple[Part, ...]:
        content, content_path = value.get("content"), f"{path}.content"
        if content is None and optional:
            return ()
        if content is None:
            raise missing_field_error(content_path)
        if isinstance(content, str):
            return (self._read_text(content, role, content_path),)
        if not isinstance(content, list):
            raise wrong_type_error(STRING_OR_PARTS, content_path)
        return tuple(self._read_part(part, role, f"{content_path}[{number}]") for number, part in enumerate(content))

    def _read_text(self, text: str, role: Role, param: str) -> Part:
        # A tool message's text may be a result of the tool get_artifact, which contains a file.
        return parse_tool_text(text, param, self._references) if role is Role.TOOL else TextPart(text)

    @property
    def _references(self) -> References:
        return References(self.find, self.must_exist)

    def _read_part(self, value: Any, role: Role, path: str) -> Part:
        part = check_object(value, path)
        kind = require_text(part, "type", path)
        if kind in ("text", "refusal"):
            result = self._read_text(require_text(part, kind, path), role, f"{path}.{kind}")
        else:
            read = PARTS.get(kind)
            if read is None:
                raise invalid_choice_error(("text", *PARTS), f"{path}.type")
            result = read(part, path, self._references)
            if isinstance(part[kind], dict):
                self.inner.extend(other_fields(part[kind], KNOWN_BY_PART[kind], f"{path}.{kind}"))
        if len(part) <= PLAIN:
            return result
        self.inner.extend(other_fields(part, {"type", kind}, path))
        mark = read_mark(part, path)
        return replace(result, cache=mark) if mark else result


def take_thinking(value: Object) -> tuple[Object, tuple[ReasoningBlock, ...]]:
    """Return the message without the Anthropic thinking blocks in its content, and the removed blocks.

    Clients of LiteLLM and LangChain leave these blocks in messages when a conversation continues through another API.
    """
    other_parts: list[Any] = []
    thoughts: list[ReasoningBlock] = []
    text_length = 0
    for part in value["content"]:
        if isinstance(part, dict) and part.get("type") in THINKING:
            thoughts += parse_block(part, text_length, 0)
            continue
        # A thinking block's position is the number of text characters before it.
        text_length += len(str(part.get("text") or "")) if isinstance(part, dict) else 0
        other_parts.append(part)
    return (
        ({**value, "content": other_parts}, tuple(thoughts))
        if len(other_parts) < len(value["content"])
        else (value, ())
    )


def _add_reasoning(message: Message, value: Object, path: str, thoughts: tuple[ReasoningBlock, ...]) -> Message:
    # Vendors have two names for the reasoning text: `reasoning_content` and `reasoning`.
    refusal = read_text(value, "refusal", path)
    reasoning = read_text(value, "reasoning_content", path) or read_text(value, "reasoning", path)
    thoughts = (*thoughts, *read_own_thoughts(value))
    if not (refusal or reasoning or thoughts):
        return message
    parts = (*message.parts, TextPart(refusal)) if refusal else message.parts
    return replace(message, parts=parts, reasoning=reasoning, thoughts=thoughts)


def _find_newest_user_message(messages: list[Any]) -> int | None:
    # Only artifacts in the newest user message must exist: earlier messages may refer to artifacts that have been
    # deleted since.
    indexes = (
        index
        for index, message in enumerate(messages)
        if isinstance(message, dict) and message.get("role") == Role.USER.value
    )
    return max(indexes, default=None)


def _read_calls(value: Any, path: str, inner: list[str]) -> tuple[ToolCall, ...]:
    if value is None:
        return ()
    return tuple(
        _read_call(check_object(call, f"{path}[{number}]"), f"{path}[{number}]", inner)
        for number, call in enumerate(check_list(value, path))
    )


def _read_call(value: Object, path: str, inner: list[str]) -> ToolCall:
    kind, arguments_key = ("custom", "input") if value.get("type") == "custom" else (FUNCTION, "arguments")
    call_path = f"{path}.{kind}"
    if value.get(kind) is None:
        raise missing_field_error(call_path)
    call = check_object(value[kind], call_path)
    arguments = read_text(call, arguments_key, call_path)
    inner += other_fields(value, KNOWN_CALL_FIELDS, path)
    inner += other_fields(call, {"name", arguments_key}, call_path)
    custom = kind == "custom"
    # Not every protocol supports custom tools, so add this field to those that may be unsupported.
    if custom:
        inner.append(call_path)
    name = require_text(call, "name", call_path)
    signature, origin = read_signature(parse_signature(value))
    # Empty function arguments mean an empty object.
    return ToolCall(
        require_text(value, "id", path), name, arguments or ("" if custom else "{}"), signature, custom, origin
    )
