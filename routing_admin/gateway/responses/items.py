"""Convert items of OpenAI's Responses API to canonical messages. A model's consecutive items become one turn."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from capabilities.core.message import FilePart, Message, Part, Role, TextPart, ToolCall, VendorItem
from capabilities.core.protocols.vendor_tools import canonical_tool_name
from capabilities.core.thoughts import ReasoningBlock
from capabilities.core.translatable import Translatable, translatable
from capabilities.core.vocabulary import Kind
from routing_admin.gateway.chat.parts import PARTS
from routing_admin.gateway.errors import BadRequestError
from routing_admin.gateway.fields import (
    Object,
    check_list,
    check_object,
    invalid_choice_error,
    list_parts,
    missing_field_error,
    other_fields,
    read_text,
    require_text,
)
from routing_admin.gateway.media import Find, References, count_pages, parse_tool_text, url_file
from routing_admin.gateway.reasoning_signatures import unpack_thoughts
from routing_admin.gateway.responses.tools import ADDED, PROTOCOL, item_path, join_name

ROLES: Mapping[str, Role] = MappingProxyType(
    {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM, "developer": Role.SYSTEM}
)
TEXT_TYPES = ("input_text", "output_text", "text", "refusal", "summary_text", "reasoning_text")
"""Types of text parts. The text is in `text`, or in `refusal` for a refusal."""
ANY_DOCUMENT = FilePart(Kind.DOCUMENT, "application/pdf")
SHELL = "local_shell"
CALLS = ("function_call", "custom_tool_call", f"{SHELL}_call")
RESULTS = ("function_call_output", "custom_tool_call_output", f"{SHELL}_call_output")
REFUSED: Mapping[str, Translatable] = MappingProxyType(
    {
        "compaction_trigger": translatable(
            "%(param)s asks for a summary that only OpenAI creates. Send the conversation, or your own summary."
        ),
    }
)
"""Maps item types that are not supported to messages that say what to do instead."""
ANSWER_ITEMS = (
    *("compaction", "mcp_list_tools", "mcp_approval_request", "tool_search_output", "program", "program_output"),
)
"""Types of items in a model's turn that only OpenAI understands, in addition to calls of OpenAI's own tools."""
CALLER_ITEMS = ("mcp_approval_response", "configuration_update")
"""Types of items from a caller that only OpenAI understands, in addition to outputs of OpenAI's own tools."""


@dataclass(slots=True)
class AnsweredItems:
    """A model's turn, collected from consecutive items."""

    text: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    thoughts: list[ReasoningBlock] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    vendor: list[VendorItem] = field(default_factory=list)
    begun: bool = False

    def take_message(self) -> Message:
        parts = (TextPart(self.text),) if self.text else ()
        reasoning_text = "\n".join(filter(None, self.reasoning)) or None
        extras: dict[str, Any] = {
            "reasoning": reasoning_text,
            "thoughts": tuple(self.thoughts),
            "vendor": tuple(self.vendor),
        }
        return Message(Role.ASSISTANT, parts, tuple(self.calls), **extras)


@dataclass(frozen=True, slots=True)
class ItemReader:
    """Reads one agent's items; `find` looks up artifacts visible to the agent.

    `inner` collects the paths of nested fields that not every protocol supports. The first `earlier` items are from the
    stored conversation that the request continues.
    """

    find: Find
    inner: list[str] = field(default_factory=list)
    earlier: int = 0

    def read_all(self, value: Any) -> Iterator[Message]:
        """Yield all messages in order; raise `BadRequestError` with the path of the first invalid field."""
        if value is None:
            raise missing_field_error("input")
        values = [{"role": "user", "content": value}] if isinstance(value, str) else check_list(value, "input")
        if not values:
            raise BadRequestError(
                translatable("input must be a string or a list with at least one item."), "input", "empty_array"
            )
        newest, turn = _find_newest_user_message(values), AnsweredItems()
        for index, raw_item in enumerate(values):
            path = item_path(index, self.earlier)
            item = check_object(raw_item, path)
            if self._add_to_turn(item, path, turn):
                continue
            if turn.begun:
                yield turn.take_message()
                turn = AnsweredItems()
            message = self._read(item, path, References(self.find, index == newest))
            if message is not None:
                yield message
        if turn.begun:
            yield turn.take_message()

    def _add_to_turn(self, item: Object, path: str, turn: AnsweredItems) -> bool:
        # Add an item to the model's turn and return True; return False if it is not part of that turn.
        kind = read_text(item, "type", path) or "message"
        if kind == "message" and item.get("role") == "assistant":
            self.inner.extend(other_fields(item, {"type", "role", "content", "id", "status", "phase"}, path))
            for number, part in enumerate(list_parts(item.get("content"), f"{path}.content", "input_text")):
                turn.text += _read_text(part, f"{path}.content[{number}]")
        elif kind in CALLS:
            turn.calls.append(_read_call(item, kind, path))
        elif kind == "reasoning":
            turn.thoughts += unpack_thoughts(read_text(item, "encrypted_content", path) or "")
            for key in ("summary", "content"):
                parts = list_parts(item.get(key) or [], f"{path}.{key}", "summary_text")
                turn.reasoning += [_read_text(part, f"{path}.{key}[{number}]") for number, part in enumerate(parts)]
        elif kind in ANSWER_ITEMS or kind.endswith("_call"):
            position = (len(turn.text), len(turn.calls), len(turn.thoughts))
            turn.vendor.append(VendorItem(PROTOCOL, canonical_tool_name(kind), item, path, *position))
        else:
            return False
        turn.begun = True
        return True

    def _read(self, item: Object, path: str, references: References) -> Message | None:
        # Convert an item from the caller or from a tool; return None if it is not a message.
        kind = read_text(item, "type", path) or "message"
        if kind == "message":
            return self._read_message(item, path, references)
        if kind in RESULTS:
            parts = self._read_parts(item.get("output"), f"{path}.output", references, from_tool=True)
            # OpenAI's shell tool may identify the call by `id`.
            key = "id" if kind == f"{SHELL}_call_output" and item.get("call_id") is None else "call_id"
            return Message(Role.TOOL, parts, tool_call_id=require_text(item, key, path))
        if kind in REFUSED:
            message = Translatable(REFUSED[kind].template, {"param": path})
            raise BadRequestError(message, f"{path}.type", "unsupported_value")
        if kind == ADDED:
            return None
        if kind in CALLER_ITEMS or kind.endswith("_call_output"):
            return Message(Role.USER, vendor=(VendorItem(PROTOCOL, canonical_tool_name(kind), item, path),))
        raise invalid_choice_error(("message", *CALLS, *RESULTS, "reasoning"), f"{path}.type")

    def _read_message(self, item: Object, path: str, references: References) -> Message:
        role = require_text(item, "role", path)
        if role not in ROLES:
            raise invalid_choice_error(tuple(ROLES), f"{path}.role")
        self.inner.extend(other_fields(item, {"type", "role", "content", "id", "status"}, path))
        return Message(ROLES[role], self._read_parts(item.get("content"), f"{path}.content", references))

    def _read_parts(
        self, content: Any, path: str, references: References, *, from_tool: bool = False
    ) -> tuple[Part, ...]:
        parts = enumerate(list_parts(content, path, "input_text"))
        return tuple(
            self._read_part(part, f"{path}[{index}]", references, from_tool=from_tool) for index, part in parts
        )

    def _read_part(self, part: Object, path: str, references: References, *, from_tool: bool) -> Part:
        kind = require_text(part, "type", path)
        if kind in TEXT_TYPES:
            text = _read_text(part, path)
            return parse_tool_text(text, f"{path}.text", references) if from_tool else TextPart(text)
        read = READERS.get(kind)
        if read is None:
            raise invalid_choice_error(("input_text", *READERS), f"{path}.type")
        return read(part, path, references)


def _read_call(item: Object, kind: str, path: str) -> ToolCall:
    # A call of OpenAI's own shell tool becomes a call of a tool named `local_shell`.
    call_id = require_text(item, "call_id", path)
    if kind == f"{SHELL}_call":
        action = check_object(item.get("action") or {}, f"{path}.action")
        return ToolCall(call_id, SHELL, json.dumps(action, ensure_ascii=False))
    custom = kind == "custom_tool_call"
    arguments = read_text(item, "input" if custom else "arguments", path) or ("" if custom else "{}")
    name = join_name(read_text(item, "namespace", path) or "", require_text(item, "name", path))
    return ToolCall(call_id, name, arguments, custom=custom)


def _read_image(part: Object, path: str, references: References) -> FilePart:
    url = part.get("image_url") if part.get("image_url") is not None else part.get("file_id")
    if url is None:
        raise missing_field_error(f"{path}.image_url")
    detail = {"detail": part["detail"]} if part.get("detail") else {}
    if part.get("image_url") is None:
        return PARTS["file"]({"file": {"file_id": url, **detail}}, path, references)
    return PARTS["image_url"]({"image_url": {"url": url, **detail}}, path, references)


def _read_file(part: Object, path: str, references: References) -> FilePart:
    if part.get("file_url") is not None:
        url = require_text(part, "file_url", path)
        return count_pages(url_file(url, f"{path}.file_url", references, ANY_DOCUMENT))
    inner = {key: part[key] for key in ("file_id", "file_data", "filename", "detail") if part.get(key) is not None}
    return PARTS["file"]({"file": inner}, path, references)


READERS: Mapping[str, Callable[[Object, str, References], FilePart]] = MappingProxyType(
    {"input_image": _read_image, "input_file": _read_file, "input_audio": PARTS["input_audio"]}
)


def _read_text(part: Object, path: str) -> str:
    key = "refusal" if part.get("type") == "refusal" else "text"
    return require_text(part, key, path)


def _find_newest_user_message(items: list[Any]) -> int | None:
    indexes = (index for index, item in enumerate(items) if isinstance(item, dict) and item.get("role") == "user")
    return max(indexes, default=None)
