"""Text that a model receives in place of a file or beside its content.

Three blocks replace a file (`attachment_block`, `unreadable_block`, `failed_block`), and notes accompany content
(`truncated_note`, `artifact_lead`, `treatment_lead`). `parse` and `parse_all` read all of them back. Each is written in
the language nearest to the given tag and never contains a file's data. Sizes are in bytes, and positions in characters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from capabilities.core.texts.friendly import friendly_type
from capabilities.core.texts.parser import ParsedDescription, parse, parse_all
from capabilities.core.texts.phrases import Phrases, escape_name, human_size, nearest_language, phrases_for
from capabilities.core.vocabulary import Kind

__all__ = [
    "ParsedDescription",
    "artifact_lead",
    "artifact_reference",
    "attachment_block",
    "content_type_name",
    "failed_block",
    "human_size",
    "nearest_language",
    "parse",
    "parse_all",
    "treatment_lead",
    "truncated_note",
    "unreadable_block",
]

MAX_NAMED_AGENTS = 5
"""Maximum number of agents that a description names. A hundred names would use more tokens than the rest of the
description."""

CONTENT_TYPES: Mapping[str, str] = MappingProxyType({"image": "image", "audio": "audio", "video": "video"})
"""Kinds of files that have a content type of their own: those in MCR-3.3, and video. All other kinds have the type
`file`."""


class Flaw(StrEnum):
    """Why a file cannot be opened by any program."""

    LOCKED = "locked"
    DAMAGED = "damaged"


def content_type_name(kind: str | None) -> str:
    """Return `image`, `audio` or `video` for these kinds of files, and `file` for all others."""
    return CONTENT_TYPES.get(kind or "", "file")


def artifact_reference(artifact_id: str) -> str:
    """Return `artifact:<id>` for an id with or without the prefix."""
    return artifact_id if artifact_id.startswith("artifact:") else f"artifact:{artifact_id}"


def attachment_block(
    kind: Kind | str | None,
    artifact_ref: str | None,
    filename: str | None,
    size: int | None,
    mime_type: str | None,
    language: str | None,
    agents: Sequence[str],
    has_send_message: bool = True,
    url: str | None = None,
    unreadable: bool = False,
    only_configured: bool = False,
    flaw: Flaw | None = None,
) -> str:
    """Return the block that replaces an attachment which the model cannot accept (MCR-3.1 to 3.6, MCR-E4).

    `artifact_ref` is written unchanged (`artifact:<id>`). A remote file has `url` instead, but a data URL is never
    written. `agents` are the agents that can read this file. The first `MAX_NAMED_AGENTS` are named, and the others are
    counted. If no agent can read it, the block states this. Without a send_message tool, the block mentions no tool.
    With `unreadable`, the block also states that the bytes are unavailable. `only_configured` means that agents created
    at run time were not considered. `flaw` is the reason why the file cannot be opened.
    """
    phrases, content_type = phrases_for(language), content_type_name(kind)
    # A data URL would put the file's bytes into the text.
    remote = None if url is None or url.lstrip().lower().startswith("data:") else url
    fields = ((phrases.filename, filename), (phrases.reference, artifact_ref), (phrases.link, remote))
    lines = [phrases.received, phrases.type + phrases.nouns[content_type]]
    lines += [label + escape_name(value) for label, value in fields if value]
    lines += [phrases.size + human_size(size)] if size is not None else []
    lines += [phrases.mime_type + escape_name(mime_type)] if mime_type else []
    lines += [phrases.unreadable_status] if unreadable else []
    lines += [phrases.flaws[flaw]] if flaw else []
    lines += ["", phrases.cannot]
    lines += [phrases.forward_to(content_type)] if has_send_message else []
    no_reader = phrases.none_configured if only_configured else phrases.none_capable
    return "\n".join([*lines, *(_reader_lines(phrases, agents, content_type, has_send_message) or [no_reader])])


def unreadable_block(
    filename: str | None,
    artifact_id: str | None,
    mime_type: str,
    size: int | None,
    language: str | None,
    flaw: Flaw | None = None,
) -> str:
    """Return the result of get_artifact for a model that lacks the capability to read the file (ABR-4.3).

    `flaw` is the reason why no model can read the file.
    """
    phrases = phrases_for(language)
    name = escape_name(filename or artifact_id or phrases.nameless)
    lines = [f"{phrases.unreadable}{name} ({escape_name(artifact_reference(artifact_id or phrases.unknown), ' ')})"]
    lines += [
        phrases.type + escape_name(friendly_type(mime_type or "application/octet-stream", nearest_language(language)))
    ]
    lines += [phrases.short_size + human_size(size)] if size is not None else []
    return "\n".join([*lines, phrases.flaws[flaw] if flaw else phrases.cannot_read])


def failed_block(filename: str | None, artifact_id: str | None, language: str | None) -> str:
    """Return the block that replaces a file whose bytes cannot be read (MCR-E4).

    It contains the file's reference if the file has an id.
    """
    phrases = phrases_for(language)
    lines = [
        f"{phrases.failed}{escape_name(filename or artifact_id or phrases.nameless)}]",
        phrases.error,
        phrases.check,
    ]
    return "\n".join(
        [*lines, phrases.reference + escape_name(artifact_reference(artifact_id))] if artifact_id else lines
    )


def truncated_note(
    total_chars: int,
    start: int,
    end: int,
    tail_chars: int,
    artifact_ref: str | None,
    has_get_artifact: bool,
    language: str | None,
) -> str:
    """Return the note that marks truncated text. It states which range is shown, and how to get the rest.

    `artifact_ref` is None for a model that has just called get_artifact, because it already has the reference.
    """
    phrases = phrases_for(language)
    note = phrases.truncated.format(total=f"{total_chars:,}", start=f"{start:,}", end=f"{end:,}")
    note += phrases.tail.format(tail=f"{tail_chars:,}") if tail_chars else ""
    note += phrases.call.format(offset=end) if has_get_artifact else ""
    pointer = phrases.call_of if has_get_artifact else phrases.whole
    return note + (pointer.format(reference=escape_name(artifact_ref)) if artifact_ref else "") + "]"


def artifact_lead(filename_or_id: str, language: str | None) -> str:
    """Return the line that introduces a file's content, such as `工件内容 (report.pdf):`."""
    return f"{phrases_for(language).lead}{escape_name(filename_or_id)}):"


def treatment_lead(filename_or_id: str, artifact_ref: str | None, treatment: str, language: str | None) -> str:
    """Return the lines that introduce a converted file: its name, its reference, and how it was converted."""
    phrases = phrases_for(language)
    reference = [phrases.reference + escape_name(artifact_ref)] if artifact_ref else []
    return "\n".join([artifact_lead(filename_or_id, language), *reference, phrases.treatment + treatment])


def description_slot(describer: str, language: str | None) -> str:
    """Return the placeholder for a description that the describing model has not yet been asked for."""
    return phrases_for(language).description_slot.format(describer=escape_name(describer))


def reference_line(artifact_id: str, language: str | None) -> str:
    return phrases_for(language).reference + escape_name(artifact_reference(artifact_id))


def extraction_note(mime_type: str, language: str | None) -> str:
    return phrases_for(language).extracted.format(type=_type_for_models(mime_type, language))


def invalid_bytes_note(count: int, encoding: str, language: str | None) -> str:
    """Return a line that states how many bytes of a file's text are invalid in its encoding."""
    return phrases_for(language).invalid_bytes.format(count=count, encoding=encoding.upper())


def conversion_note(
    mime_type: str, target: str, width: int | None, height: int | None, language: str | None, frames: int = 1
) -> str:
    """Return the `treatment` text for an image that has a new type or size.

    An unknown width or height is written as `?`. If the file has several frames, the text states that only the first
    one is included.
    """
    type_, phrases = _type_for_models(mime_type, language), phrases_for(language)
    note = phrases.converted.format(type=type_, mime_type=target, width=width or "?", height=height or "?")
    return note + (phrases.only_frame.format(total=frames) if frames > 1 else "")


def drawing_note(mime_type: str, numbers: Sequence[int], total: int, language: str | None) -> str:
    """Return the `treatment` text for a file whose pages or frames, numbered from 1, follow as images."""
    type_, phrases = _type_for_models(mime_type, language), phrases_for(language)
    if mime_type.startswith("image/") and mime_type != "image/tiff":
        return phrases.frames.format(type=type_, numbers=", ".join(map(str, numbers)), total=total)
    return phrases.drawn.format(type=type_, first=min(numbers), last=max(numbers), total=total)


def _type_for_models(mime_type: str, language: str | None) -> str:
    return escape_name(friendly_type(mime_type, nearest_language(language)))


def _reader_lines(phrases: Phrases, agents: Sequence[str], content_type: str, has_send_message: bool) -> Sequence[str]:
    names = [escape_name(agent, ",") for agent in agents if agent]
    if not names:
        return []
    first = (phrases.suggested if has_send_message else phrases.able) + ", ".join(names[:MAX_NAMED_AGENTS])
    others = len(names) - MAX_NAMED_AGENTS
    return [first, str(others).join(phrases.around_count(content_type))] if others > 0 else [first]


# The code below divides long text into pages of a given number of characters, with a note on how to read the next page.

HEAD_CHARS = 40_000
TAIL_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class Excerpt:
    """An excerpt, whether any text is missing, and the number of characters in the entire text and in the excerpt."""

    text: str
    cut: bool
    total_chars: int
    shown_chars: int


def head_and_tail(
    text: str,
    language: str | None,
    *,
    head_chars: int = HEAD_CHARS,
    tail_chars: int = TAIL_CHARS,
    artifact_ref: str | None = None,
    has_get_artifact: bool = True,
) -> Excerpt:
    """Return the text if it is not longer than head and tail together, else its head, a note and its tail.

    The head ends, and the tail begins, at a nearby paragraph, line or word break, if there is one.
    """
    total = len(text)
    if total <= head_chars + tail_chars:
        return Excerpt(text, cut=False, total_chars=total, shown_chars=total)
    end, start = _find_head_end(text, head_chars), _find_tail_start(text, total - tail_chars)
    note = truncated_note(total, 0, end, total - start, artifact_ref, has_get_artifact, language)
    parts = [text[:end].removesuffix("\n"), note, *([text[start:]] if start < total else [])]
    return Excerpt("\n".join(parts), cut=True, total_chars=total, shown_chars=end + total - start)


BREAKS = ("\n\n", "\n", " ")
"""Separators at which to split text, in order of preference."""


def _find_head_end(text: str, end: int) -> int:
    # Shorten the head by at most a tenth to split at a better position.
    places = (text.rfind(mark, end - end // 10, end) + len(mark) for mark in BREAKS)
    return next((place for place, mark in zip(places, BREAKS, strict=True) if place >= len(mark)), end)


def _find_tail_start(text: str, start: int) -> int:
    limit = start + (len(text) - start) // 10
    places = (text.find(mark, start, limit) + len(mark) for mark in BREAKS)
    return next((place for place, mark in zip(places, BREAKS, strict=True) if place >= len(mark)), start)


def page(text: str, language: str | None, offset: int, limit: int) -> Excerpt:
    """Return up to `limit` characters from `offset`, and a note if more text follows.

    Past the end, the result is empty.
    """
    total = len(text)
    start = min(max(offset, 0), total)
    # Return at least one character. Otherwise, a caller that reads on in a loop would never reach the end.
    end = min(start + max(limit, 1), total)
    excerpt = text[start:end]
    if end == total:
        return Excerpt(excerpt, cut=start > 0, total_chars=total, shown_chars=end - start)
    note = truncated_note(total, start, end, 0, None, True, language)
    return Excerpt(f"{excerpt}\n{note}", cut=True, total_chars=total, shown_chars=end - start)
