"""Convert the fields of a model's answer, except its text, to OpenAI's format.

All fields that OpenAI always sends are present. Typed clients parse answers with OpenAI's types, and reject the entire
answer if a field is missing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from capabilities.core.wire import Annotation, Target

# Maximum token count. A higher count from a provider is reduced to it, because no model reads or writes that many
# tokens in one call.
MAX_COUNT = 100_000_000


def parse_count(value: Any) -> int | None:
    """Return a provider's count as an integer from 0 to `MAX_COUNT`, or None if the value is not a valid count.

    Negative, NaN, infinite and non-numeric values are invalid. If a count is invalid, callers estimate the usage.
    """
    if type(value) is int:
        return min(value, MAX_COUNT) if value >= 0 else None
    if type(value) is float and 0 <= value < math.inf:
        return min(int(value), MAX_COUNT)
    return None


def count_at(value: Any, *path: str) -> int | None:
    """Return the integer at this path in nested objects, or None if there is none."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def non_empty_text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def sum_counts(*numbers: int | None) -> int | None:
    """Return the sum of the known counts, at most `MAX_COUNT`, or None if none is known."""
    values = [number for number in numbers if number is not None]
    return min(sum(values), MAX_COUNT) if values else None


URL_CITATION, FILE_CITATION = "url_citation", "file_citation"
# OpenAI's service tiers. In OpenAI's format, a tier of another host, such as Groq's on_demand, would be invalid.
SERVICE_TIERS = frozenset({"auto", "default", "flex", "scale", "priority", "fast"})


def parse_annotations(items: Any) -> tuple[Annotation, ...]:
    """Return the annotations of a message or a streamed delta. Each cited page has a URL, a title and a position."""
    return tuple(filter(None, map(parse_annotation, items))) if isinstance(items, list) else ()


def parse_annotation(value: Any) -> Annotation | None:
    """Return the annotation, or None if it has no type or cites a page without a URL."""
    kind = non_empty_text(value.get("type")) if isinstance(value, Mapping) else None
    if kind != URL_CITATION:
        return dict(value) if kind else None
    page = value.get(kind)
    if not (isinstance(page, Mapping) and non_empty_text(page.get("url"))):
        return None
    positions = {name: count_at(page, name) or 0 for name in ("start_index", "end_index")}
    return {"type": kind, kind: {**page, "title": non_empty_text(page.get("title")) or "", **positions}}


def parse_logprobs(value: Any) -> Mapping[str, Any] | None:
    """Return the tokens' log probabilities, or None if the value contains no tokens."""
    if not isinstance(value, Mapping):
        return None
    lists = {name: list_tokens(value.get(name)) or None for name in ("content", "refusal")}
    return lists if any(lists.values()) else None


def list_tokens(value: Any) -> list[dict[str, Any]]:
    """Return the valid tokens in a list, each with its bytes and alternative tokens."""
    items = value if isinstance(value, list) else []
    tokens = ((item, _token(item)) for item in items)
    return [{**token, "top_logprobs": _alternatives(item)} for item, token in tokens if token is not None]


def _alternatives(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    alternatives = value.get("top_logprobs")
    tokens: Iterable[Any] = map(_token, alternatives) if isinstance(alternatives, list) else ()
    return [token for token in tokens if token is not None]


def _token(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, Mapping):
        return None
    token, logprob, data = value.get("token"), value.get("logprob"), value.get("bytes")
    if not (isinstance(token, str) and isinstance(logprob, int | float) and math.isfinite(logprob)):
        return None
    if not (isinstance(data, list) and all(type(byte) is int for byte in data)):
        data = list(token.encode("utf-8", "replace"))
    return {"token": token, "bytes": data, "logprob": logprob}


# The code below converts a vendor's finish reason to OpenAI's, and decides whether it explains an answer without text.
# An unknown reason never means that an answer is complete. It becomes `length`, the only value accepted by OpenAI's
# clients that indicates missing content. If we sent a value of our own, strict clients would reject an answer that was
# paid for. `content_filter` would wrongly blame the content, and `stop` would be false. The vendor's own reason is
# logged and sent as `native_finish_reason`.


class Ending(NamedTuple):
    """OpenAI's finish reason, and whether it explains an answer without text."""

    finish_reason: str
    explains_silence: bool = False


WHOLE = Ending("stop")
# If tool calls are announced but missing, this does not explain an empty answer.
CALLS = Ending("tool_calls")
CUT = Ending("length", explains_silence=True)
FILTERED = Ending("content_filter", explains_silence=True)
# The answer may be incomplete for a reason that clients do not know. Without text, it is not an answer.
UNFINISHED = Ending("length")


def map_ending(endings: Mapping[str, Ending], reason: Any, *, has_calls: bool) -> Ending:
    """Return the ending for a vendor's finish reason. Without a reason, a complete response counts as complete."""
    if reason is None or reason == "":
        ending = WHOLE
    else:
        ending = endings.get(reason, UNFINISHED) if isinstance(reason, str) else UNFINISHED
    return CALLS if has_calls and ending is WHOLE else ending


def vendor_reason(reason: Any, ending: Ending) -> str | None:
    """Return the vendor's finish reason if it differs from OpenAI's, otherwise None."""
    if not reason or not isinstance(reason, str) or reason.lower() == ending.finish_reason:
        return None
    return reason[:MAX_NAME_CHARS]


# Maximum number of characters of a vendor's finish reason that are stored.
MAX_NAME_CHARS = 100


def read_counts(value: Any, names: Mapping[str, str], counts: dict[str, int]) -> None:
    """Add the counts in a vendor's object to `counts`, under our names. Ignore unknown names and invalid counts.

    `names` maps the vendor's names of token counts to fields of `Usage`.
    """
    if not isinstance(value, dict):
        return
    for name, number in value.items():
        ours = names.get(name)
        parsed = parse_count(number) if ours is not None else None
        if ours is not None and parsed is not None:
            counts[ours] = parsed


# Values of an API key which mean that the provider needs no key.
NO_KEY = frozenset({"", "NOT_NEEDED"})


def merge(payload: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return the payload with the provider's configured fields. Objects are merged, and other values are replaced."""
    out = dict(payload)
    for name, value in extra.items():
        existing = out.get(name)
        out[name] = (
            merge(existing, value) if isinstance(existing, dict) and isinstance(value, Mapping) else to_plain(value)
        )
    return out


def to_plain(value: Any) -> Any:
    """Return the same JSON value with dicts and lists instead of read-only mappings and tuples."""
    if isinstance(value, Mapping):
        return {name: to_plain(item) for name, item in value.items()}
    return [to_plain(item) for item in value] if isinstance(value, list | tuple) else value


def split_params(values: Mapping[str, Any], names: Collection[str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    remaining = {name: value for name, value in values.items() if name not in names}
    return remaining, tuple(name for name in values if name in names)


def headers_for(target: Target, key_header: str, *, stream: bool, **fixed: str) -> dict[str, str]:
    """Return the headers of a call.

    If a header configured for the provider has the same name as one of ours, it replaces ours.
    """
    headers = {
        "content-type": "application/json",
        "accept": "text/event-stream" if stream else "application/json",
        **{name.replace("_", "-"): value for name, value in fixed.items()},
    }
    if target.api_key is not None and target.api_key not in NO_KEY:
        headers[key_header] = f"Bearer {target.api_key}" if key_header == "authorization" else target.api_key
    return {**headers, **{name.lower(): value for name, value in target.headers.items()}}
