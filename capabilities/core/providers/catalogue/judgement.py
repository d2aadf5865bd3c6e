"""What do several sources together say of one fact? Each fact has its verdict, and who said what.

A fact that sources contradict each other about is contested and counts as no, until a probe or an administrator
decides. What a provider says of the models it serves counts more than a list kept by others, but not alone against
all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from capabilities.core.vocabulary import Capabilities, Cell

INPUTS = {"v": "vision", "a": "audio", "d": "video", "f": "file"}
OUTPUTS = {"A": "audio", "s": "structured_output", "t": "tool_calling"}
"""The letters of a statement, in the order capabilities are listed."""
LETTERS: Mapping[str, Cell] = {
    **{letter: ("input", word) for letter, word in INPUTS.items()},
    **{letter: ("output", word) for letter, word in OUTPUTS.items()},
}
TEXT: tuple[Cell, ...] = (("input", "text"), ("output", "text"))
"""What every model that chats reads and writes."""
CELLS: tuple[Cell, ...] = (*TEXT, *LETTERS.values())
"""The cells that the catalogue may have a word on."""

ROUNDING = 0.95
"""Limits that differ by less are one limit, rounded: 1,000,000 and 1,048,576 tokens."""


class FactVerdict(StrEnum):
    """How sure a fact is, and by what: the earlier one wins."""

    ADMINISTRATOR = "administrator"
    PROBED = "probed"
    AGREED = "agreed"
    ONE_SOURCE = "one_source"
    PATTERN = "pattern"
    CONTESTED = "contested"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Statement:
    """What one source says of a model at one host: letters it has, has not, and is of two minds about; limits in
    tokens, None where it names none.
    """

    yes: str = ""
    no: str = ""
    both: str = ""
    max_input: int | None = None
    max_output: int | None = None

    @property
    def declares(self) -> bool:
        """Whether it has a word on any letter."""
        return bool(self.yes or self.no or self.both)


@dataclass(frozen=True, slots=True)
class Witness:
    """A source and its statement; `own` for a provider that speaks of the models it serves."""

    source: str
    statement: Statement
    own: bool = False


@dataclass(frozen=True, slots=True)
class Fact:
    """Whether a capability counts as there, how sure that is, and which sources said yes and which no."""

    value: bool
    verdict: FactVerdict
    yes: tuple[str, ...] = ()
    no: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StatedLimit:
    """A number of tokens, the least that was said, how sure it is, and which source said which."""

    tokens: int
    verdict: FactVerdict
    statements: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Retirement:
    """The day from which a model is no longer served, and who says so; `others` say another day.

    `successor` is the model that its vendor names instead, `successor_source` where; both empty when none is known.
    """

    model: str
    day: date
    source: str
    others: tuple[tuple[str, date], ...] = ()
    successor: str = ""
    successor_source: str = ""


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """What the catalogue says of a model: facts by cell, limits, None where no source names one.

    `matched_by` is provider, maker, hosts (what all of them agree on) or pattern; `matched` the name or pattern.
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
        """What counts as read and written: contested is no."""
        there = [cell for cell, fact in self.facts.items() if fact.value]
        reads, writes = (tuple(name for at, name in there if at == side) for side in ("input", "output"))
        return Capabilities(reads, writes)

    @property
    def contested(self) -> dict[Cell, Fact]:
        """The facts that sources contradict each other about."""
        return {cell: fact for cell, fact in self.facts.items() if fact.verdict is FactVerdict.CONTESTED}

    @property
    def max_input_tokens(self) -> int | None:
        """Tokens that it takes; None where no source says."""
        return self.max_input.tokens if self.max_input else None

    @property
    def max_output_tokens(self) -> int | None:
        """Tokens that it gives; None where no source says."""
        return self.max_output.tokens if self.max_output else None


def judge_facts(witnesses: Sequence[Witness]) -> dict[Cell, Fact]:
    """The facts that any witness has a word on, text first."""
    everybody = tuple(each.source for each in witnesses)
    sure = FactVerdict.AGREED if len(everybody) > 1 else FactVerdict.ONE_SOURCE
    facts = {cell: Fact(True, sure, everybody) for cell in TEXT}
    judged = {cell: judge_fact(letter, witnesses) for letter, cell in LETTERS.items()}
    return facts | {cell: fact for cell, fact in judged.items() if fact is not None}


def judge_fact(letter: str, witnesses: Sequence[Witness]) -> Fact | None:
    """What the witnesses together say of one letter; None when none has a word on it."""
    yes = [each for each in witnesses if letter in each.statement.yes or letter in each.statement.both]
    no = [each for each in witnesses if letter in each.statement.no or letter in each.statement.both]
    if not yes and not no:
        return None
    names = tuple(each.source for each in yes), tuple(each.source for each in no)
    if not (yes and no):
        return Fact(bool(yes), FactVerdict.AGREED if len(yes or no) > 1 else FactVerdict.ONE_SOURCE, *names)
    for side in (yes, no):
        if len(side) > 1 and any(each.own and letter not in each.statement.both for each in side):
            return Fact(side is yes, FactVerdict.AGREED, *names)
    return Fact(False, FactVerdict.CONTESTED, *names)


def judge_limit(statements: Sequence[tuple[str, int | None]]) -> StatedLimit | None:
    """The least that any source says; contested when they differ by more than rounding; None when none says."""
    numbers = tuple((source, tokens) for source, tokens in statements if tokens)
    if not numbers:
        return None
    least, most = min(tokens for _, tokens in numbers), max(tokens for _, tokens in numbers)
    if least < most * ROUNDING:
        return StatedLimit(least, FactVerdict.CONTESTED, numbers)
    return StatedLimit(least, FactVerdict.AGREED if len(numbers) > 1 else FactVerdict.ONE_SOURCE, numbers)


def merge(statements: Sequence[Statement]) -> Statement:
    """Several rows of one source as one: of two minds where they differ, the least limit."""
    yes = {letter for each in statements for letter in each.yes + each.both}
    no = {letter for each in statements for letter in each.no + each.both}
    return Statement(
        in_order(yes - no),
        in_order(no - yes),
        in_order(yes & no),
        min((each.max_input for each in statements if each.max_input), default=None),
        min((each.max_output for each in statements if each.max_output), default=None),
    )


def in_order(letters: set[str]) -> str:
    """The letters in the order of the table."""
    return "".join(letter for letter in LETTERS if letter in letters)
