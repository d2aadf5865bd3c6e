"""Combine several sources' statements about a model's capabilities and limits into verdicts.

If sources contradict each other, a capability is contested and counts as missing until a probe or an administrator
decides. A provider's statement about the models that it serves prevails if at least one other source agrees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from capabilities.core.vocabulary import Capabilities, Cell

INPUTS = {"v": "vision", "a": "audio", "d": "video", "f": "file"}
OUTPUTS = {"A": "audio", "s": "structured_output", "t": "tool_calling"}
"""The letters `INPUTS` and `OUTPUTS` encode capabilities in a statement. They are in display order."""
LETTERS: Mapping[str, Cell] = {
    **{letter: ("input", name) for letter, name in INPUTS.items()},
    **{letter: ("output", name) for letter, name in OUTPUTS.items()},
}
TEXT: tuple[Cell, ...] = (("input", "text"), ("output", "text"))
"""Capabilities that every chat model has."""
CELLS: tuple[Cell, ...] = (*TEXT, *LETTERS.values())
"""All capabilities about which the catalogue contains facts."""

ROUNDING = 0.95
"""Two limits are treated as the same limit, rounded differently, if the lower is at least this fraction of the higher,
such as 1,000,000 and 1,048,576 tokens."""


class FactVerdict(StrEnum):
    """How certain a fact is, and why. Earlier members take precedence."""

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

    `yes` contains the letters of supported capabilities, `no` those of unsupported capabilities, and `both` those of
    capabilities about which the source contradicts itself. The limits are in tokens, or None if not stated.
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
    """A source and its statement. `own` is set if the source is a provider's own model list."""

    source: str
    statement: Statement
    own: bool = False


@dataclass(frozen=True, slots=True)
class Fact:
    """Whether a capability counts as supported, how certain this is, and which sources say yes and no."""

    value: bool
    verdict: FactVerdict
    yes: tuple[str, ...] = ()
    no: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StatedLimit:
    """The lowest token limit that any source states, how certain it is, and the limit that each source states."""

    tokens: int
    verdict: FactVerdict
    statements: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Retirement:
    """The day on which a model is retired, and the source. `others` are sources that state another day.

    `successor` is the replacement that the vendor recommends, and `successor_source` the source of this recommendation.
    Both are empty if unknown.
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

    `matched_by` is `provider`, `maker`, `hosts` (the combined rows of all hosts) or `pattern`. `matched` is the model
    name or pattern that matched.
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
        """Return the supported capabilities, excluding those on which the sources disagree."""
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
    """Return a fact for each capability about which a source states something. Text capabilities are first."""
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
    # If sources disagree, a provider's own statement prevails, provided that at least one other source agrees with it.
    for side in (yes, no):
        if len(side) > 1 and any(witness.own and letter not in witness.statement.both for witness in side):
            return Fact(side is yes, FactVerdict.AGREED, *names)
    # A contested capability counts as missing. If the model has it, text is needlessly sent instead of a file. If it
    # counted as present and the model lacked it, the request would fail.
    return Fact(False, FactVerdict.CONTESTED, *names)


def judge_limit(statements: Sequence[tuple[str, int | None]]) -> StatedLimit | None:
    """Return the lowest stated limit, or None. It is contested if the limits differ by more than rounding."""
    numbers = tuple((source, tokens) for source, tokens in statements if tokens)
    if not numbers:
        return None
    # Use the lowest limit. If it is too low, some requests are needlessly sent to another model. If it were too
    # high, requests would fail.
    lowest, highest = min(tokens for _, tokens in numbers), max(tokens for _, tokens in numbers)
    if lowest < highest * ROUNDING:
        return StatedLimit(lowest, FactVerdict.CONTESTED, numbers)
    return StatedLimit(lowest, FactVerdict.AGREED if len(numbers) > 1 else FactVerdict.ONE_SOURCE, numbers)


def merge(statements: Sequence[Statement]) -> Statement:
    """Merge several statements of one source. If they contradict each other about a fact, it becomes `both`.

    The lowest limits are used.
    """
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
