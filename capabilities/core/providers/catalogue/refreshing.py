"""Refresh the catalogue from a source's published file, or from a provider's own model list.

A new edition of a source does not change the data from other sources. An administrator sees the differences before
accepting it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from capabilities.core.json_codec import read_repaired_json
from capabilities.core.providers.catalogue.document import (
    CatalogueDocument,
    Ends,
    Rows,
    SourceNote,
    build_document,
    decode_row,
    from_json,
    group_ends,
    group_rows,
    split_document,
)
from capabilities.core.providers.catalogue.judgement import Fact, Statement, Witness, judge_facts, merge
from capabilities.core.providers.catalogue.names import version_name
from capabilities.core.providers.catalogue.sources import read_litellm, read_models_dev, read_provider_list
from capabilities.core.translatable import translatable
from capabilities.core.vocabulary import Cell

MAX_CATALOGUE_BYTES = 32 * 1024 * 1024
"""Maximum size of a decompressed file in bytes. The sources' current files are an eighth of this size."""
MAX_ROWS = 50_000
GZIP = b"\x1f\x8b"

TOO_LARGE = translatable("The file is too large to be a catalogue. Choose the catalogue's own file or a source's.")
NO_JSON = translatable("The file is not JSON. Choose a build's models.json.gz, models.dev's api.json or LiteLLM's map.")
NO_SOURCE = translatable(
    "The file lists no models in a known format. Choose a build's models.json.gz, models.dev's api.json or "
    "LiteLLM's map."
)
DAMAGED = translatable("The catalogue file is damaged. Build it or copy it again.")
SILENT = translatable("The provider only lists model names, not what they read, their limits or retirement dates.")


class UnreadableCatalogueError(Exception):
    """The file or list cannot be read as a catalogue. `args[0]` is a sentence that states why."""


@dataclass(frozen=True, slots=True)
class FactChange:
    """Facts about a model at a host, before and after an edition that changes them.

    None means that they are not stated.
    """

    host: str
    name: str
    cells: Mapping[Cell, tuple[Fact | None, Fact | None]]


@dataclass(frozen=True, slots=True)
class EditionChange:
    """What an edition changes: models added and removed (as host and name), and changed facts."""

    added: tuple[tuple[str, str], ...]
    removed: tuple[tuple[str, str], ...]
    changed: tuple[FactChange, ...]

    @property
    def empty(self) -> bool:
        return not (self.added or self.removed or self.changed)


def read_edition(data: bytes, current: CatalogueDocument, day: date) -> CatalogueDocument:
    """Return the built catalogue in a file, or the current catalogue with one source replaced by the file.

    If a source is replaced, `day` becomes its edition. Raise `UnreadableCatalogueError` for other files.
    """
    value = parse_json(data)
    # Only a built catalogue has a format number. The files of models.dev and LiteLLM do not.
    if "format" in value and "models" in value:
        return _check(value)
    edition = day.isoformat()
    try:
        listings = list(read_models_dev(value))
        if listings:
            note = SourceNote("models.dev", edition, edition, "MIT")
            return renew(current, note, group_rows(listings, "models_dev", several=True))
        listings = list(read_litellm(value))
        if listings:
            note = SourceNote("LiteLLM", edition, edition, "MIT")
            return renew(current, note, group_rows(listings, "litellm"), group_ends(listings, "litellm"))
    # The file comes from a third party and may contain anything.
    except (TypeError, ValueError, AttributeError) as error:
        raise UnreadableCatalogueError(NO_SOURCE) from error
    raise UnreadableCatalogueError(NO_SOURCE)


def read_own_list(
    name: str, host: str, entries: Iterable[Any], current: CatalogueDocument, day: date
) -> CatalogueDocument:
    """Return the current catalogue with a provider's own model list added under `host`.

    Raise `UnreadableCatalogueError` if the list contains nothing but names.
    """
    rows: dict[str, list[Statement]] = {}
    ends: dict[str, date] = {}
    for listing in read_provider_list(host, entries):
        key = version_name(listing.name)
        rows.setdefault(key, []).append(listing.statement)
        if listing.ends:
            ends[key] = listing.ends
    if not rows:
        raise UnreadableCatalogueError(SILENT)
    note = SourceNote(name, day.isoformat(), day.isoformat(), host=host)
    return renew(current, note, {host: {key: merge(statements) for key, statements in rows.items()}}, {host: ends})


def renew(current: CatalogueDocument, note: SourceNote, rows: Rows, ends: Ends | None = None) -> CatalogueDocument:
    """Return the document with this source added. It replaces a source of the same name."""
    sources, old_ends = split_document(current)
    names = [source.name for source, _ in sources]
    if note.name in names:
        sources[names.index(note.name)] = (note, rows)
    else:
        sources.append((note, rows))
    all_ends = [(source, days) for source, days in old_ends if source.name != note.name]
    if ends:
        # A provider's own retirement dates take precedence.
        all_ends = [(note, ends), *all_ends] if note.host else [*all_ends, (note, ends)]
    return build_document(sources, all_ends)


def parse_json(data: bytes) -> dict[str, Any]:
    """Return the JSON object in a file, which may be gzipped.

    Raise UnreadableCatalogueError for other files.
    """
    if data.startswith(GZIP):
        unpacking = zlib.decompressobj(wbits=31)
        try:
            # Decompress at most one byte more than the limit, which is enough to detect a file that is too large.
            data = unpacking.decompress(data, MAX_CATALOGUE_BYTES + 1)
        except zlib.error as error:
            raise UnreadableCatalogueError(DAMAGED) from error
    if len(data) > MAX_CATALOGUE_BYTES:
        raise UnreadableCatalogueError(TOO_LARGE)
    try:
        value = read_repaired_json(data, is_trusted=True)
    except (ValueError, RecursionError) as error:
        raise UnreadableCatalogueError(NO_JSON) from error
    if not isinstance(value, dict):
        raise UnreadableCatalogueError(NO_SOURCE)
    return value


def _check(value: dict[str, Any]) -> CatalogueDocument:
    try:
        document = from_json(value)
        if sum(len(names) for names in document.models.values()) > MAX_ROWS or not document.sources:
            raise UnreadableCatalogueError(TOO_LARGE)
        # Decode all rows now, so that damaged rows are found before the catalogue is used.
        sources, ends = split_document(document)
        document = build_document([(_brief(note), rows) for note, rows in sources], [(_brief(n), d) for n, d in ends])
        _ = document.checked_on
    except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
        raise UnreadableCatalogueError(DAMAGED) from error
    return document


def _brief(note: SourceNote) -> SourceNote:
    # Raise ValueError if the date is invalid.
    date.fromisoformat(note.date)
    short = {field: str(getattr(note, field))[:100] for field in ("name", "edition", "licence", "host")}
    return replace(note, **short)


def compare_editions(old_document: CatalogueDocument, new_document: CatalogueDocument) -> EditionChange:
    """Return the changes between two editions, for each host and name.

    Models for which only limits change are omitted.
    """
    rows_before, rows_after = (
        {(host, name): row for host, names in document.models.items() for name, row in names.items()}
        for document in (old_document, new_document)
    )
    return EditionChange(
        tuple(sorted(rows_after.keys() - rows_before.keys())),
        tuple(sorted(rows_before.keys() - rows_after.keys())),
        tuple(_changes(old_document, new_document, rows_before, rows_after)),
    )


def _changes(
    old_document: CatalogueDocument,
    new_document: CatalogueDocument,
    rows_before: Mapping[tuple[str, str], str],
    rows_after: Mapping[tuple[str, str], str],
) -> Iterator[FactChange]:
    for host_and_model in sorted(rows_before.keys() & rows_after.keys()):
        facts_before, facts_after = (
            _facts(old_document, rows_before[host_and_model]),
            _facts(new_document, rows_after[host_and_model]),
        )
        cells = {
            cell: (facts_before.get(cell), facts_after.get(cell))
            for cell in (*facts_before, *(cell_after for cell_after in facts_after if cell_after not in facts_before))
            if _comparable(facts_before.get(cell)) != _comparable(facts_after.get(cell))
        }
        if cells:
            yield FactChange(*host_and_model, cells)


def _facts(document: CatalogueDocument, row: str) -> dict[Cell, Fact]:
    return judge_facts(
        [
            Witness(note.label, statement, bool(note.host))
            for note, statement in zip(document.sources, decode_row(row), strict=True)
            if statement
        ]
    )


def _comparable(fact: Fact | None) -> tuple[bool, bool] | None:
    # A change that affects only the certainty of a fact does not count, unless the fact becomes contested or is no
    # longer contested.
    return None if fact is None else (fact.value, fact.verdict.value == "contested")
