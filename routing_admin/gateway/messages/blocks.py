"""Convert Anthropic's messages and content blocks to canonical messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from artifacts.core.artifact import REF_PREFIX
from artifacts.core.filenames import clean_filename
from capabilities.core.message import CITATIONS, FilePart, Message, Part, Role, TextPart, ToolCall, VendorItem
from capabilities.core.protocols.anthropic.replies import parse_caller
from capabilities.core.protocols.vendor_tools import block_tool_name
from capabilities.core.thoughts import ReasoningBlock
from capabilities.core.translatable import translatable
from capabilities.core.vocabulary import Kind
from routing_admin.gateway.errors import BadRequestError
from routing_admin.gateway.fields import (
    Object,
    check_list,
    check_object,
    invalid_choice_error,
    list_parts,
    missing_field_error,
    other_fields,
    read_flag,
    read_mark,
    read_text,
    require_text,
)
from routing_admin.gateway.media import (
    ANY_IMAGE,
    Find,
    References,
    bytes_part,
    count_pages,
    decode_base64,
    parse_tool_text,
    url_file,
)
from routing_admin.gateway.messages.thinking_blocks import THINKING, parse_block

PROTOCOL = "anthropic"
ROLES: Mapping[str, Role] = MappingProxyType({"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM})
VENDORS_OWN = (
    *("server_tool_use", "mcp_tool_use", "mcp_tool_listing", "container_upload", "compaction", "fallback"),
    *("tool_addition", "tool_removal"),
)
"""Types of blocks that only Anthropic understands, in addition to results of its own tools."""
ANY_DOCUMENT = FilePart(Kind.DOCUMENT, "application/pdf")
"""Description of a document when only its URL is known."""


@dataclass(frozen=True, slots=True)
class BlockMessageReader:
    """Reads one agent's messages. `find` looks up artifacts visible to the agent.

    With `must_exist`, artifacts in the newest user message must exist. `inner` collects the paths of nested fields that
    not every protocol supports.
    """

    find: Find
    must_exist: bool = True
    inner: list[str] = field(default_factory=list)

    def read_all(self, value: Any) -> Iterator[Message]:
        """Yield all messages in order; raise `BadRequestError` with the path of the first invalid field."""
        if value is None:
            raise missing_field_error("messages")
        values = check_list(value, "messages")
        if not values:
            raise BadRequestError(
                translatable("messages must be a list with at least one message."), "messages", "empty_array"
            )
        newest = _find_newest_user_message(values)
        for index, message in enumerate(values):
            reader = replace(self, must_exist=index == newest)
            yield from reader.read(check_object(message, f"messages[{index}]"), f"messages[{index}]")

    def read(self, value: Object, path: str) -> Iterator[Message]:
        """Yield the canonical messages for one message; each tool result becomes a separate message.

        Raise `BadRequestError` like `read_all`.
        """
        role = require_text(value, "role", path)
        if role not in ROLES:
            raise invalid_choice_error(tuple(ROLES), f"{path}.role")
        self.inner.extend(other_fields(value, {"role", "content"}, path))
        blocks, content_path = list_parts(value.get("content"), f"{path}.content", "text"), f"{path}.content"
        if ROLES[role] is Role.ASSISTANT:
            answer = self._read_answer(blocks, content_path)
            if answer.parts or answer.tool_calls or answer.thoughts or answer.vendor or not blocks:
                yield answer
        else:
            yield from self._read_talk(ROLES[role], blocks, content_path)

    def _read_talk(self, role: Role, blocks: list[Object], path: str) -> Iterator[Message]:
        parts: list[Part] = []
        vendor: list[VendorItem] = []
        for number, block in enumerate(blocks):
            block_path, kind = f"{path}[{number}]", block.get("type")
            if _is_vendors_own(kind):
                vendor.append(VendorItem(PROTOCOL, block_tool_name(block), block, block_path))
                continue
            if kind != "tool_result":
                parts += self.read_block(block, block_path)
                continue
            if parts:
                yield Message(role, tuple(parts))
                parts = []
            yield self._read_result(block, block_path)
        if parts or vendor or not blocks:
            yield Message(role, tuple(parts), vendor=tuple(vendor))

    def _read_result(self, block: Object, path: str) -> Message:
        self.inner.extend(other_fields(block, {"type", "tool_use_id", "content", "is_error", "cache_control"}, path))
        parts: list[Part] = []
        if block.get("content") is not None:
            content_path = f"{path}.content"
            # A tool result's text may be a result of the tool get_artifact, which contains a file.
            for number, content_block in enumerate(list_parts(block["content"], content_path, "text")):
                parts += self.read_block(content_block, f"{content_path}[{number}]", from_tool=True)
        mark = read_mark(block, path)
        if mark:
            parts = [*parts[:-1], replace(parts[-1], cache=mark)] if parts else [TextPart("", mark)]
        call_id, is_error = require_text(block, "tool_use_id", path), read_flag(block, "is_error") or False
        return Message(Role.TOOL, tuple(parts), tool_call_id=call_id, is_error=is_error)

    def _read_answer(self, blocks: list[Object], path: str) -> Message:
        # Preserve the position of reasoning among text and calls, because Anthropic requires it.
        text, mark = "", None
        calls: list[ToolCall] = []
        thoughts: list[ReasoningBlock] = []
        reasoning: list[str] = []
        vendor: list[VendorItem] = []
        for number, block in enumerate(blocks):
            block_path, kind = f"{path}[{number}]", block.get("type")
            parsed_fields = PARSED_BLOCK_FIELDS.get(str(kind), frozenset())
            if kind == "text":
                if block.get(CITATIONS):
                    position = (len(text), len(calls), len(thoughts))
                    vendor.append(VendorItem(PROTOCOL, CITATIONS, block, f"{block_path}.{CITATIONS}", *position))
                    # Citations are passed on to Anthropic as a vendor item, so do not report them as dropped.
                    parsed_fields |= {CITATIONS}
                text += require_text(block, "text", block_path)
            elif kind == "tool_use":
                calls.append(_read_call(block, block_path))
            elif kind in THINKING:
                thoughts += parse_block(block, len(text), len(calls))
                reasoning += [read_text(block, "thinking", block_path) or ""]
            elif _is_vendors_own(kind):
                position = (len(text), len(calls), len(thoughts))
                vendor.append(VendorItem(PROTOCOL, block_tool_name(block), block, block_path, *position))
                continue
            else:
                raise invalid_choice_error(("text", "tool_use", *THINKING), f"{block_path}.type")
            self.inner.extend(other_fields(block, parsed_fields, block_path))
            mark = read_mark(block, block_path) or mark
        parts = (TextPart(text, mark),) if text or mark else ()
        reasoning_text = "\n".join(filter(None, reasoning)) or None
        extras: dict[str, Any] = {"reasoning": reasoning_text, "thoughts": tuple(thoughts), "vendor": tuple(vendor)}
        return Message(Role.ASSISTANT, parts, tuple(calls), **extras)

    def read_block(self, block: Object, path: str, *, from_tool: bool = False) -> list[Part]:
        """Return a block with text or a file as parts; raise `BadRequestError` for any other block."""
        kind = require_text(block, "type", path)
        read = READERS.get(kind)
        if read is None and _is_vendors_own(kind):
            self.inner.append(path)
            return []
        if read is None:
            raise invalid_choice_error((*READERS, "tool_result"), f"{path}.type")
        self.inner.extend(other_fields(block, PARSED_BLOCK_FIELDS[kind], path))
        parts = read(self, block, path)
        if from_tool and kind == "text":
            parts = [parse_tool_text(block["text"], f"{path}.text", self.references)]
        mark = read_mark(block, path)
        return [*parts[:-1], replace(parts[-1], cache=mark)] if mark and parts else parts

    @property
    def references(self) -> References:
        return References(self.find, self.must_exist)


PARSED_BLOCK_FIELDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "text": frozenset({"type", "text", "cache_control"}),
        "image": frozenset({"type", "source", "cache_control"}),
        "document": frozenset({"type", "source", "title", "cache_control"}),
        "search_result": frozenset({"type", "source", "title", "content", "cache_control"}),
        "tool_reference": frozenset({"type", "tool_name", "cache_control"}),
        "tool_use": frozenset({"type", "id", "name", "input", "cache_control", "caller"}),
        "thinking": frozenset({"type", "thinking", "signature"}),
        "redacted_thinking": frozenset({"type", "data"}),
    }
)
"""Maps block types to the fields that are parsed here."""


def _read_text(_: BlockMessageReader, block: Object, path: str) -> list[Part]:
    return [TextPart(require_text(block, "text", path))]


def _read_image(reader: BlockMessageReader, block: Object, path: str) -> list[Part]:
    return [_find_file(reader, block, path, ANY_IMAGE, None)]


def _read_document(reader: BlockMessageReader, block: Object, path: str) -> list[Part]:
    source, source_path = _source(block, path), f"{path}.source"
    title = clean_filename(read_text(block, "title", path)) or None
    kind = source.get("type")
    if kind == "text":
        text = require_text(source, "data", source_path)
        return [bytes_part(text.encode("utf-8", "replace"), read_text(source, "media_type", source_path), title)]
    if kind == "content":
        content_blocks = list_parts(source.get("content"), f"{source_path}.content", "text")
        return [
            part
            for number, content_block in enumerate(content_blocks)
            for part in reader.read_block(content_block, f"{source_path}[{number}]")
        ]
    return [count_pages(_find_file(reader, block, path, ANY_DOCUMENT, title))]


def _read_search_result(reader: BlockMessageReader, block: Object, path: str) -> list[Part]:
    # Convert a search result from the caller's own tools to text: the title and the source, then the content.
    head = "\n".join(filter(None, (read_text(block, "title", path), read_text(block, "source", path))))
    content_blocks = enumerate(list_parts(block.get("content"), f"{path}.content", "text"))
    return [
        TextPart(head),
        *(
            part
            for number, content_block in content_blocks
            for part in reader.read_block(content_block, f"{path}.content[{number}]")
        ),
    ]


def _read_reference(_: BlockMessageReader, block: Object, path: str) -> list[Part]:
    return [TextPart(require_text(block, "tool_name", path))]


def _is_vendors_own(kind: Any) -> bool:
    return isinstance(kind, str) and (kind in VENDORS_OWN or kind.endswith("_tool_result"))


Reader = Callable[[BlockMessageReader, Object, str], list[Part]]
READERS: Mapping[str, Reader] = MappingProxyType(
    {
        "text": _read_text,
        "image": _read_image,
        "document": _read_document,
        "search_result": _read_search_result,
        "tool_reference": _read_reference,
    }
)


def _find_file(
    reader: BlockMessageReader, block: Object, path: str, description: FilePart, title: str | None
) -> FilePart:
    source, source_path = _source(block, path), f"{path}.source"
    kind = require_text(source, "type", source_path)
    if kind == "base64":
        data = decode_base64(require_text(source, "data", source_path), f"{source_path}.data")
        return bytes_part(data, require_text(source, "media_type", source_path), title)
    if kind == "url":
        return url_file(require_text(source, "url", source_path), f"{source_path}.url", reader.references, description)
    if kind == "file":
        ref = require_text(source, "file_id", source_path)
        return reader.references.part(ref, f"{source_path}.file_id", replace(description, filename=title))
    raise invalid_choice_error(("base64", "url", "file"), f"{source_path}.type")


def _source(block: Object, path: str) -> Object:
    if block.get("source") is None:
        raise missing_field_error(f"{path}.source")
    return check_object(block["source"], f"{path}.source")


def _read_call(block: Object, path: str) -> ToolCall:
    arguments = json.dumps(check_object(block.get("input") or {}, f"{path}.input"), ensure_ascii=False)
    identity, name = require_text(block, "id", path), require_text(block, "name", path)
    return ToolCall(identity, name, arguments, caller=parse_caller(block))


def needs_thread(blocks: Any, *, small: bool) -> bool:
    """Return whether reading the content may query the database or examine more than a small image."""
    if not isinstance(blocks, list):
        return False
    return any(_needs_thread(block, small=small) for block in blocks if isinstance(block, dict))


def _needs_thread(block: Object, *, small: bool) -> bool:
    kind, content = block.get("type"), block.get("content")
    if kind == "tool_result":
        return content.lstrip()[:1] == "{" if isinstance(content, str) else bool(content)
    if kind == "image":
        value = block.get("source")
        source = value if isinstance(value, dict) else {}
        inline = source.get("type") in ("base64", "url")
        return not (inline and small) or str(source.get("url") or "").startswith(REF_PREFIX)
    return kind == "document"


def _find_newest_user_message(messages: list[Any]) -> int | None:
    # Skip messages that contain only tool results, because no user wrote them.
    indexes = (
        index for index, message in enumerate(messages) if isinstance(message, dict) and _is_user_message(message)
    )
    return max(indexes, default=None)


def _is_user_message(message: Object) -> bool:
    content = message.get("content")
    blocks = content if isinstance(content, list) else [None]
    return message.get("role") == "user" and any(
        not isinstance(block, dict) or block.get("type") != "tool_result" for block in blocks
    )
