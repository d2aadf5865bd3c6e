"""Parse the text that replaces files for models back into fields (MCR-3.6, MCR-P5).

Each type of block has a function that reads its lines in a fixed order. A name is always on a single line, and the
first line that does not match ends the block, so no part of a name can be mistaken for a field.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from capabilities.core.texts.phrases import LANGUAGES, Phrases, unescape_name

COUNT = r"([0-9]{1,3}(?:,[0-9]{3}){0,9})"

REFERENCE = re.compile(r" \(artifact:[^ ]*$")
"""Pattern for the artifact reference after a file's name. The name may contain text of the same form, but an id
contains no space, so only the last occurrence matches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedDescription:
    """The fields of a description block in a message. A field is None if the block has no such line.

    `block` is attachment, unreadable, failed, truncated or lead. `size` is the text as written (`1.2 MB`), `type_name`
    the readable name of the file type, and `filename` the displayed name. `agents` are the named agents, and
    `other_agents` is the number of others. If there are no agents, the block states that none can read the file.
    `names_tool` is set if the block names a tool to call next.
    """

    block: str
    language: str
    content_type: str | None = None
    filename: str | None = None
    artifact_ref: str | None = None
    url: str | None = None
    size: str | None = None
    mime_type: str | None = None
    type_name: str | None = None
    agents: tuple[str, ...] = ()
    other_agents: int = 0
    unreadable: bool = False
    flaw: str = ""
    names_tool: bool = False
    total_chars: int | None = None
    start: int | None = None
    end: int | None = None
    tail_chars: int | None = None


def parse(text: str) -> ParsedDescription | None:
    """Return the fields of the block if the text is exactly one block, or None for other text (MCR-P5)."""
    lines = _lines(text.strip("\r\n"))
    block_and_end = _at(lines, 0)
    return block_and_end[0] if block_and_end and block_and_end[1] == len(lines) else None


def parse_all(text: str) -> tuple[ParsedDescription, ...]:
    """Return the fields of all blocks in a message, in order. Other lines are skipped."""
    lines, position, blocks = _lines(text), 0, []
    while position < len(lines):
        block_and_end = _at(lines, position)
        if block_and_end:
            blocks.append(block_and_end[0])
        position = block_and_end[1] if block_and_end else position + 1
    return tuple(blocks)


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").split("\n")


BlockAndEnd = tuple[ParsedDescription, int]
"""A parsed block and the index of the line after it."""


def _at(lines: Sequence[str], position: int) -> BlockAndEnd | None:
    line = lines[position]
    # Most lines do not begin a block, and one check for all openings is cheap.
    if not line.startswith(OPENINGS):
        return None
    for opening, language, read in READERS:
        if line.startswith(opening):
            return read(_LineReader(lines, position), language, LANGUAGES[language])
    return None


class _LineReader:
    """A position in a list of lines. It advances only if the current line has the expected form."""

    def __init__(self, lines: Sequence[str], position: int) -> None:
        self.lines = lines
        self.position = position

    def take(self, line: str) -> bool:
        matches = self.position < len(self.lines) and self.lines[self.position] == line
        self.position += matches
        return matches

    def after(self, label: str, end: str = "") -> str | None:
        line = self.lines[self.position] if self.position < len(self.lines) else ""
        if not (line.startswith(label) and line.endswith(end) and len(line) >= len(label) + len(end)):
            return None
        self.position += 1
        return line[len(label) : len(line) - len(end)]

    def name(self, label: str, end: str = "") -> str | None:
        value = self.after(label, end)
        return None if value is None else unescape_name(value)


def _read_attachment(at: _LineReader, language: str, phrases: Phrases) -> BlockAndEnd | None:
    if not at.take(phrases.received):
        return None
    type_noun = at.after(phrases.type)
    kinds = [kind for kind, phrase in phrases.nouns.items() if phrase == type_noun]
    names = [at.name(label) for label in (phrases.filename, phrases.reference, phrases.link)]
    size, mime_type, unreadable = at.after(phrases.size), at.name(phrases.mime_type), at.take(phrases.unreadable_status)
    flaw = _take_flaw(at, phrases)
    if not (kinds and at.take("") and at.take(phrases.cannot)):
        return None
    names_tool = at.take(phrases.forward_to(kinds[0]))
    agents = at.after(phrases.suggested if names_tool else phrases.able)
    if agents is None and not at.take(phrases.none_capable) and not at.take(phrases.none_configured):
        return None
    readers = tuple(unescape_name(agent) for agent in agents.split(", ")) if agents else ()
    others = (at.after(*phrases.around_count(kinds[0])) if agents else None) or "0"
    if not others.isdecimal():
        return None
    filename, reference, url = names
    return ParsedDescription(
        block="attachment",
        language=language,
        content_type=kinds[0],
        filename=filename,
        artifact_ref=reference,
        url=url,
        size=size,
        mime_type=mime_type,
        agents=readers,
        other_agents=int(others),
        unreadable=unreadable,
        flaw=flaw,
        names_tool=names_tool,
    ), at.position


def _read_unreadable(at: _LineReader, language: str, phrases: Phrases) -> BlockAndEnd | None:
    first = at.after(phrases.unreadable, ")")
    type_name = at.name(phrases.type)
    size = at.after(phrases.short_size)
    flaw = _take_flaw(at, phrases)
    if first is None or type_name is None or not REFERENCE.search(first) or not (flaw or at.take(phrases.cannot_read)):
        return None
    # The last " (" begins the reference. Earlier ones are part of the name.
    name, _, reference = first.rpartition(" (")
    return ParsedDescription(
        block="unreadable",
        language=language,
        filename=unescape_name(name),
        artifact_ref=unescape_name(reference),
        size=size,
        type_name=type_name,
        flaw=flaw,
    ), at.position


def _take_flaw(at: _LineReader, phrases: Phrases) -> str:
    return next((name for name, status in phrases.flaws.items() if at.take(status)), "")


def _read_failed(at: _LineReader, language: str, phrases: Phrases) -> BlockAndEnd | None:
    name = at.name(phrases.failed, "]")
    if name is None or not at.take(phrases.error) or not at.take(phrases.check):
        return None
    reference = at.name(phrases.reference)
    return ParsedDescription(
        block="failed", language=language, filename=name, artifact_ref=reference, unreadable=True
    ), at.position


@cache
def _truncated_pattern(language: str) -> re.Pattern[str]:
    phrases = LANGUAGES[language]
    # Escape the template first, because it contains regex metacharacters. Then insert the patterns.
    head = (
        re.escape(phrases.truncated).replace(r"\{", "{").replace(r"\}", "}").format(total=COUNT, start=COUNT, end=COUNT)
    )
    tail = re.escape(phrases.tail).replace(r"\{tail\}", COUNT)
    call = re.escape(phrases.call).replace(r"\{offset\}", "[0-9]+")
    reference_part, whole = (
        re.escape(text).replace(r"\{reference\}", "(.+)") for text in (phrases.call_of, phrases.whole)
    )
    return re.compile(f"{head}(?:{tail})?(?:({call})(?:{reference_part})?|{whole})?")


def _read_truncated(at: _LineReader, language: str, _: Phrases) -> BlockAndEnd | None:
    line = at.after("", "]")
    match = _truncated_pattern(language).fullmatch(line) if line else None
    if match is None:
        return None
    total, start, end, tail_chars = (int(number.replace(",", "")) if number else 0 for number in match.groups()[:4])
    reference = match[6] or match[7]
    return ParsedDescription(
        block="truncated",
        language=language,
        artifact_ref=unescape_name(reference) if reference else None,
        names_tool=match[5] is not None,
        total_chars=total,
        start=start,
        end=end,
        tail_chars=tail_chars,
    ), at.position


def _read_lead(at: _LineReader, language: str, phrases: Phrases) -> BlockAndEnd | None:
    name = at.name(phrases.lead, "):")
    return None if name is None else (ParsedDescription(block="lead", language=language, filename=name), at.position)


READERS = tuple(
    (opening, language, read)
    for language, phrases in LANGUAGES.items()
    for opening, read in (
        (phrases.received, _read_attachment),
        (phrases.unreadable, _read_unreadable),
        (phrases.failed, _read_failed),
        (phrases.truncated.partition("{")[0], _read_truncated),
        (phrases.lead, _read_lead),
    )
)
"""The opening text of each type of block, its language, and the function that reads it. No opening is a prefix of
another."""

OPENINGS = tuple(opening for opening, _, _ in READERS)
