"""Look up a model's capabilities, limits and retirement date in the catalogue, each with its sources.

The same model can have different capabilities at different hosts. A lookup therefore tries, in this order, the row for
the given provider, the row of the model's maker, the combined rows of all hosts, and a pattern for the name. If a fact
is not stated there, it is None: it is shown as unknown and treated as unsupported. The data files are in
`capabilities/catalogue/`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from capabilities.core.providers.catalogue.document import CatalogueDocument, decode_row, from_json
from capabilities.core.providers.catalogue.judgement import (
    CELLS,
    CatalogueEntry,
    Fact,
    FactVerdict,
    Retirement,
    StatedLimit,
    Witness,
    judge_facts,
    judge_limit,
)
from capabilities.core.providers.catalogue.names import (
    ANY_HOST,
    find_host,
    find_maker,
    is_chat_model,
    list_lookup_names,
    version_name,
)
from capabilities.core.providers.presets import preset_for_endpoint


class Catalogue:
    """A catalogue document, with two manually maintained tables: model name patterns and announced retirements.

    The table of retirements supplies the successors of retired models, and dates that no other source states.
    """

    def __init__(
        self, document: CatalogueDocument, patterns: Mapping[str, Any], retirements: Mapping[str, Any] | None = None
    ) -> None:
        self.document = document
        self._patterns = patterns
        self._retirements = retirements or {}
        self._announced_by = (retirements or {}).get("source", "")
        self._announced = {
            (retirement["host"], retirement["model"]): retirement
            for retirement in (retirements or {}).get("retirements", ())
        }
        self._remembered = lru_cache(maxsize=4096)(self.lookup)  # Most lookups are for the same few models.

    @property
    def own_tables(self) -> tuple[tuple[str, str], ...]:
        """Return the source and date of each manually maintained table."""
        return tuple((table["source"], table["checkedOn"]) for table in (self._patterns, self._retirements) if table)

    def entry_at(self, provider: str, endpoint: str, model: str) -> CatalogueEntry | None:
        return self._remembered(host_hint(provider, endpoint), model)

    def retirement_at(self, provider: str, endpoint: str, model: str) -> Retirement | None:
        return self.retirement(host_hint(provider, endpoint), model)

    def lookup(self, provider_hint: str | None, model: str) -> CatalogueEntry | None:
        """Return a model's entry at a provider, or None if the model is unknown.

        `provider_hint` is the provider's name, preset or URL. Without it, the lookup begins with the maker's row.
        """
        provider, names = self._find_host(provider_hint), tuple(list_lookup_names(model))
        # Try the most exact name at every host first, then shorter names.
        for depth in range(len(names)):
            for matched_by, host in _levels(provider, names[depth]):
                if names[depth] in self.document.models.get(host, ()):
                    return self._entry(matched_by, host, names[depth:])
        return self._pattern(version_name(model))

    def find(self, words: str) -> list[tuple[str, str]]:
        """Return the host and name of each model that matches all of these words, shortest names first.

        Each word may be in the host or in the name.
        """
        wanted = words.casefold().split()
        found = (
            (host, name)
            for host, rows in self.document.models.items()
            for name in rows
            if all(word in f"{host} {name}".casefold() for word in wanted)
        )
        return sorted(found, key=lambda model: (len(model[1]), model[1], model[0]))

    def host_entry(self, host: str, name: str) -> CatalogueEntry:
        """Return a model's entry at a host. `host` and `name` must be as in the document."""
        return self._entry("hosts" if host == ANY_HOST else "provider", host, tuple(list_lookup_names(name)))

    def _find_host(self, hint: str | None) -> str | None:
        known_host = find_host(hint)
        return known_host or next(
            (host_name for host_name in (hint or "").lower().split() if host_name in self.document.models), None
        )

    def _entry(self, matched_by: str, host: str, names: Sequence[str]) -> CatalogueEntry:
        witnesses = self._witnesses(host, names)
        return CatalogueEntry(
            judge_facts(witnesses),
            judge_limit([(witness.source, witness.statement.max_input) for witness in witnesses]),
            judge_limit([(witness.source, witness.statement.max_output) for witness in witnesses]),
            ", ".join(witness.source for witness in witnesses),
            self.document.checked_on,
            matched_by,
            names[0],
        )

    def _witnesses(self, host: str, names: Sequence[str]) -> list[Witness]:
        rows = [decode_row(row) for name in names if (row := self.document.models[host].get(name)) is not None]
        witnesses = []
        for index, note in enumerate(self.document.sources):
            # Use each source's most exact row: one source may list this version, another only the model's general name.
            statement = next((row[index] for row in rows if len(row) > index and row[index]), None)
            if statement:
                witnesses.append(Witness(note.label, statement, bool(note.host)))
        return witnesses

    def _pattern(self, name: str) -> CatalogueEntry | None:
        for entry in self._patterns["patterns"]:
            if is_chat_model(name) and fnmatchcase(name, entry["pattern"]):
                source = (self._patterns["source"],)
                return CatalogueEntry(
                    _pattern_facts(entry, source),
                    _pattern_limit(entry.get("maxInputTokens"), *source),
                    _pattern_limit(entry.get("maxOutputTokens"), *source),
                    *source,
                    date.fromisoformat(self._patterns["checkedOn"]),
                    "pattern",
                    entry["pattern"],
                )
        return None

    def retirement(self, provider_hint: str | None, model: str) -> Retirement | None:
        """Return the day on which a provider stops serving a model, or None if no source states it."""
        name = version_name(model)
        maker = find_maker(name) or ""
        for host in dict.fromkeys((self._find_host(provider_hint) or maker, maker)):
            days = self._days(host, name)
            if days:
                (source, day), *further = days
                # Use the successor announced for this host, or else the one announced for the maker's host.
                heir = self._announced.get((host, name)) or self._announced.get((maker, name), {})
                other_days = tuple((other_source, other_day) for other_source, other_day in further if other_day != day)
                return Retirement(
                    model=name,
                    day=day,
                    source=source,
                    others=other_days,
                    successor=heir.get("successor", ""),
                    successor_source=heir.get("source", ""),
                )
            # If the host lists the model without a date, no date is known. If it does not list the model at all, use
            # the maker's date.
            if name in self.document.models.get(host, ()):
                return None
        return None

    def _days(self, host: str, name: str) -> list[tuple[str, date]]:
        labels = [note.label for note in self.document.notes]
        days = [
            (labels[index], date.fromisoformat(day)) for index, day in self.document.ends.get(host, {}).get(name, ())
        ]
        # The manually maintained table is last, so its date is used only if no source states one.
        announced = self._announced.get((host, name), {}).get("ends")
        return days + ([(self._announced_by, date.fromisoformat(announced))] if announced else [])


def _levels(provider: str | None, name: str) -> Iterator[tuple[str, str]]:
    if provider:
        yield "provider", provider
    maker = find_maker(name)
    if maker:
        yield "maker", maker
    yield "hosts", ANY_HOST


def _pattern_facts(entry: Mapping[str, Any], source: tuple[str, ...]) -> dict[Any, Fact]:
    return {
        (side, name): Fact(
            name in entry[side], FactVerdict.PATTERN, *((source, ()) if name in entry[side] else ((), source))
        )
        for side, name in CELLS
    }


def _pattern_limit(tokens: int | None, source: str) -> StatedLimit | None:
    return StatedLimit(tokens, FactVerdict.PATTERN, ((source, tokens),)) if tokens else None


@cache
def default_catalogue() -> Catalogue:
    return with_own_tables(from_json(json.loads(gzip.decompress(read_data("models.json.gz")))))


def with_own_tables(document: CatalogueDocument) -> Catalogue:
    return Catalogue(document, *(json.loads(read_data(name)) for name in ("patterns.json", "retirements.json")))


def read_data(name: str) -> bytes:
    return files("capabilities.catalogue").joinpath(name).read_bytes()


def lookup(provider_hint: str | None, model: str) -> CatalogueEntry | None:
    return default_catalogue().lookup(provider_hint, model)


def retirement(provider_hint: str | None, model: str) -> Retirement | None:
    return default_catalogue().retirement(provider_hint, model)


@lru_cache(maxsize=4096)
def host_hint(provider: str, endpoint: str) -> str:
    """Return text that identifies a provider's host: the preset or provider name, and the host name in the URL."""
    # The host name identifies a provider better than the name that an administrator chose. The URL's path is excluded,
    # because a path such as `/openai/v1` may occur at any host.
    preset = preset_for_endpoint(endpoint)
    return f"{preset.name if preset else provider} {endpoint_host(endpoint)}"


def endpoint_host(endpoint: str) -> str:
    return endpoint.partition("://")[2].partition("/")[0].lower()


def list_host(provider: str, endpoint: str) -> str:
    """Return the host name under which a provider's own model list is stored."""
    return find_host(host_hint(provider, endpoint)) or endpoint_host(endpoint)
