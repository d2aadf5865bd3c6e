"""What the search box of the log offers while somebody types: keys, and the values that there are for a key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from routing_admin.request_log.operations import DESCRIBE, OPERATION_NAMES
from routing_admin.request_log.search_words import KEYS, STATUSES, quote

MOST = 20
"""Suggestions at a time."""

FIXED: Mapping[str, Sequence[str]] = {
    "status": (*STATUSES, "429", "500", "502", "504", "all_providers_failed", "client_cancelled"),
    "surface": ("v1", *OPERATION_NAMES, "api", "page", DESCRIBE),
    "since": ("15m", "1h", "1d", "7d"),
    "until": ("15m", "1h", "1d", "7d"),
}
"""Values that are the same in every installation."""


def suggest(typed: str, values: Mapping[str, Sequence[str]]) -> list[str]:
    """The whole text with its last word completed, up to `MOST` times; `values` are this installation's, by key."""
    head, _space, word = typed.rpartition(" ")
    before = f"{head} " if head else ""
    return [before + each for each in _completions(word, {**FIXED, **values})][:MOST]


def _completions(word: str, values: Mapping[str, Sequence[str]]) -> Iterator[str]:
    key, colon, begun = word.partition(":")
    if not colon:
        yield from (f"{each}:" for each in KEYS if each.startswith(word))
        if not word:
            yield from ("status:failed", "status:fallback", "since:1h")
        return
    wanted = begun.strip('"').lower()
    found = [each for each in values.get(key, ()) if wanted in each.lower()]
    yield from (f"{key}:{quote(each)}" for each in sorted(found, key=lambda each: not each.lower().startswith(wanted)))
