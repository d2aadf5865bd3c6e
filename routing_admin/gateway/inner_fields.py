"""Fields below the top of a request: which are read, and where the others stand, so that none is lost unseen."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from capabilities.core.message import CacheMark, Role
from routing_admin.gateway.fields import Object, check_object

KNOWN = frozenset({"role", "content"})
KNOWN_OF: Mapping[Role, frozenset[str]] = MappingProxyType(
    {
        Role.ASSISTANT: KNOWN | {"tool_calls", "refusal", "function_call"},
        Role.TOOL: KNOWN | {"tool_call_id", "name"},
    }
)
"""What every protocol has a place for in a message, by who speaks."""
KNOWN_INSIDE: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "image_url": frozenset({"url"}),
        "video_url": frozenset({"url"}),
        "input_audio": frozenset({"data", "format"}),
        "file": frozenset({"file_id", "file_data", "filename", "data", "mimeType"}),
    }
)
"""The same inside a part, by its kind."""
KNOWN_OF_CALL = frozenset({"id", "type", "function", "custom", "index", "extra_content"})
DEFAULTS = MappingProxyType({"detail": "auto"})
"""What says no more than its absence does."""
SECONDS = MappingProxyType({"5m": 300, "1h": 3600, "30m": 1800, "12h": 43200})
KEY_CHARS = 40


def other_fields(value: Object, basic: Collection[str], at: str) -> list[str]:
    """Where an object says something in fields that are not among the `basic` ones."""
    return [
        f"{at}.{key[:KEY_CHARS]}"
        for key, said in value.items()
        if key not in basic and said not in (None, "", [], {}) and DEFAULTS.get(key) != said
    ]


def read_mark(value: Object, at: str) -> CacheMark | None:
    """The end of a prefix worth keeping, in the words of either vendor; None without one.

    Raises `BadRequestError` for one that is no object.
    """
    for name in ("cache_control", "prompt_cache_breakpoint"):
        if value.get(name) is not None:
            place = f"{at}.{name}"
            ttl = check_object(value[name], place).get("ttl")
            return CacheMark(SECONDS.get(ttl) if isinstance(ttl, str) else None, place)
    return None
