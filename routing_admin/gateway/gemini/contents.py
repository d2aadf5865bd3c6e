"""Convert Gemini's contents to canonical messages.

The parts of a model's turn become one message, and each function response becomes a tool message.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from artifacts.core.detection.kinds import filename_mime, mime_kind
from artifacts.core.filenames import clean_filename
from capabilities.core.message import FilePart, Message, Part, Role, TextPart, ToolCall, VendorItem
from capabilities.core.protocols.gemini.replies import OWN_PARTS, PROTOCOL, part_tool_name
from capabilities.core.thoughts import ReasoningBlock
from capabilities.core.translatable import translatable
from capabilities.core.vocabulary import Kind
from routing_admin.gateway.errors import BadRequestError
from routing_admin.gateway.fields import (
    Object,
    check_object,
    invalid_choice_error,
    missing_field_error,
    other_fields,
    read_text,
    require_text,
)
from routing_admin.gateway.gemini.fields import list_objects, plain_base64, read_fields
from routing_admin.gateway.gemini.rendering import read_part_signature
from routing_admin.gateway.media import (
    Find,
    References,
    bytes_part,
    count_pages,
    decode_base64,
    parse_tool_text,
    url_file,
)

ROLES: Mapping[str, Role] = MappingProxyType(
    {"user": Role.USER, "function": Role.USER, "tool": Role.USER, "model": Role.ASSISTANT}
)
"""Maps Gemini's roles to canonical roles. Older clients send function responses with the roles `function` and `tool`.
"""
FILES = ("inlineData", "fileData")
CONTENT_FIELDS = ("text", *FILES, "functionCall", "functionResponse")
"""Fields of a part that contain its content. Each part has exactly one of them."""
DROPPED_PARTS = ("audioTranscription",)
"""Parts of these types are dropped, and reported as dropped."""
READ = frozenset({*CONTENT_FIELDS, "thought", "thoughtSignature", "partMetadata"})
STORED = "files/"
"""Prefix of file ids in Google's file store. Clients may also put it before an artifact's id."""
ANSWERS = ("result", "output", "error")
"""Fields in which Gemini's clients wrap a function's result if it is not an object."""
VIDEO_HOSTS = ("youtube.com", "youtu.be")


@dataclass(slots=True)
class ContentReader:
    """Reads one agent's contents. `find` looks up artifacts visible to the agent.

    With `must_exist`, artifacts in the newest user message must exist. `inner` collects the paths of nested fields that
    not every protocol supports. `open` maps the ids of calls without a response to function names, because a response
    may omit the id.
    """

    find: Find
    inner: list[str] = field(default_factory=list)
    must_exist: bool = False
    open: dict[str, str] = field(default_factory=dict)

    def read_all(self, value: Any) -> Iterator[Message]:
        """Yield all messages in order; raise `BadRequestError` with the path of the first invalid field."""
        contents = list_objects(value, "contents")
        if not contents:
            raise missing_field_error("contents")
        newest = max((index for index, content in enumerate(contents) if _is_user_content(content)), default=None)
        for number, content in enumerate(contents):
            path = f"contents[{number}]"
            role = read_text(content, "role", path) or "user"
            if role not in ROLES:
                raise invalid_choice_error(("user", "model"), f"{path}.role")
            self.must_exist = number == newest
            self.inner += other_fields(content, {"role", "parts"}, path)
            parts = list_objects(content.get("parts"), f"{path}.parts")
            if ROLES[role] is Role.ASSISTANT:
                yield from self._read_answer(parts, f"{path}.parts", number)
            else:
                yield from self._read_talk(parts, f"{path}.parts", number)

    def read_system(self, value: Any) -> tuple[Message, ...]:
        """Return the system instruction as a message; raise `BadRequestError` unless it is text."""
        if value is None:
            return ()
        path = "systemInstruction.parts"
        instruction = {"parts": {"text": value}} if isinstance(value, str) else read_fields(value, "systemInstruction")
        parts: list[Part] = []
        for number, part in enumerate(list_objects(instruction.get("parts"), path)):
            if self._part_kind(part, f"{path}[{number}]") != "text":
                raise BadRequestError(
                    translatable("%(param)s must be text.", param=f"{path}[{number}]"), f"{path}[{number}]"
                )
            parts.append(TextPart(require_text(part, "text", f"{path}[{number}]")))
        return (Message(Role.SYSTEM, tuple(parts)),) if parts else ()

    def _read_talk(self, values: list[Object], path: str, turn: int) -> Iterator[Message]:
        parts: list[Part] = []
        vendor: list[VendorItem] = []
        for number, part in enumerate(values):
            part_path = f"{path}[{number}]"
            kind = self._part_kind(part, part_path)
            if kind in OWN_PARTS:
                vendor.append(_read_own(part, kind, part_path, 0, 0, 0))
            elif kind == "functionResponse":
                if parts:
                    yield Message(Role.USER, tuple(parts))
                    parts = []
                yield self._read_response(part, f"{part_path}.{kind}", f"gemini_{turn}_{number}")
            elif kind:
                parts.append(self._read_part(part, kind, part_path))
        if parts or vendor or not values:
            yield Message(Role.USER, tuple(parts), vendor=tuple(vendor))

    def _read_answer(self, values: list[Object], path: str, turn: int) -> Iterator[Message]:
        answer_text, reasoning = "", ""
        files: list[Part] = []
        calls: list[ToolCall] = []
        thoughts: list[ReasoningBlock] = []
        vendor: list[VendorItem] = []
        for number, part in enumerate(values):
            part_path = f"{path}[{number}]"
            kind = self._part_kind(part, part_path)
            if kind in OWN_PARTS:
                vendor.append(_read_own(part, kind, part_path, len(answer_text), len(calls), len(thoughts)))
                continue
            text = read_text(part, "text", part_path) or "" if kind == "text" else ""
            if part.get("thought"):
                reasoning += text
            else:
                answer_text += text
            proof = read_text(part, "thoughtSignature", part_path)
            # Preserve the position of a signature among text and calls, because the model requires it there.
            signed = read_part_signature(proof, len(answer_text), len(calls), of_call=kind == "functionCall")
            thoughts += signed.thoughts
            if kind == "functionCall":
                call = self._read_call(
                    read_fields(part[kind], f"{part_path}.{kind}"), f"{part_path}.{kind}", f"{turn}_{number}"
                )
                calls.append(ToolCall(*call, signed.proof, origin=signed.origin))
            elif kind in FILES and not part.get("thought"):
                files.append(self._read_part(part, kind, part_path))
        parts = (*((TextPart(answer_text),) if answer_text else ()), *files)
        if parts or calls or thoughts or vendor or not values:
            extras: dict[str, Any] = {"thoughts": tuple(thoughts), "vendor": tuple(vendor)}
            yield Message(Role.ASSISTANT, parts, tuple(calls), reasoning=reasoning or None, **extras)

    def _part_kind(self, part: Object, path: str) -> str:
        kinds = [name for name in (*CONTENT_FIELDS, *OWN_PARTS, *DROPPED_PARTS) if part.get(name) is not None]
        if len(kinds) > 1 or not (kinds or part.get("thoughtSignature")):
            raise invalid_choice_error(CONTENT_FIELDS, path)
        if kinds and kinds[0] in OWN_PARTS:
            return kinds[0]
        if kinds and kinds[0] in DROPPED_PARTS:
            self.inner.append(path)
            return ""
        # Treat a part that contains only a signature as empty text.
        self.inner += other_fields(part, READ, path)
        return kinds[0] if kinds else "text"

    def _read_part(self, part: Object, kind: str, path: str) -> Part:
        if kind == "text":
            return TextPart(read_text(part, "text", path) or "")
        if kind not in FILES:
            raise invalid_choice_error(("text", *FILES), path)
        data, data_path = read_fields(part[kind], f"{path}.{kind}"), f"{path}.{kind}"
        self.inner += other_fields(data, {"data", "fileUri", "mimeType", "displayName"}, data_path)
        return self._read_inline(data, data_path) if kind == "inlineData" else self._read_reference(data, data_path)

    def _read_inline(self, inline: Object, path: str) -> FilePart:
        data = decode_base64(plain_base64(require_text(inline, "data", path)), f"{path}.data")
        name = clean_filename(read_text(inline, "displayName", path)) or None
        return count_pages(bytes_part(data, require_text(inline, "mimeType", path), name))

    def _read_reference(self, file: Object, path: str) -> FilePart:
        # The URI may be a web URL, a data URL, or the reference or id of an artifact.
        uri, name = (
            require_text(file, "fileUri", path),
            clean_filename(read_text(file, "displayName", path)) or None,
        )
        address = urlsplit(uri) if uri[:4].lower() == "http" else None
        mime = read_text(file, "mimeType", path) or (filename_mime(address.path) if address else None)
        kind = mime_kind(mime) if mime else Kind.OTHER
        if address and not mime and (address.hostname or "").endswith(VIDEO_HOSTS):
            # Gemini accepts YouTube URLs, whose path does not indicate the file type.
            kind, mime = Kind.VIDEO, "video/*"
        description = FilePart(kind, mime or "application/octet-stream", name)
        references, uri_path = References(self.find, self.must_exist), f"{path}.fileUri"
        if address or uri[:5].lower() == "data:":
            return count_pages(url_file(uri, uri_path, references, description))
        return references.part(uri.removeprefix(STORED), uri_path, description)

    def _read_call(self, call: Object, path: str, position: str) -> tuple[str, str, str]:
        # Gemini's calls need no id, so the call's position serves as its id.
        self.inner += other_fields(call, {"id", "name", "args"}, path)
        name, identity = require_text(call, "name", path), read_text(call, "id", path) or f"gemini_{position}"
        self.open[identity] = name
        arguments = check_object(call.get("args") or {}, f"{path}.args")
        return identity, name, json.dumps(arguments, ensure_ascii=False)

    def _read_response(self, part: Object, path: str, position: str) -> Message:
        # Match a response to a call by its id, or else to the first open call of the same function.
        response = read_fields(part["functionResponse"], path)
        self.inner += other_fields(response, {"id", "name", "response", "parts"}, path)
        name, call_id = read_text(response, "name", path) or "", read_text(response, "id", path)
        first = next((call for call, called in self.open.items() if called == name), None)
        identity = call_id if call_id in self.open else first or call_id or position
        self.open.pop(identity, None)
        text, failed = _response_text(check_object(response.get("response") or {}, f"{path}.response"))
        references = References(self.find, self.must_exist)
        parts = [parse_tool_text(text, f"{path}.response", references)]
        for number, extra_part in enumerate(list_objects(response.get("parts"), f"{path}.parts")):
            part_path = f"{path}.parts[{number}]"
            kind = self._part_kind(extra_part, part_path)
            if kind in OWN_PARTS:
                self.inner.append(part_path)
            elif kind:
                parts.append(self._read_part(extra_part, kind, part_path))
        return Message(Role.TOOL, tuple(parts), tool_call_id=identity, is_error=failed)


def _read_own(part: Object, kind: str, path: str, *position: int) -> VendorItem:
    # Preserve parts of Google's own tools unchanged, with the model's signature.
    signed = read_part_signature(read_text(part, "thoughtSignature", path), 0, 0, of_call=True)
    value = {name: field_value for name, field_value in part.items() if name != "thoughtSignature"}
    if signed.proof:
        value["thoughtSignature"] = signed.proof
    return VendorItem(PROTOCOL, part_tool_name(part, kind), value, path, *position, origin=signed.origin)


def _response_text(response: Object) -> tuple[str, bool]:
    # A response must be an object, so clients wrap any other result in one of these fields.
    name, value = next(iter(response.items())) if len(response) == 1 else ("", response)
    if name and name not in ANSWERS:
        value = response
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), name == "error"


def _is_user_content(content: Object) -> bool:
    # Function responses may also have the role `user`, although no user wrote them.
    parts = content.get("parts")
    values = [parts] if isinstance(parts, dict) else parts if isinstance(parts, list) else []
    responses = [value for value in values if isinstance(value, dict) and not RESPONSES.isdisjoint(value)]
    return content.get("role") in (None, "user") and len(responses) < max(len(values), 1)


RESPONSES = frozenset({"functionResponse", "function_response"})


def needs_thread(contents: Any, *, small: bool) -> bool:
    """Return whether reading the contents may query the database or examine more than a small file."""
    values = [contents] if isinstance(contents, dict) else contents if isinstance(contents, list) else []
    for content in values:
        parts = content.get("parts") if isinstance(content, dict) else None
        for part in [parts] if isinstance(parts, dict) else parts if isinstance(parts, list) else []:
            if isinstance(part, dict) and not _is_at_hand(part, small=small):
                return True
    return False


def _is_at_hand(part: Object, *, small: bool) -> bool:
    if "text" in part or "functionCall" in part or "function_call" in part:
        return True
    inline = part.get("inlineData") or part.get("inline_data")
    mime = (inline.get("mimeType") or inline.get("mime_type")) if isinstance(inline, dict) else None
    return small and isinstance(mime, str) and mime.startswith(("image/", "audio/"))
