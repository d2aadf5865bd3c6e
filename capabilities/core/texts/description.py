"""The texts a model reads in place of a file, and their way back to fields (REQUIREMENTS, decision 2).

Three texts (`attachment_block`, `unreadable_block`, `failed_block`), lines around what is there (`truncated_note`,
`artifact_lead`, `treatment_lead`), and `parse`/`parse_all`, which read every one of them. Each block is written in
the language nearest to the tag given; no block ever holds a file's data. Sizes are bytes, positions characters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from capabilities.core.texts.friendly import friendly_type
from capabilities.core.texts.parser import ParsedDescription, parse, parse_all
from capabilities.core.texts.phrases import Phrases, escape_name, human_size, nearest, words
from capabilities.core.vocabulary import Kind

__all__ = [
    "ParsedDescription",
    "artifact_lead",
    "attachment_block",
    "content_type_of",
    "failed_block",
    "human_size",
    "nearest",
    "parse",
    "parse_all",
    "reference_of",
    "treatment_lead",
    "truncated_note",
    "unreadable_block",
]

CONTENT_TYPES: Mapping[str, str] = MappingProxyType({"image": "image", "audio": "audio", "video": "video"})
"""The content types of MCR-3.3, and video; every other kind is a `file`."""


def content_type_of(kind: str | None) -> str:
    """`image`, `audio` or `video` for that kind, `file` for every other, unknown or missing one."""
    return CONTENT_TYPES.get(kind or "", "file")


def reference_of(artifact_id: str) -> str:
    """`artifact:<id>`, whether or not the id came with the prefix."""
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
) -> str:
    """The block that stands in a message for an attachment the model cannot take (MCR-3.1 to 3.6, MCR-E4).

    `artifact_ref` is written as given (`artifact:<id>`); a remote file has `url` instead (a data URL is never
    written). `agents` are those who can read this very file; none is said in words. Without a send_message tool
    the block names no tool. `unreadable` adds that the bytes could not be had, and keeps the reference.
    `only_configured` says that agents made at run time were not asked for.
    """
    say, content_type = words(language), content_type_of(kind)
    remote = None if url is None or url.lstrip().lower().startswith("data:") else url
    fields = ((say.filename, filename), (say.reference, artifact_ref), (say.link, remote))
    lines = [say.received, say.type + say.nouns[content_type]]
    lines += [label + escape_name(value) for label, value in fields if value]
    lines += [say.size + human_size(size)] if size is not None else []
    lines += [say.mime_type + escape_name(mime_type)] if mime_type else []
    lines += [say.unreadable_status] if unreadable else []
    lines += ["", say.cannot]
    lines += [say.forward_to(content_type)] if has_send_message else []
    nobody = say.none_configured if only_configured else say.nobody
    return "\n".join([*lines, _list_readers(say, agents, has_send_message) or nobody])


def unreadable_block(
    filename: str | None, artifact_id: str | None, mime_type: str, size: int | None, language: str | None
) -> str:
    """What get_artifact answers a model that lacks the capability (seed 002, ABR-4.3); no name shows the id."""
    say = words(language)
    name = escape_name(filename or artifact_id or say.nameless)
    lines = [f"{say.unreadable}{name} ({escape_name(reference_of(artifact_id or say.unknown), ' ')})"]
    lines += [say.type + escape_name(friendly_type(mime_type or "application/octet-stream", nearest(language)))]
    lines += [say.short_size + human_size(size)] if size is not None else []
    return "\n".join([*lines, say.cannot_read])


def failed_block(filename: str | None, artifact_id: str | None, language: str | None) -> str:
    """What is said when a file's bytes cannot be read; in messages the id keeps the reference (MCR-E4, seed 002)."""
    say = words(language)
    lines = [f"{say.failed}{escape_name(filename or artifact_id or say.nameless)}]", say.error, say.check]
    return "\n".join([*lines, say.reference + escape_name(reference_of(artifact_id))] if artifact_id else lines)


def truncated_note(
    total_chars: int,
    start: int,
    end: int,
    tail_chars: int,
    artifact_ref: str | None,
    has_get_artifact: bool,
    language: str | None,
) -> str:
    """The note in shortened text: what is shown, and the call, or else the reference, that gives the rest.

    With get_artifact and no `artifact_ref` (the model has just used it) the note is exactly GLOSSARY's.
    """
    say = words(language)
    note = say.truncated.format(total=f"{total_chars:,}", start=f"{start:,}", end=f"{end:,}")
    note += say.tail.format(tail=f"{tail_chars:,}") if tail_chars else ""
    note += say.call.format(offset=end) if has_get_artifact else ""
    pointer = say.call_of if has_get_artifact else say.whole
    return note + (pointer.format(reference=escape_name(artifact_ref)) if artifact_ref else "") + "]"


def artifact_lead(filename_or_id: str, language: str | None) -> str:
    """The line before native media that came out of get_artifact: `工件内容 (report.pdf):`."""
    return f"{words(language).lead}{escape_name(filename_or_id)}):"


def treatment_lead(filename_or_id: str, artifact_ref: str | None, treatment: str, language: str | None) -> str:
    """The lines before what was made of a file: its name, its reference and what was done (decision 15)."""
    say = words(language)
    reference = [say.reference + escape_name(artifact_ref)] if artifact_ref else []
    return "\n".join([artifact_lead(filename_or_id, language), *reference, say.treatment + treatment])


def description_slot(describer: str, language: str | None) -> str:
    """What stands where a model's description of a file will be, as long as that model was not asked."""
    return words(language).description_slot.format(describer=escape_name(describer))


def reference_line(artifact_id: str, language: str | None) -> str:
    """The line with an artifact's reference."""
    return words(language).reference + escape_name(reference_of(artifact_id))


def tell_extraction(mime_type: str, language: str | None) -> str:
    """What was done, for `treatment_lead`: the text was taken out of such a file."""
    return words(language).extracted.format(type=_type_for_models(mime_type, language))


def tell_conversion(mime_type: str, target: str, width: int | None, height: int | None, language: str | None) -> str:
    """What was done, for `treatment_lead`: an image has another type or size now; `?` for a side that is unknown."""
    type_ = _type_for_models(mime_type, language)
    return words(language).converted.format(type=type_, mime_type=target, width=width or "?", height=height or "?")


def tell_drawing(mime_type: str, first: int, last: int, total: int, language: str | None) -> str:
    """What was done, for `treatment_lead`: pages (from 1) of such a file follow as images."""
    type_ = _type_for_models(mime_type, language)
    return words(language).drawn.format(type=type_, first=first, last=last, total=total)


def _type_for_models(mime_type: str, language: str | None) -> str:
    return escape_name(friendly_type(mime_type, nearest(language)))


def _list_readers(say: Phrases, agents: Sequence[str], has_send_message: bool) -> str:
    names = ", ".join(escape_name(agent, ",") for agent in agents if agent)
    return (say.suggested if has_send_message else say.able) + names if names else ""


# Long text in pages of characters: what is shown of it, and the note that says how to read on (decision 4).

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
