"""What a model's answers prove: that it reads the file, that it does not, or neither.

A host that silently drops what it cannot take still answers 200, and a model that is asked what it sees likes to say
something. So it reads only when it named, of two files, exactly what each held, and found nothing where there was
nothing. It does not read when it refused, denied or named something else both times; everything else proves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from capabilities.core.message import ChatRequest
from capabilities.core.providers.probes.questions import Probe, request_of
from capabilities.core.providers.probes.vocabulary import Sample
from capabilities.core.wire import Fault

REFUSALS = frozenset({Fault.HTTP_400, Fault.CAPABILITY_MISMATCH, Fault.HTTP_415, Fault.HTTP_422})
"""What a model that cannot read a file answers with, given that it answered words alone."""
SILENCES = frozenset({Fault.EMPTY_CONTENT, Fault.EMPTY_CHOICES})


class AnswerReading(StrEnum):
    """What one answer says of one file."""

    RIGHT = "right"
    """It names what the file holds, and only that."""
    REFUSED = "refused"
    """The request was refused, though words alone were answered."""
    DENIED = "denied"
    "It says there is nothing to read."
    WRONG = "wrong"
    """It names something else."""
    HEDGED = "hedged"
    """It names nothing, or several, or what the file holds while it denies that there is anything."""
    SILENT = "silent"
    """It says nothing."""
    FAILED = "failed"
    """No answer came, for a reason that has nothing to do with the file."""


class ProbeOutcome(StrEnum):
    """What is proved of a model and one kind of file."""

    YES = "yes"
    NO = "no"
    UNCLEAR = "unclear"


class ProbeReason(StrEnum):
    """Why it is that outcome."""

    READ_BOTH = "read_both"
    REFUSED = "refused"
    DENIED = "denied"
    WRONG = "wrong"
    FOUND_IN_CONTROL = "found_in_control"
    ONE_OF_TWO = "one_of_two"
    HEDGED = "hedged"
    SILENT = "silent"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeAnswer:
    """What came back of one question: words, or the fault with its status and message; tokens where they were told."""

    text: str = ""
    fault: str = ""
    status: int | None = None
    message: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question of a probe: the word that its file held (none: the control), the answer and what that says."""

    word: str
    answer: ProbeAnswer
    reading: AnswerReading


@dataclass(frozen=True, slots=True)
class ProbeFinding:
    """What came of a probe, with every question that was asked for it."""

    probe: Probe
    outcome: ProbeOutcome
    reason: ProbeReason
    exchanges: tuple[Exchange, ...]


_PERCEIVE = (
    "see|hear|view|read|listen|open|access|process|find|detect|play|perceive|interpret|identify|recogni[sz]e"
    "|determine|analy[sz]e|contain|have"
)
_DENIAL = re.compile(
    r"\bnone\b"
    rf"|\b(?:can ?not|can['’]?t|could ?n['’]?t|unable to|not able to|(?:do|does|did)(?: not|n['’]?t))\b"
    rf" (?:\w+ ){{0,2}}?(?:{_PERCEIVE})"
    r"|\bno (?!other)(?:\w+ )?"
    r"(?:words?|text|digits?|images?|pictures?|audio|sounds?|speech|videos?|documents?|files?)\b"
    r"|[看听读]不[到见清懂]|(?:无法|不能|未能)[^。，]{0,4}[看听读识查打访处]|没看到|没听到|没听见"
    r"|没有(?:看|听|图|文字|单词|内容|声音|音频|语音|数字|视频|文[件档]|附件|任何)",
    re.IGNORECASE,
)
_NOTHING = re.compile(
    r"\b(?:nothing|blank|empty|silen(?:t|ce)|no one|nobody|white (?:image|page|background|screen)|plain white)\b"
    r"|空白|空的|静音|无声|沒有|纯白|^\s*+无\s*+[。.]?\s*+$",
    re.IGNORECASE,
)
NEGATIVE = (AnswerReading.REFUSED, AnswerReading.DENIED, AnswerReading.WRONG)
"""What says that a model does not read, the plainest first."""
NOTHING_THERE = frozenset({AnswerReading.REFUSED, AnswerReading.DENIED, AnswerReading.SILENT})
"""What a model may answer to the control: a host may well refuse an empty file."""
_REASONS: Mapping[AnswerReading, ProbeReason] = MappingProxyType(
    {
        AnswerReading.REFUSED: ProbeReason.REFUSED,
        AnswerReading.DENIED: ProbeReason.DENIED,
        AnswerReading.WRONG: ProbeReason.WRONG,
        AnswerReading.SILENT: ProbeReason.SILENT,
        AnswerReading.HEDGED: ProbeReason.HEDGED,
    }
)


def read_answer(probe: Probe, word: str, answer: ProbeAnswer) -> AnswerReading:
    """What an answer says of a file that held that word; an empty word is the control's."""
    if answer.fault:
        refused, silent = answer.fault in REFUSALS, answer.fault in SILENCES
        return AnswerReading.REFUSED if refused else AnswerReading.SILENT if silent else AnswerReading.FAILED
    said = answer.text.replace(probe.question, " ").strip()  # a question that is echoed denies nothing
    if not answer.text.strip():
        return AnswerReading.SILENT
    named, denies = probe.vocabulary.find(said), _DENIAL.search(said) is not None
    if not word:
        denies = denies or _NOTHING.search(said) is not None
    if denies or len(named) != 1:
        return AnswerReading.DENIED if denies and not named else AnswerReading.HEDGED
    return AnswerReading.RIGHT if word in named else AnswerReading.WRONG


def conclude(readings: Sequence[AnswerReading], control: AnswerReading | None) -> tuple[ProbeOutcome, ProbeReason]:
    """What the readings of the two files prove, with that of the control, which is asked where both are right."""
    if AnswerReading.FAILED in (*readings, control):
        return ProbeOutcome.UNCLEAR, ProbeReason.FAILED
    if all(each is AnswerReading.RIGHT for each in readings):
        empty = control in NOTHING_THERE
        return (
            (ProbeOutcome.YES, ProbeReason.READ_BOTH) if empty else (ProbeOutcome.UNCLEAR, ProbeReason.FOUND_IN_CONTROL)
        )
    if all(each in NEGATIVE for each in readings):
        return ProbeOutcome.NO, _REASONS[next(each for each in NEGATIVE if each in readings)]
    if AnswerReading.RIGHT in readings:
        return ProbeOutcome.UNCLEAR, ProbeReason.ONE_OF_TWO
    return ProbeOutcome.UNCLEAR, ProbeReason.SILENT if AnswerReading.SILENT in readings else ProbeReason.HEDGED


AskEach = Callable[[Sequence[ChatRequest]], Sequence[ProbeAnswer]]
"""Asks several questions of one model, at once if it likes; the answers in their order."""


def conduct(probes: Sequence[Probe], ask_each: AskEach, sample: Sample) -> list[ProbeFinding]:
    """Asks each probe's question of two files, and of the control where both were read; `sample` draws the words."""
    words = [probe.vocabulary.draw_two(sample) for probe in probes]
    rounds = [_ask_round(probes, [pair[place] for pair in words], ask_each) for place in (0, 1)]
    exchanges = {probe.capability: both for probe, *both in zip(probes, *rounds, strict=True)}
    right = AnswerReading.RIGHT
    read = [probe for probe in probes if all(one.reading is right for one in exchanges[probe.capability])]
    for probe, control in zip(read, _ask_round(read, [""] * len(read), ask_each), strict=True):
        exchanges[probe.capability].append(control)
    return [_find(probe, exchanges[probe.capability]) for probe in probes]


def _find(probe: Probe, exchanges: Sequence[Exchange]) -> ProbeFinding:
    readings = [each.reading for each in exchanges]
    outcome, reason = conclude(readings[:2], readings[2] if len(readings) > 2 else None)
    return ProbeFinding(probe, outcome, reason, tuple(exchanges))


def _ask_round(probes: Sequence[Probe], words: Sequence[str], ask_each: AskEach) -> list[Exchange]:
    answers = ask_each([request_of(probe, word) for probe, word in zip(probes, words, strict=True)]) if probes else ()
    return [
        Exchange(word, answer, read_answer(probe, word, answer))
        for probe, word, answer in zip(probes, words, answers, strict=True)
    ]
