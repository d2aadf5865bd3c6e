"""What an entry is known by for as long as nobody changes it: what `ETag` says, and `If-Match` expects."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ANY_ENTRY = "*"


@dataclass(frozen=True, slots=True)
class Expectation:
    """The tags of which an entry has to have one, `*` for any; None expects nothing, not even that it is there."""

    tags: frozenset[str] | None = None

    def allows(self, entry: Mapping[str, Any] | None) -> bool:
        """Whether the entry, None for none, is what was expected."""
        if self.tags is None:
            return True
        return entry is not None and (ANY_ENTRY in self.tags or tag_of(entry) in self.tags)


NO_EXPECTATION = Expectation()


def tag_of(entry: Mapping[str, Any]) -> str:
    """32 hexadecimal digits that change with anything the entry says, whatever order it is said in."""
    words = json.dumps(entry, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(words.encode()).hexdigest()[:32]


def parse_if_match(header: str) -> Expectation:
    """What a header If-Match expects; nothing where it is empty."""
    if not header.strip():
        return NO_EXPECTATION
    return Expectation(frozenset(each.strip().removeprefix("W/").strip('"') for each in header.split(",")))
