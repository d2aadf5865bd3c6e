"""Convert items of OpenAI's Responses to canonical messages, joining a model's consecutive items to one turn."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from capabilities.core.message import FilePart, Message, Part, Role, TextPart, ToolCall, VendorItem
from capabilities.core.protocols.vendor_tools import word_of
from capabilities.core.thoughts import ReasoningBlock
from capabilities.core.translatable import Translatable, translatable
from capabilities.core.vocabulary import Kind
from routing_admin.gateway.chat.parts import PARTS
from routing_admin.gateway.errors import BadRequestError
from routing_admin.gateway.fields import (
    Object,
    check_list,
    check_object,
    list_parts,
    other_fields,
    read_text,
    refusal_of_choice,
    refusal_of_missing,
    require_text,
)
from routing_admin.gateway.media import Find, References, count_pages, file_of_url, part_of_tool_words
from routing_admin.gateway.reasoning_signatures import unpack_thoughts
from routing_admin.gateway.responses.tools import ADDED, PROTOCOL, item_place, join_name

ROLES: Mapping[str, Role] = MappingProxyType(
    {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM, "developer": Role.SYSTEM}
)
WORDS = ("input_text", "output_text", "text", "refusal", "summary_text", "reasoning_text")
"""Types of text parts; the text of a refusal is in a field of that name."""
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
"""Unsupported items, and what to do instead."""
SAID = (*("compaction", "mcp_list_tools", "mcp_approval_request", "tool_search_output", "program", "program_output"),)
"""Items of a model's turn that only OpenAI understands, besides calls of its tools."""
GIVEN = ("mcp_approval_response", "configuration_update")
"""Items of a caller that only OpenAI understands, besides outputs of its tools."""


@dataclass(slots=True)
class AnsweredItems:
    """A model's turn, collected from consecutive items."""

    words: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    thoughts: list[ReasoningBlock] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    vendor: list[VendorItem] = field(default_factory=list)
    begun: bool = False

    def take_message(self) -> Message:
        parts = (TextPart(self.words),) if self.words else ()
        reasoning_text = "\n".join(filter(None, self.reasoning)) or None
        beside: dict[str, Any] = {
            "reasoning": reasoning_text,
            "thoughts": tuple(self.thoughts),
            "vendor": tuple(self.vendor),
        }
        return Message(Role.ASSISTANT, parts, tuple(self.calls), **beside)


@dataclass(frozen=True, slots=True)
class ItemReader:
    """Read items for one agent; `find` gives the artifacts visible to it.

    `inner` collects the paths of fields that not every protocol has. The first `earlier` items are from the
    conversation that the request continues.
    """

    find: Find
    inner: list[str] = field(default_factory=list)
    earlier: int = 0

    def read_all(self, value: Any) -> Iterator[Message]:
        """Yield all messages in order; raise `BadRequestError` naming the first invalid path."""
        if value is None:
            raise refusal_of_missing("input")
        values = [{"role": "user", "content": value}] if isinstance(value, str) else check_list(value, "input")
        if not values:
            raise BadRequestError(
                translatable("input must be a string or a list with at least one item."), "input", "empty_array"
            )
        newest, turn = _find_newest_words(values), AnsweredItems()
        for at, each in enumerate(values):
            place = item_place(at, self.earlier)
            item = check_object(each, place)
            if self._answers(item, place, turn):
                continue
            if turn.begun:
                yield turn.take_message()
                turn = AnsweredItems()
            message = self._read(item, place, References(self.find, at == newest))
            if message is not None:
                yield message
        if turn.begun:
            yield turn.take_message()

    def _answers(self, item: Object, at: str, turn: AnsweredItems) -> bool:
        # Returns True if the item is part of the model's turn, to which it is added.
        kind = read_text(item, "type", at) or "message"
        if kind == "message" and item.get("role") == "assistant":
            self.inner.extend(other_fields(item, {"type", "role", "content", "id", "status", "phase"}, at))
            for number, part in enumerate(list_parts(item.get("content"), f"{at}.content", "input_text")):
                turn.words += _words_of(part, f"{at}.content[{number}]")
        elif kind in CALLS:
            turn.calls.append(_read_call(item, kind, at))
        elif kind == "reasoning":
            turn.thoughts += unpack_thoughts(read_text(item, "encrypted_content", at) or "")
            for key in ("summary", "content"):
                listed = list_parts(item.get(key) or [], f"{at}.{key}", "summary_text")
                turn.reasoning += [_words_of(each, f"{at}.{key}[{number}]") for number, each in enumerate(listed)]
        elif kind in SAID or kind.endswith("_call"):
            here = (len(turn.words), len(turn.calls), len(turn.thoughts))
            turn.vendor.append(VendorItem(PROTOCOL, word_of(kind), item, at, *here))
        else:
            return False
        turn.begun = True
        return True

    def _read(self, item: Object, at: str, references: References) -> Message | None:
        # Items of the caller or a tool. None means that the item has no message of its own.
        kind = read_text(item, "type", at) or "message"
        if kind == "message":
            return self._read_message(item, at, references)
        if kind in RESULTS:
            parts = self._read_parts(item.get("output"), f"{at}.output", references, from_tool=True)
            # OpenAI's shell names the call by `id`.
            key = "id" if kind == f"{SHELL}_call_output" and item.get("call_id") is None else "call_id"
            return Message(Role.TOOL, parts, tool_call_id=require_text(item, key, at))
        if kind in REFUSED:
            message = Translatable(REFUSED[kind].template, {"param": at})
            raise BadRequestError(message, f"{at}.type", "unsupported_value")
        if kind == ADDED:
            return None
        if kind in GIVEN or kind.endswith("_call_output"):
            return Message(Role.USER, vendor=(VendorItem(PROTOCOL, word_of(kind), item, at),))
        raise refusal_of_choice(("message", *CALLS, *RESULTS, "reasoning"), f"{at}.type")

    def _read_message(self, item: Object, at: str, references: References) -> Message:
        word = require_text(item, "role", at)
        if word not in ROLES:
            raise refusal_of_choice(tuple(ROLES), f"{at}.role")
        self.inner.extend(other_fields(item, {"type", "role", "content", "id", "status"}, at))
        return Message(ROLES[word], self._read_parts(item.get("content"), f"{at}.content", references))

    def _read_parts(
        self, content: Any, place: str, references: References, *, from_tool: bool = False
    ) -> tuple[Part, ...]:
        listed = enumerate(list_parts(content, place, "input_text"))
        return tuple(self._read_part(part, f"{place}[{at}]", references, from_tool=from_tool) for at, part in listed)

    def _read_part(self, part: Object, at: str, references: References, *, from_tool: bool) -> Part:
        kind = require_text(part, "type", at)
        if kind in WORDS:
            words = _words_of(part, at)
            return part_of_tool_words(words, f"{at}.text", references) if from_tool else TextPart(words)
        read = READERS.get(kind)
        if read is None:
            raise refusal_of_choice(("input_text", *READERS), f"{at}.type")
        return read(part, at, references)


def _read_call(item: Object, kind: str, at: str) -> ToolCall:
    # A call of OpenAI's own shell is treated as a call of a tool of that name.
    call_id = require_text(item, "call_id", at)
    if kind == f"{SHELL}_call":
        action = check_object(item.get("action") or {}, f"{at}.action")
        return ToolCall(call_id, SHELL, json.dumps(action, ensure_ascii=False))
    custom = kind == "custom_tool_call"
    arguments = read_text(item, "input" if custom else "arguments", at) or ("" if custom else "{}")
    name = join_name(read_text(item, "namespace", at) or "", require_text(item, "name", at))
    return ToolCall(call_id, name, arguments, custom=custom)


def _read_image(part: Object, at: str, references: References) -> FilePart:
    url = part.get("image_url") if part.get("image_url") is not None else part.get("file_id")
    if url is None:
        raise refusal_of_missing(f"{at}.image_url")
    detail = {"detail": part["detail"]} if part.get("detail") else {}
    if part.get("image_url") is None:
        return PARTS["file"]({"file": {"file_id": url, **detail}}, at, references)
    return PARTS["image_url"]({"image_url": {"url": url, **detail}}, at, references)


def _read_file(part: Object, at: str, references: References) -> FilePart:
    if part.get("file_url") is not None:
        url = require_text(part, "file_url", at)
        return count_pages(file_of_url(url, f"{at}.file_url", references, ANY_DOCUMENT))
    inner = {key: part[key] for key in ("file_id", "file_data", "filename", "detail") if part.get(key) is not None}
    return PARTS["file"]({"file": inner}, at, references)


READERS: Mapping[str, Callable[[Object, str, References], FilePart]] = MappingProxyType(
    {"input_image": _read_image, "input_file": _read_file, "input_audio": PARTS["input_audio"]}
)
"""Type of a file part → its reader."""


def _words_of(part: Object, at: str) -> str:
    key = "refusal" if part.get("type") == "refusal" else "text"
    return require_text(part, key, at)


def _find_newest_words(items: list[Any]) -> int | None:
    spoken = (at for at, each in enumerate(items) if isinstance(each, dict) and each.get("role") == "user")
    return max(spoken, default=None)
