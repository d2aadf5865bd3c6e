"""What every encoder does at the end: leave out, merge, and put the headers on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from capabilities.core.wire import Target

NO_KEY = frozenset({"", "NOT_NEEDED"})
"""Keys that mean that a provider needs none."""


def merge(payload: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """The payload with a provider's own fields put in last; objects are merged, everything else replaced."""
    out = dict(payload)
    for name, value in extra.items():
        own = out.get(name)
        out[name] = merge(own, value) if isinstance(own, dict) and isinstance(value, Mapping) else plain(value)
    return out


def plain(value: Any) -> Any:
    """The same JSON value in dicts and lists, whatever read-only mapping or tuple it came in."""
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def split_params(values: Mapping[str, Any], names: Collection[str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The values without those names, and which of them had been there."""
    kept = {name: value for name, value in values.items() if name not in names}
    return kept, tuple(name for name in values if name in names)


def headers_for(target: Target, key_header: str, *, stream: bool, **fixed: str) -> dict[str, str]:
    """The headers of a call: type, what is accepted, the key, then the provider's own, which come before ours."""
    headers = {
        "content-type": "application/json",
        "accept": "text/event-stream" if stream else "application/json",
        **{name.replace("_", "-"): value for name, value in fixed.items()},
    }
    if target.api_key is not None and target.api_key not in NO_KEY:
        headers[key_header] = f"Bearer {target.api_key}" if key_header == "authorization" else target.api_key
    return {**headers, **{name.lower(): value for name, value in target.headers.items()}}
