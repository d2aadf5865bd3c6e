"""The catalogue's file format: sources, their statements about the models at each host, and retirement dates.

A row is a string with every source's statement about a model, separated by semicolons in the order of the sources. In
`vf-ad~s,128000,16384;`, the first source states that the model supports images and PDF but neither audio nor video,
contradicts itself about structured output, and gives the input and output limits in tokens. The second source states
nothing about this model. The same statements always produce the same string.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from capabilities.core.providers.catalogue.judgement import LETTERS, Statement, merge
from capabilities.core.providers.catalogue.names import ANY_HOST, HOSTS, find_maker, version_name
from capabilities.core.providers.catalogue.sources import Listing

FORMAT = 2
Rows = Mapping[str, Mapping[str, Statement]]
"""A source's statements. The keys are host and model name."""
Ends = Mapping[str, Mapping[str, date]]
"""A source's retirement dates. The keys are host and model name."""


@dataclass(frozen=True, slots=True)
class SourceNote:
    """A source of facts: its name, its edition, the date of its data, and its licence.

    `host` is set if the source is a provider's own model list.
    """

    name: str
    edition: str
    date: str
    licence: str = ""
    host: str = ""

    @property
    def label(self) -> str:
        return f"{self.name} {self.edition}".strip()


@dataclass(frozen=True, slots=True)
class CatalogueDocument:
    """The catalogue as stored in a file.

    `models` maps each host and model name to a string that encodes what each of `sources` states about the model.
    `ends` maps them to retirement dates, the maker's own date first. Each date has the index of its source in `sources`
    + `origins`. `origins` are sources that state only retirement dates.
    """

    sources: tuple[SourceNote, ...]
    models: Mapping[str, Mapping[str, str]]
    ends: Mapping[str, Mapping[str, Sequence[tuple[int, str]]]]
    origins: tuple[SourceNote, ...] = ()

    @property
    def checked_on(self) -> date:
        return max(date.fromisoformat(note.date) for note in self.sources)

    @property
    def notes(self) -> tuple[SourceNote, ...]:
        return self.sources + self.origins


def group_rows(
    listings: Iterable[Listing], alias_field: str, *, several: bool = False
) -> dict[str, dict[str, Statement]]:
    """Group a source's rows by host. Models that their maker does not list are also under `*` (any host).

    `alias_field` is the `Host` field with this source's names for a host. With `several`, a model is under `*` only if
    several hosts list it.
    """
    by_host: dict[str, dict[str, list[Statement]]] = defaultdict(lambda: defaultdict(list))
    by_model: dict[str, dict[str, list[Statement]]] = defaultdict(lambda: defaultdict(list))
    for listing in listings:
        if listing.statement.declares:
            name = version_name(listing.name)
            by_host[listing.host][name].append(listing.statement)
            by_model[name][listing.host].append(listing.statement)
    grouped: dict[str, dict[str, Statement]] = {
        host.name: _first_rows(getattr(host, alias_field), by_host) for host in HOSTS
    }
    grouped[ANY_HOST] = {
        # A maker's own row is the most reliable, so combine other hosts' rows only for models that the maker does not
        # list.
        name: merge([statement for rows in hosts.values() for statement in rows])
        for name, hosts in by_model.items()
        if name not in grouped.get(find_maker(name) or "", ()) and len(hosts) > several
    }
    return grouped


def _first_rows(aliases: Sequence[str], by_host: Mapping[str, Mapping[str, list[Statement]]]) -> dict[str, Statement]:
    rows: dict[str, Statement] = {}
    # The first alias takes precedence, so its rows are added last.
    for alias in reversed(aliases):
        rows |= {name: merge(statements) for name, statements in by_host.get(alias, {}).items()}
    return rows


def group_ends(listings: Iterable[Listing], alias_field: str) -> dict[str, dict[str, date]]:
    """Return a source's retirement dates for each name in `HOSTS`.

    If the source has several dates for a model, the earliest is used.
    """
    hosts = {alias: host.name for host in HOSTS for alias in getattr(host, alias_field)}
    ends: dict[str, dict[str, date]] = defaultdict(dict)
    for listing in listings:
        if listing.ends and listing.host in hosts:
            days, name = ends[hosts[listing.host]], version_name(listing.name)
            days[name] = min(listing.ends, days.get(name, listing.ends))
    return ends


def build_document(
    sources: Sequence[tuple[SourceNote, Rows]], ends: Sequence[tuple[SourceNote, Ends]] = ()
) -> CatalogueDocument:
    """Build a catalogue document from these sources. In `ends`, sources are in order of precedence."""
    notes = tuple(note for note, _ in sources)
    origins = tuple(note for note, _ in ends if note not in notes)
    days: dict[str, dict[str, list[tuple[int, str]]]] = defaultdict(lambda: defaultdict(list))
    for note, hosts in ends:
        for host, names in hosts.items():
            for name, day in names.items():
                days[host][name].append(((notes + origins).index(note), day.isoformat()))
    return CatalogueDocument(notes, encode_rows([rows for _, rows in sources]), days, origins)


def encode_rows(sources: Sequence[Rows]) -> dict[str, dict[str, str]]:
    """Encode the statements of several sources as one string for each host and model name, sorted by both."""
    hosts = sorted({host for rows in sources for host, names in rows.items() if names})
    names = {host: sorted({name for rows in sources for name in rows.get(host, ())}) for host in hosts}
    return {
        host: {name: encode_row([rows.get(host, {}).get(name) for rows in sources]) for name in names[host]}
        for host in hosts
    }


def encode_row(statements: Iterable[Statement | None]) -> str:
    return ";".join(_encode(statement) if statement else "" for statement in statements)


def _encode(statement: Statement) -> str:
    letters = statement.yes + (f"-{statement.no}" if statement.no else "")
    letters += f"~{statement.both}" if statement.both else ""
    return f"{letters},{statement.max_input or ''},{statement.max_output or ''}"


def decode_row(text: str) -> tuple[Statement | None, ...]:
    """Decode a row into one statement, or None, for each source. Raise ValueError if the row is invalid."""
    return tuple(_decode(part) if part else None for part in text.split(";"))


def _decode(text: str) -> Statement:
    letters, max_input, max_output = text.split(",")
    letters, _, both = letters.partition("~")
    yes, _, no = letters.partition("-")
    if not set(yes + no + both) <= set(LETTERS):
        raise ValueError(text)
    return Statement(yes, no, both, int(max_input) if max_input else None, int(max_output) if max_output else None)


def split_document(
    document: CatalogueDocument,
) -> tuple[list[tuple[SourceNote, Rows]], list[tuple[SourceNote, Ends]]]:
    """Return the sources and retirement dates from which `build_document` would build this document again."""
    sources: list[dict[str, dict[str, Statement]]] = [defaultdict(dict) for _ in document.sources]
    for host, names in document.models.items():
        for name, row in names.items():
            for rows, statement in zip(sources, decode_row(row), strict=True):
                if statement is not None:
                    rows[host][name] = statement
    ends: list[dict[str, dict[str, date]]] = [defaultdict(dict) for _ in document.notes]
    for host, days_by_name in document.ends.items():
        for name, days in days_by_name.items():
            for index, day in days:
                ends[index][host][name] = date.fromisoformat(day)
    order = sorted(range(len(ends)), key=lambda index: index < len(document.sources))
    return (
        list(zip(document.sources, sources, strict=True)),
        [(document.notes[index], ends[index]) for index in order if ends[index] or index >= len(document.sources)],
    )


def to_json(document: CatalogueDocument) -> str:
    value = {
        "format": FORMAT,
        "sources": [asdict(note) for note in document.sources],
        "origins": [asdict(note) for note in document.origins],
        "models": document.models,
        "ends": document.ends,
    }
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def from_json(value: Any) -> CatalogueDocument:
    """Parse the format of `to_json`. Raise ValueError for other formats."""
    if value["format"] != FORMAT:
        raise ValueError(value["format"])
    sources, origins = (tuple(SourceNote(**note) for note in value[key]) for key in ("sources", "origins"))
    return CatalogueDocument(sources, value["models"], value["ends"], origins)
