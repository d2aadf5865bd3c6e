"""Long text in pages of characters: what is shown of it, and the note that says how to read on (decision 4)."""

from __future__ import annotations

from dataclasses import dataclass

from capabilities.core.texts.description import truncated_note

HEAD_CHARS = 40_000
TAIL_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What a model reads of a text: the words, whether something is missing, and the whole's length in characters."""

    text: str
    cut: bool
    total_chars: int


def head_and_tail(
    text: str,
    language: str | None,
    *,
    head_chars: int = HEAD_CHARS,
    tail_chars: int = TAIL_CHARS,
    artifact_ref: str | None = None,
    has_get_artifact: bool = True,
) -> Excerpt:
    """The whole text if it has at most head + tail characters, else its head, the note and its tail."""
    total = len(text)
    if total <= head_chars + tail_chars:
        return Excerpt(text, cut=False, total_chars=total)
    note = truncated_note(total, 0, head_chars, tail_chars, artifact_ref, has_get_artifact, language)
    tail = text[total - tail_chars :]
    return Excerpt("\n".join([text[:head_chars], note, *([tail] if tail else [])]), cut=True, total_chars=total)


def page(text: str, language: str | None, offset: int, limit: int) -> Excerpt:
    """The `limit` characters from `offset` on; a note follows while there is more. Past the end the page is empty."""
    total = len(text)
    start = min(max(offset, 0), total)
    end = min(start + max(limit, 1), total)
    shown = text[start:end]
    if end == total:
        return Excerpt(shown, cut=start > 0, total_chars=total)
    note = truncated_note(total, start, end, 0, None, True, language)
    return Excerpt(f"{shown}\n{note}", cut=True, total_chars=total)
