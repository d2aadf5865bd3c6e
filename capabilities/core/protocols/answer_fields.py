"""What hosts say beside an answer's words in OpenAI's names, with every field that OpenAI itself always gives.

Typed clients read these with the vendor's own types, and lose the whole answer where one field is missing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from capabilities.core.wire import Annotation, Target

# Fields of a vendor's JSON that are there or not: counts, their sums, texts that say something.

MAX_COUNT = 100_000_000
"""Far more tokens than any model reads or writes in one call; what a provider counts beyond it is cut to it."""


def count_of(value: Any) -> int | None:
    """Return a provider's count as a whole number from 0 to `MAX_COUNT`; None for what counts nothing.

    Below zero, NaN, infinite, and no number at all are no count: what came is estimated then.
    """
    if type(value) is int:
        return min(value, MAX_COUNT) if value >= 0 else None
    if type(value) is float and 0 <= value < math.inf:
        return min(int(value), MAX_COUNT)
    return None


def count(value: Any, *path: str) -> int | None:
    """The whole number at that path of an object; None where there is none."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def filled(value: Any) -> str | None:
    """The text where it is one and says something; None otherwise."""
    return value if isinstance(value, str) and value else None


def total_of(*numbers: int | None) -> int | None:
    """The sum of the counts that are known, itself a count; None when none is."""
    known = [number for number in numbers if number is not None]
    return min(sum(known), MAX_COUNT) if known else None


URL_CITATION, FILE_CITATION = "url_citation", "file_citation"
SERVICE_TIERS = frozenset({"auto", "default", "flex", "scale", "priority", "fast"})
"""OpenAI's; the word of another host (Groq: on_demand) has no place in an answer in its shape."""


def annotations_of(listed: Any) -> tuple[Annotation, ...]:
    """Return the annotations of a message or a delta; one of a page has its address, its title and its place."""
    return tuple(filter(None, map(annotation_of, listed))) if isinstance(listed, list) else ()


def annotation_of(value: Any) -> Annotation | None:
    """Return the annotation; None for what names no kind, or cites a page without its address."""
    kind = filled(value.get("type")) if isinstance(value, Mapping) else None
    if kind != URL_CITATION:
        return dict(value) if kind else None
    page = value.get(kind)
    if not (isinstance(page, Mapping) and filled(page.get("url"))):
        return None
    place = {name: count(page, name) or 0 for name in ("start_index", "end_index")}
    return {"type": kind, kind: {**page, "title": filled(page.get("title")) or "", **place}}


def logprobs_of(value: Any) -> Mapping[str, Any] | None:
    """Return how probable the words were; None where no token is named."""
    if not isinstance(value, Mapping):
        return None
    lists = {name: list_tokens(value.get(name)) or None for name in ("content", "refusal")}
    return lists if any(lists.values()) else None


def list_tokens(listed: Any) -> list[dict[str, Any]]:
    """Return the tokens of a list, each with its bytes and what else was probable in its place."""
    items = listed if isinstance(listed, list) else []
    tokens = ((each, _token(each)) for each in items)
    return [{**token, "top_logprobs": _alternatives(each)} for each, token in tokens if token is not None]


def _alternatives(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    listed = value.get("top_logprobs")
    found: Iterable[Any] = map(_token, listed) if isinstance(listed, list) else ()
    return [each for each in found if each is not None]


def _token(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, Mapping):
        return None
    token, logprob, data = value.get("token"), value.get("logprob"), value.get("bytes")
    if not (isinstance(token, str) and isinstance(logprob, int | float) and math.isfinite(logprob)):
        return None
    if not (isinstance(data, list) and all(type(each) is int for each in data)):
        data = list(token.encode("utf-8", "replace"))
    return {"token": token, "bytes": data, "logprob": logprob}


# Why a model stopped: what a vendor's word comes to in OpenAI's, and what it means for an answer without words.
#
# No word that a table does not know means that an answer is complete. It comes to `length`: of the words that
# OpenAI's clients accept it alone says that something may be missing. A fifth word makes strict clients refuse an
# answer that was paid for, `content_filter` blames somebody, and `stop` would be the lie. The vendor's own word goes
# along as `native_finish_reason` and stands in the log.


class Ending(NamedTuple):
    """OpenAI's word for a reason to stop, and whether it makes an answer of no words an answer."""

    word: str
    explains_silence: bool = False


WHOLE = Ending("stop")
CALLS = Ending("tool_calls")
"""To announce tool calls and make none is no reason for silence."""
CUT = Ending("length", explains_silence=True)
FILTERED = Ending("content_filter", explains_silence=True)
UNFINISHED = Ending("length")
"""Not known to be complete, for no reason that a caller could know; without a word it is no answer."""


def ending_of(endings: Mapping[str, Ending], reason: Any, *, has_calls: bool) -> Ending:
    """The ending that a vendor's table has for its word; none at all, in a whole answer, means that it is whole."""
    if reason is None or reason == "":
        ending = WHOLE
    else:
        ending = endings.get(reason, UNFINISHED) if isinstance(reason, str) else UNFINISHED
    return CALLS if has_calls and ending is WHOLE else ending


def own_word(reason: Any, ending: Ending) -> str | None:
    """The vendor's word, where it says it otherwise than we do; None where it does not."""
    if not reason or not isinstance(reason, str) or reason.lower() == ending.word:
        return None
    return reason[:WORD_CHARS]


WORD_CHARS = 100
"""The most that is kept of a vendor's word."""


# Token counts out of what a vendor calls them: each protocol has a table from its names to ours.


def read_counts(value: Any, names: Mapping[str, str], into: dict[str, int]) -> None:
    """Adds the counts of an object under our names; what the table does not name, or is no count, adds nothing."""
    if not isinstance(value, dict):
        return
    for name, number in value.items():
        ours = names.get(name)
        counted = count_of(number) if ours is not None else None
        if ours is not None and counted is not None:
            into[ours] = counted


# What every encoder does at the end: leave out, merge, and put the headers on.

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
