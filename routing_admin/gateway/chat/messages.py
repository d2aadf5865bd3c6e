"""OpenAI's messages as canonical ones: every part form of CONTRACT §6, in every role, tool results included."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from artifacts.core.artifact import REF_PREFIX
from artifacts.core.delivery.get_artifact import BadBase64Error, InMemory, read_tool_result
from artifacts.core.detection.kinds import OCTET_STREAM, kind_of, mime_of_filename
from artifacts.core.filenames import clean_filename
from capabilities.core.message import FilePart, Message, Part, Role, TextPart, ToolCall
from capabilities.core.worded import worded
from routing_admin.gateway.errors import BadRequestError
from routing_admin.gateway.fields import (
    STRING_OR_PARTS,
    Object,
    a_list,
    an_object,
    missing_field,
    needed_text,
    text_in,
    wrong_type,
)
from routing_admin.gateway.media import (
    ANY_AUDIO,
    AUDIO_TYPES,
    Find,
    References,
    decode_base64,
    image_of_url,
    part_of_bytes,
    part_of_data_url,
)

ROLES: Mapping[str, Role] = MappingProxyType(
    {
        "system": Role.SYSTEM,
        "developer": Role.SYSTEM,
        "user": Role.USER,
        "assistant": Role.ASSISTANT,
        "tool": Role.TOOL,
    }
)


@dataclass(frozen=True, slots=True)
class MessageReader:
    """Reads messages for one agent; `find` gives the artifacts it may see, which `must_exist` in the newest message."""

    find: Find
    must_exist: bool = True

    def messages(self, value: Any) -> tuple[Message, ...]:
        """All messages. Raises `BadRequestError` naming the first place that is wrong."""
        if value is None:
            raise missing_field("messages")
        values = a_list(value, "messages")
        if not values:
            raise BadRequestError(worded("messages is a list of at least one message."), "messages", "empty_array")
        newest = _newest_user_message(values)
        return tuple(
            MessageReader(self.find, at == newest).message(an_object(each, f"messages[{at}]"), f"messages[{at}]")
            for at, each in enumerate(values)
        )

    def message(self, value: Object, at: str) -> Message:
        """One message. Raises `BadRequestError` for a role that is none, and for what its parts hold wrongly."""
        word = needed_text(value, "role", at)
        role = ROLES.get(word)
        if role is None:
            raise _not_one_of(tuple(ROLES), f"{at}.role")
        calls = _calls(value.get("tool_calls"), f"{at}.tool_calls") if role is Role.ASSISTANT else ()
        parts = self._content(value, role, at, optional=role is Role.ASSISTANT)
        refusal = text_in(value, "refusal", at) if role is Role.ASSISTANT else None
        return Message(
            role,
            (*parts, TextPart(refusal)) if refusal else parts,
            calls,
            needed_text(value, "tool_call_id", at) if role is Role.TOOL else None,
            text_in(value, "name", at),
            text_in(value, "reasoning_content", at) if role is Role.ASSISTANT else None,
        )

    def _content(self, value: Object, role: Role, at: str, *, optional: bool) -> tuple[Part, ...]:
        content, place = value.get("content"), f"{at}.content"
        if content is None and optional:
            return ()
        if content is None:
            raise missing_field(place)
        if isinstance(content, str):
            return (self._words(content, role, place),)
        if not isinstance(content, list):
            raise wrong_type(STRING_OR_PARTS, place)
        return tuple(self._part(each, role, f"{place}[{number}]") for number, each in enumerate(content))

    def _words(self, text: str, role: Role, param: str) -> Part:
        """Words, or the file that a tool's ContentRouteResult holds."""
        if role is not Role.TOOL:
            return TextPart(text)
        try:
            file = read_tool_result(text)
        except BadBase64Error as error:
            raise BadRequestError(error.sentence, param, "invalid_base64") from None
        return TextPart(text) if file is None else self._from_tool(file, param)

    def _from_tool(self, file: FilePart, param: str) -> FilePart:
        """The file of a tool result: its own bytes looked at, or the artifact it names."""
        if isinstance(file.content, InMemory):
            part = part_of_bytes(file.content.data, file.mime_type, file.filename)
            return replace(part, artifact_id=file.artifact_id, led=True)
        part = self._references.part(REF_PREFIX + (file.artifact_id or ""), param, file)
        return replace(part, led=True)

    @property
    def _references(self) -> References:
        return References(self.find, self.must_exist)

    def _part(self, value: Any, role: Role, at: str) -> Part:
        part = an_object(value, at)
        kind = needed_text(part, "type", at)
        if kind in ("text", "refusal"):
            return self._words(needed_text(part, kind, at), role, f"{at}.{kind}")
        read = _PARTS.get(kind)
        if read is None:
            raise _not_one_of(("text", *_PARTS), f"{at}.type")
        return read(part, at, self._references)


def _not_one_of(choices: tuple[str, ...], param: str) -> BadRequestError:
    return BadRequestError(worded("%(param)s is one of %(choices)s.", param=param, choices=choices), param)


def _newest_user_message(messages: list[Any]) -> int | None:
    """Where the newest user message stands: what comes after it was made by machines. None without one."""
    places = (at for at, each in enumerate(messages) if isinstance(each, dict) and each.get("role") == Role.USER.value)
    return max(places, default=None)


def _image(part: Object, at: str, references: References) -> FilePart:
    inner = part.get("image_url")
    place = f"{at}.image_url"
    if isinstance(inner, str):
        return image_of_url(inner, place, references)
    if inner is None:
        raise missing_field(place)
    image = image_of_url(needed_text(an_object(inner, place), "url", place), f"{place}.url", references)
    return replace(image, detail=text_in(inner, "detail", place))


def _audio(part: Object, at: str, references: References) -> FilePart:
    place = f"{at}.input_audio"
    if part.get("input_audio") is None:
        raise missing_field(place)
    inner = an_object(part["input_audio"], place)
    data = needed_text(inner, "data", place)
    if data.startswith(REF_PREFIX):
        return references.part(data, f"{place}.data", ANY_AUDIO)
    if data[:5].lower() == "data:":
        return part_of_data_url(data, f"{place}.data")
    word = needed_text(inner, "format", place)
    mime_type = AUDIO_TYPES.get(word.lower(), f"audio/{word.lower()}")
    return part_of_bytes(decode_base64(data, f"{place}.data"), mime_type, None)


def _file(part: Object, at: str, references: References) -> FilePart:
    """`file_id`, `file_data`, or `data` with `mimeType` as get_artifact returns it."""
    place = f"{at}.file"
    if part.get("file") is None:
        raise missing_field(place)
    inner = an_object(part["file"], place)
    ref = text_in(inner, "file_id", place)
    if ref is not None:
        return references.part(ref, f"{place}.file_id", _file_by_name(text_in(inner, "filename", place)))
    key = "file_data" if inner.get("file_data") is not None else "data"
    data, filename = text_in(inner, key, place), text_in(inner, "filename", place)
    if data is None:
        raise missing_field(f"{place}.file_data")
    if data[:5].lower() == "data:":
        return part_of_data_url(data, f"{place}.{key}", filename)
    return part_of_bytes(decode_base64(data, f"{place}.{key}"), text_in(inner, "mimeType", place), filename)


def _file_by_name(filename: str | None) -> FilePart:
    """What is known of a file by its name alone."""
    mime_type = mime_of_filename(filename) or OCTET_STREAM
    return FilePart(kind_of(mime_type), mime_type, clean_filename(filename) or None)


_PARTS: Mapping[str, Callable[[Object, str, References], FilePart]] = MappingProxyType(
    {"image_url": _image, "input_audio": _audio, "file": _file}
)


def _calls(value: Any, at: str) -> tuple[ToolCall, ...]:
    if value is None:
        return ()
    return tuple(
        _call(an_object(each, f"{at}[{number}]"), f"{at}[{number}]") for number, each in enumerate(a_list(value, at))
    )


def _call(value: Object, at: str) -> ToolCall:
    place = f"{at}.function"
    if value.get("function") is None:
        raise missing_field(place)
    function = an_object(value["function"], place)
    arguments = text_in(function, "arguments", place)
    return ToolCall(
        needed_text(value, "id", at), needed_text(function, "name", place), arguments or "{}", _signature(value)
    )


def _signature(value: Object) -> str | None:
    """The opaque proof that came with a call we gave out, where its caller kept it (see rendering)."""
    google = value.get("extra_content")
    inner = google.get("google") if isinstance(google, dict) else None
    signature = inner.get("thought_signature") if isinstance(inner, dict) else None
    return signature if isinstance(signature, str) else None
