"""Read the fields of a JSON object; error messages name the field."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from capabilities.core.message import CacheBreakpoint, Role
from capabilities.core.translatable import Translatable, translatable
from routing_admin.gateway.errors import BadRequestError

Object = Mapping[str, Any]

AN_OBJECT = translatable("%(param)s must be an object.")
A_LIST = translatable("%(param)s must be a list.")
A_STRING = translatable("%(param)s must be a string.")
STRINGS = translatable("%(param)s must be a string or a list of strings.")
STRING_OR_PARTS = translatable("%(param)s must be a string or a list of parts.")
TRUE_OR_FALSE = translatable("%(param)s must be true or false.")
A_NUMBER = translatable("%(param)s must be a number.")
A_WHOLE_NUMBER = translatable("%(param)s must be a whole number.")
"""Error messages for values of the wrong type."""


def wrong_type_error(sentence: Translatable, param: str) -> BadRequestError:
    """Return the error for a value of the wrong type; `sentence` is a message such as `A_WHOLE_NUMBER`."""
    return BadRequestError(Translatable(sentence.template, {"param": param}), param, "invalid_type")


def missing_field_error(param: str) -> BadRequestError:
    return BadRequestError(translatable("%(param)s is required.", param=param), param, "missing_required_parameter")


def invalid_choice_error(choices: tuple[str, ...], param: str) -> BadRequestError:
    return BadRequestError(translatable("%(param)s must be one of %(choices)s.", param=param, choices=choices), param)


def check_object(value: Any, param: str) -> Object:
    """Return the value if it is a JSON object; raise `BadRequestError` otherwise."""
    if not isinstance(value, dict):
        raise wrong_type_error(AN_OBJECT, param)
    return value


def check_list(value: Any, param: str) -> list[Any]:
    """Return the value if it is a JSON list; raise `BadRequestError` otherwise."""
    if not isinstance(value, list):
        raise wrong_type_error(A_LIST, param)
    return value


def list_parts(content: Any, param: str, text_type: str) -> list[Object]:
    """Return the parts of a message's content; plain text becomes one part of type `text_type`.

    Raise `BadRequestError` for any other value.
    """
    if content is None:
        raise missing_field_error(param)
    if isinstance(content, str):
        return [{"type": text_type, "text": content}]
    if not isinstance(content, list):
        raise wrong_type_error(STRING_OR_PARTS, param)
    return [check_object(part, f"{param}[{number}]") for number, part in enumerate(content)]


def read_text(source: Object, key: str, path: str, *, required: bool = False) -> str | None:
    """Return a string, or None if it is absent or null.

    Raise `BadRequestError` for any other value, and for None if `required`.
    """
    value = source.get(key)
    if value is None and required:
        raise missing_field_error(f"{path}.{key}".lstrip("."))
    if value is not None and not isinstance(value, str):
        raise wrong_type_error(A_STRING, f"{path}.{key}".lstrip("."))
    return value


def require_text(source: Object, key: str, path: str) -> str:
    return read_text(source, key, path, required=True) or ""


def read_flag(source: Object, key: str) -> bool | None:
    """Return a boolean, or None if it is absent or null; raise `BadRequestError` for any other value."""
    value = source.get(key)
    if value is not None and not isinstance(value, bool):
        raise wrong_type_error(TRUE_OR_FALSE, key)
    return value


def read_number(source: Object, key: str, low: float, high: float) -> float | None:
    """Return a finite number within bounds, or None if it is absent or null; raise `BadRequestError` otherwise."""
    value = source.get(key)
    if value is None:
        return None
    # In Python, bool is a subclass of int, but true is not a number here.
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise wrong_type_error(A_NUMBER, key)
    if not low <= value <= high:
        message = translatable(
            ("%(param)s must be a number from %(low)s to %(high)s."), param=key, low=f"{low:g}", high=f"{high:g}"
        )
        raise BadRequestError(message, key, "out_of_range")
    return value


def read_count(source: Object, key: str) -> int | None:
    """Return an integer of at least 1, or None if it is absent or null; raise `BadRequestError` for any other value."""
    value = source.get(key)
    if value is None:
        return None
    # In Python, bool is a subclass of int, but true is not a number here.
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong_type_error(A_WHOLE_NUMBER, key)
    if value < 1:
        raise BadRequestError(
            translatable(("%(param)s must be a whole number of at least 1."), param=key), key, "out_of_range"
        )
    return value


KNOWN_FIELDS = frozenset({"role", "content"})
KNOWN_BY_ROLE: Mapping[Role, frozenset[str]] = MappingProxyType(
    {
        Role.ASSISTANT: KNOWN_FIELDS | {"tool_calls", "refusal", "function_call"},
        Role.TOOL: KNOWN_FIELDS | {"tool_call_id", "name"},
    }
)
"""Maps each role to the message fields that every protocol supports."""
KNOWN_BY_PART: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "image_url": frozenset({"url"}),
        "video_url": frozenset({"url"}),
        "input_audio": frozenset({"data", "format"}),
        "file": frozenset({"file_id", "file_data", "filename", "data", "mimeType"}),
    }
)
"""Maps each type of part to the fields that every protocol supports."""
KNOWN_CALL_FIELDS = frozenset({"id", "type", "function", "custom", "index", "extra_content"})
DEFAULTS = MappingProxyType({"detail": "auto"})
"""Values that have the same meaning as an absent field."""
SECONDS = MappingProxyType({"5m": 300, "1h": 3600, "30m": 1800, "12h": 43200})
KEY_CHARS = 40


def other_fields(value: Object, basic: Collection[str], path: str) -> list[str]:
    """Return the paths of an object's non-empty fields that are not in `basic`."""
    return [
        f"{path}.{key[:KEY_CHARS]}"
        for key, field_value in value.items()
        if key not in basic and field_value not in (None, "", [], {}) and DEFAULTS.get(key) != field_value
    ]


def read_mark(value: Object, path: str) -> CacheBreakpoint | None:
    """Return the cache breakpoint of a message or part, in Anthropic's or OpenAI's format, or None.

    Raise `BadRequestError` if it is not an object.
    """
    for name in ("cache_control", "prompt_cache_breakpoint"):
        if value.get(name) is not None:
            mark_path = f"{path}.{name}"
            ttl = check_object(value[name], mark_path).get("ttl")
            return CacheBreakpoint(SECONDS.get(ttl) if isinstance(ttl, str) else None, mark_path)
    return None
