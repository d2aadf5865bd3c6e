"""A model's reasoning in a turn, in blocks that must be sent back to the same model in later turns.

A signature is valid only for the model and the account that issued it (Anthropic: extended thinking; Google: thought
signatures; OpenRouter: preserving reasoning blocks). All other models receive the turn without the reasoning.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache


class ThoughtForm(StrEnum):
    """Whether reasoning is readable in full, as a summary, or only by its vendor."""

    TEXT = "text"
    SUMMARY = "summary"
    ENCRYPTED = "encrypted"


@dataclass(frozen=True, slots=True)
class ReasoningBlock:
    """A block of reasoning. `proof` is the signature of its text or, if it is encrypted, the entire block.

    The block's position is after the first `offset` characters of the turn's text and after its first `calls` tool
    calls. `origin` is the `reasoning_origin` of the model that produced it, or empty if unknown. `id` is the vendor's
    id of the block, and `dialect` is the vendor's name for its format.
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
def reasoning_origin(protocol: str, provider: str, model: str) -> str:
    """Return a short hash that identifies a model at a provider, together with the protocol used to call it."""
    # NUL separates the three names, so that different names never produce the same string.
    return hashlib.sha256("\0".join((protocol, provider, model)).encode()).hexdigest()[:12]


def set_origin(thoughts: Iterable[ReasoningBlock], origin: str) -> tuple[ReasoningBlock, ...]:
    return tuple(replace(thought, origin=origin) for thought in thoughts)


def filter_by_origin(thoughts: Iterable[ReasoningBlock], origin: str) -> list[ReasoningBlock]:
    return [thought for thought in thoughts if thought.origin == origin]
