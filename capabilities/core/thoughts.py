"""What a model thought in a turn, as its vendor wants it back: pieces in their order, each marked by where it is from.

A proof is good only for the model, and the account, that gave it (Anthropic: extended thinking; Google: thought
signatures; OpenRouter: preserving reasoning blocks). Whoever else is asked gets the turn without it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache


class ThoughtForm(StrEnum):
    """How a thought can be read: as words, as their summary, or by its vendor alone."""

    TEXT = "text"
    SUMMARY = "summary"
    ENCRYPTED = "encrypted"


@dataclass(frozen=True, slots=True)
class ReasoningBlock:
    """One piece of reasoning; `proof` is the signature of its words or, where it is encrypted, all there is of it.

    It stands behind the first `offset` characters of the turn's words and its first `calls` tool calls. `origin` is
    `origin_of` whoever gave it, empty where nobody knows; `id` and `dialect` are the vendor's own name for it and for
    the way it is written.
    """

    form: ThoughtForm
    text: str = ""
    proof: str | None = None
    offset: int = 0
    calls: int = 0
    id: str | None = None
    dialect: str | None = None
    origin: str = ""


@lru_cache(maxsize=1000)
def origin_of(protocol: str, provider: str, model: str) -> str:
    """A short mark of one model at one provider, through one protocol: 12 characters that say nothing else."""
    return hashlib.sha256("\0".join((protocol, provider, model)).encode()).hexdigest()[:12]


def mark_thoughts(thoughts: Iterable[ReasoningBlock], origin: str) -> tuple[ReasoningBlock, ...]:
    """The thoughts as those of that origin."""
    return tuple(replace(each, origin=origin) for each in thoughts)


def thoughts_from(thoughts: Iterable[ReasoningBlock], origin: str) -> list[ReasoningBlock]:
    """The thoughts that came from there, in order."""
    return [each for each in thoughts if each.origin == origin]
