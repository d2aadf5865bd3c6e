"""Count how often the catalogue's sources agree on each fact, and write the counts into `docs/catalogue.md`.

Run it as `python -m capabilities.catalogue.report`. It counts only first-party models, that is, those that a
vendor serves on its own host.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from capabilities.core.providers.catalogue import Catalogue, default_catalogue
from capabilities.core.providers.catalogue.document import decode_row
from capabilities.core.providers.catalogue.judgement import (
    LETTERS,
    FactVerdict,
    Statement,
    Witness,
    judge_fact,
    judge_limit,
)
from capabilities.core.providers.catalogue.names import MAKERS, find_maker

DOCUMENT = Path(__file__).parents[2] / "docs" / "catalogue.md"
MARKS = "<!-- counts:begin -->", "<!-- counts:end -->"
FACTS = {
    "v": "images",
    "a": "audio",
    "d": "video",
    "f": "PDF",
    "A": "audio out",
    "s": "structured output",
    "t": "tools",
}
HEAD = "| fact | agreed | contested | one source | unknown |\n| --- | ---: | ---: | ---: | ---: |"
ORDER = (FactVerdict.AGREED, FactVerdict.CONTESTED, FactVerdict.ONE_SOURCE, FactVerdict.UNKNOWN)


def main() -> None:
    text = DOCUMENT.read_text("utf-8")
    DOCUMENT.write_text(fill(text, table(default_catalogue())), "utf-8")


def fill(text: str, counts: str) -> str:
    begin, end = MARKS
    # Pass a function, because `re.sub` would interpret backslashes in a replacement string.
    return re.sub(f"{begin}.*?{end}", lambda _found: f"{begin}\n{counts}\n{end}", text, flags=re.S)


def table(catalogue: Catalogue) -> str:
    """Return a Markdown table that counts the first-party models by fact and by verdict (agreed, contested …)."""
    rows = list(first_party(catalogue))
    lines = [
        _table_row(name, (_verdict(letter, row) for row in rows)) for letter, name in FACTS.items() if letter in LETTERS
    ]
    lines += [_table_row("context", (_limit(row, "max_input") for row in rows))]
    lines += [_table_row("longest answer", (_limit(row, "max_output") for row in rows))]
    lines += [_table_row("last day", (_end(catalogue, host, name) for host, name in _first_party_models(catalogue)))]
    return f"{len(rows)} first-party models.\n\n{HEAD}\n" + "\n".join(lines)


def _first_party_models(catalogue: Catalogue) -> Iterator[tuple[str, str]]:
    for host in MAKERS:
        names = {*catalogue.document.models.get(host, ()), *catalogue.document.ends.get(host, ())}
        yield from ((host, name) for name in sorted(names) if find_maker(name) == host)


def first_party(catalogue: Catalogue) -> Iterator[list[Witness]]:
    labels = [note.label for note in catalogue.document.sources]
    for host, name in _first_party_models(catalogue):
        row: tuple[Statement | None, ...] = decode_row(catalogue.document.models.get(host, {}).get(name, ";"))
        witnesses = [Witness(label, statement) for label, statement in zip(labels, row, strict=True) if statement]
        if witnesses:
            yield witnesses


def _verdict(letter: str, row: list[Witness]) -> FactVerdict:
    fact = judge_fact(letter, row)
    return fact.verdict if fact else FactVerdict.UNKNOWN


def _limit(row: list[Witness], field: str) -> FactVerdict:
    limit = judge_limit([(witness.source, getattr(witness.statement, field)) for witness in row])
    return limit.verdict if limit else FactVerdict.UNKNOWN


def _end(catalogue: Catalogue, host: str, name: str) -> FactVerdict:
    end = catalogue.retirement(host, name)
    if end is None:
        return FactVerdict.UNKNOWN
    if end.others:
        return FactVerdict.CONTESTED
    days = catalogue.document.ends.get(host, {}).get(name, ())
    return FactVerdict.AGREED if len(days) > 1 else FactVerdict.ONE_SOURCE


def _table_row(name: str, verdicts: Iterator[FactVerdict]) -> str:
    counts = Counter(verdicts)
    return f"| {name} | " + " | ".join(str(counts[verdict]) for verdict in ORDER) + " |"


if __name__ == "__main__":
    main()
