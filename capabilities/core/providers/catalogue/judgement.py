"""Combine several sources' statements on a fact into a verdict.

If sources contradict each other, the fact is contested and counts as no until a probe or an administrator decides. A
provider's statement about the models that it serves outweighs other parties' lists if at least one of them agrees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from capabilities.core.vocabulary import Capabilities, Cell

INPUTS = {"v": "vision", "a": "audio", "d": "video", "f": "file"}
OUTPUTS = {"A": "audio", "s": "structured_output", "t": "tool_calling"}
"""The letters in a statement, in the order in which capabilities are listed."""
LETTERS: Mapping[str, Cell] = {
    **{letter: ("input", name) for letter, name in INPUTS.items()},
    **{letter: ("output", name) for letter, name in OUTPUTS.items()},
}
TEXT: tuple[Cell, ...] = (("input", "text"), ("output", "text"))
"""Capabilities that every chat model has."""
CELLS: tuple[Cell, ...] = (*TEXT, *LETTERS.values())
"""The capabilities for which the catalogue has facts."""

ROUNDING = 0.95
"""Two limits whose ratio is at least this are treated as one limit, rounded differently, such as 1,000,000 and
1,048,576 tokens."""


class FactVerdict(StrEnum):
    """The certainty of a fact and its reason. Earlier members take precedence."""

    ADMINISTRATOR = "administrator"
    PROBED = "probed"
    AGREED = "agreed"
    ONE_SOURCE = "one_source"
    PATTERN = "pattern"
    CONTESTED = "contested"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Statement:
    """A source's statement about a model at a host.

    `yes` has the letters of capabilities that the model has, `no` of those that it does not have, and `both` of those
    for which the source states both. The limits are in tokens, or None if not stated.
    """

    yes: str = ""
    no: str = ""
    both: str = ""
    max_input: int | None = None
    max_output: int | None = None

    @property
    def declares(self) -> bool:
        return bool(self.yes or self.no or self.both)


@dataclass(frozen=True, slots=True)
class Witness:
    """A source and its statement. `own` is set for a provider that lists the models it serves."""

    source: str
    statement: Statement
    own: bool = False


@dataclass(frozen=True, slots=True)
class Fact:
    """Whether a capability counts as present, the verdict, and the sources that state yes and no."""

    value: bool
    verdict: FactVerdict
    yes: tuple[str, ...] = ()
    no: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StatedLimit:
    """The lowest number of tokens that a source states, with the verdict and each source's number."""

    tokens: int
    verdict: FactVerdict
    statements: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Retirement:
    """The day on which a model is retired, and the source. `others` are sources that state another day.

    `successor` is the model that the vendor recommends instead, and `successor_source` is the source of this. Both are
    empty if unknown.
    """

    model: str
    day: date
    source: str
    others: tuple[tuple[str, date], ...] = ()
    successor: str = ""
    successor_source: str = ""


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """The catalogue's entry for a model: facts by capability, and limits (None if no source states them).

    `matched_by` is provider, maker, hosts (facts on which all hosts agree) or pattern. `matched` is the name or
    pattern.
    """

    facts: Mapping[Cell, Fact]
    max_input: StatedLimit | None
    max_output: StatedLimit | None
    source: str
    checked_on: date
    matched_by: str
    matched: str

    @property
    def capabilities(self) -> Capabilities:
        """Return the capabilities that are present. Contested capabilities are excluded."""
        true_cells = [cell for cell, fact in self.facts.items() if fact.value]
        inputs, outputs = (tuple(name for at, name in true_cells if at == side) for side in ("input", "output"))
        return Capabilities(inputs, outputs)

    @property
    def contested(self) -> dict[Cell, Fact]:
        return {cell: fact for cell, fact in self.facts.items() if fact.verdict is FactVerdict.CONTESTED}

    @property
    def max_input_tokens(self) -> int | None:
        return self.max_input.tokens if self.max_input else None

    @property
    def max_output_tokens(self) -> int | None:
        return self.max_output.tokens if self.max_output else None


def judge_facts(witnesses: Sequence[Witness]) -> dict[Cell, Fact]:
    """Return the facts that any of the sources states, with text first."""
    sources = tuple(witness.source for witness in witnesses)
    verdict = FactVerdict.AGREED if len(sources) > 1 else FactVerdict.ONE_SOURCE
    # All listed models are chat models, so they read and write text.
    facts = {cell: Fact(True, verdict, sources) for cell in TEXT}
    judged = {cell: judge_fact(letter, witnesses) for letter, cell in LETTERS.items()}
    return facts | {cell: fact for cell, fact in judged.items() if fact is not None}


def judge_fact(letter: str, witnesses: Sequence[Witness]) -> Fact | None:
    yes = [witness for witness in witnesses if letter in witness.statement.yes or letter in witness.statement.both]
    no = [witness for witness in witnesses if letter in witness.statement.no or letter in witness.statement.both]
    if not yes and not no:
        return None
    names = tuple(witness.source for witness in yes), tuple(witness.source for witness in no)
    if not (yes and no):
        return Fact(bool(yes), FactVerdict.AGREED if len(yes or no) > 1 else FactVerdict.ONE_SOURCE, *names)
    # If sources disagree, a provider's own statement decides if another source supports it.
    for side in (yes, no):
        if len(side) > 1 and any(witness.own and letter not in witness.statement.both for witness in side):
            return Fact(side is yes, FactVerdict.AGREED, *names)
    # A contested value counts as no. If no is wrong, text is sent instead of a file, but if yes is wrong, the request
    # fails.
    return Fact(False, FactVerdict.CONTESTED, *names)


def judge_limit(statements: Sequence[tuple[str, int | None]]) -> StatedLimit | None:
    """Return the lowest limit, or None if none is stated. It is contested if limits differ by more than rounding."""
    numbers = tuple((source, tokens) for source, tokens in statements if tokens)
    if not numbers:
        return None
    # Use the lowest limit. If it is too small, a request goes to the next candidate, but if it is too large, the
    # request fails.
    lowest, highest = min(tokens for _, tokens in numbers), max(tokens for _, tokens in numbers)
    if lowest < highest * ROUNDING:
        return StatedLimit(lowest, FactVerdict.CONTESTED, numbers)
    return StatedLimit(lowest, FactVerdict.AGREED if len(numbers) > 1 else FactVerdict.ONE_SOURCE, numbers)


def merge(statements: Sequence[Statement]) -> Statement:
    """Merge several rows of a source. Different facts become `both`, and the lowest limit is used."""
    yes = {letter for statement in statements for letter in statement.yes + statement.both}
    no = {letter for statement in statements for letter in statement.no + statement.both}
    return Statement(
        order_letters(yes - no),
        order_letters(no - yes),
        order_letters(yes & no),
        min((statement.max_input for statement in statements if statement.max_input), default=None),
        min((statement.max_output for statement in statements if statement.max_output), default=None),
    )


def order_letters(letters: set[str]) -> str:
    return "".join(letter for letter in LETTERS if letter in letters)
