"""Judge a model's answers to a probe: whether they prove that it can read a kind of file, that it cannot, or neither.

A host that silently drops unsupported content still returns 200, and a model that is asked about content that it did
not receive tends to invent an answer. Therefore, the result is yes only if the model named exactly the contents of two
files and found nothing in an empty third file. The result is no if, for each of the two files, the request was refused,
the model denied that there is anything to read, or it named something else. All other answers prove nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from capabilities.core.message import ChatRequest
from capabilities.core.providers.probes.questions import Probe, Sample, build_request
from capabilities.core.wire import Fault

REFUSALS = frozenset({Fault.HTTP_400, Fault.CAPABILITY_MISMATCH, Fault.HTTP_415, Fault.HTTP_422})
"""If a model answers text-only requests, these faults in a request with a file mean that it cannot read the file."""
SILENCES = frozenset({Fault.EMPTY_CONTENT, Fault.EMPTY_CHOICES})


class AnswerReading(StrEnum):
    """How an answer about a file is interpreted."""

    RIGHT = "right"
    """The answer names the file's contents and nothing else."""
    REFUSED = "refused"
    """The request failed, although a request without files was answered."""
    DENIED = "denied"
    """The answer states that there is nothing to read."""
    WRONG = "wrong"
    """The answer names something else."""
    HEDGED = "hedged"
    """The answer names none or several of the possible contents, or it names one but denies that there is anything to
    read."""
    SILENT = "silent"
    """The answer is empty."""
    FAILED = "failed"
    """The request failed for a reason unrelated to the file."""


class ProbeOutcome(StrEnum):
    """What a probe has proved: whether a model can read a kind of file."""

    YES = "yes"
    NO = "no"
    UNCLEAR = "unclear"


class ProbeReason(StrEnum):
    """The reason for a probe's outcome."""

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
    """A model's answer to a probe's question: text or a fault (with HTTP status and message), and token counts."""

    text: str = ""
    fault: str = ""
    status: int | None = None
    message: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Exchange:
    """A probe's question: the word in its file (empty for the control file), the answer, and its interpretation."""

    word: str
    answer: ProbeAnswer
    reading: AnswerReading


@dataclass(frozen=True, slots=True)
class ProbeFinding:
    """The result of a probe, with all questions and answers."""

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
"""Interpretations which mean that the model cannot read the file. The clearest are first."""
NOTHING_THERE = frozenset({AnswerReading.REFUSED, AnswerReading.DENIED, AnswerReading.SILENT})
"""Acceptable interpretations of the answer about the empty control file. A host may reject an empty file."""
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
    """Interpret an answer about a file that contains this word. The word is empty for the control file."""
    if answer.fault:
        refused, silent = answer.fault in REFUSALS, answer.fault in SILENCES
        return AnswerReading.REFUSED if refused else AnswerReading.SILENT if silent else AnswerReading.FAILED
    # Ignore a repetition of the question, because the word NONE in it is not a denial.
    answer_text = answer.text.replace(probe.question, " ").strip()
    if not answer.text.strip():
        return AnswerReading.SILENT
    names, denies = probe.vocabulary.find(answer_text), _DENIAL.search(answer_text) is not None
    # Words such as blank or silent count as a denial only for the empty control file. For other files, they prove
    # nothing.
    if not word:
        denies = denies or _NOTHING.search(answer_text) is not None
    # An answer must name exactly one word or number, because one of several could be right by accident.
    if denies or len(names) != 1:
        return AnswerReading.DENIED if denies and not names else AnswerReading.HEDGED
    return AnswerReading.RIGHT if word in names else AnswerReading.WRONG


def conclude(readings: Sequence[AnswerReading], control: AnswerReading | None) -> tuple[ProbeOutcome, ProbeReason]:
    """Return what the interpreted answers about two files prove, and why.

    `control` is the interpreted answer about the empty control file, or None if the file was not sent.
    """
    if AnswerReading.FAILED in (*readings, control):
        return ProbeOutcome.UNCLEAR, ProbeReason.FAILED
    if all(reading is AnswerReading.RIGHT for reading in readings):
        # If a model names a word for the empty file, it is guessing.
        empty = control in NOTHING_THERE
        return (
            (ProbeOutcome.YES, ProbeReason.READ_BOTH) if empty else (ProbeOutcome.UNCLEAR, ProbeReason.FOUND_IN_CONTROL)
        )
    if all(reading in NEGATIVE for reading in readings):
        return ProbeOutcome.NO, _REASONS[next(negative for negative in NEGATIVE if negative in readings)]
    if AnswerReading.RIGHT in readings:
        return ProbeOutcome.UNCLEAR, ProbeReason.ONE_OF_TWO
    return ProbeOutcome.UNCLEAR, ProbeReason.SILENT if AnswerReading.SILENT in readings else ProbeReason.HEDGED


AskEach = Callable[[Sequence[ChatRequest]], Sequence[ProbeAnswer]]
"""Function that asks a model several questions, concurrently if possible, and returns the answers in order."""


def conduct(probes: Sequence[Probe], ask_each: AskEach, sample: Sample) -> list[ProbeFinding]:
    """Run probes.

    Each probe asks its question about two files and, if the model read both, about the empty control file.
    """
    word_pairs = [probe.vocabulary.draw_two(sample) for probe in probes]
    # Each round has one question from every probe, so that all questions of a round can be asked concurrently.
    rounds = [_ask_round(probes, [pair[index] for pair in word_pairs], ask_each) for index in (0, 1)]
    exchanges = {probe.capability: round_exchanges for probe, *round_exchanges in zip(probes, *rounds, strict=True)}
    right = AnswerReading.RIGHT
    # Send the control file only if it can still change the outcome.
    readable = [probe for probe in probes if all(exchange.reading is right for exchange in exchanges[probe.capability])]
    for probe, control in zip(readable, _ask_round(readable, [""] * len(readable), ask_each), strict=True):
        exchanges[probe.capability].append(control)
    return [_find(probe, exchanges[probe.capability]) for probe in probes]


def _find(probe: Probe, exchanges: Sequence[Exchange]) -> ProbeFinding:
    readings = [exchange.reading for exchange in exchanges]
    outcome, reason = conclude(readings[:2], readings[2] if len(readings) > 2 else None)
    return ProbeFinding(probe, outcome, reason, tuple(exchanges))


def _ask_round(probes: Sequence[Probe], words: Sequence[str], ask_each: AskEach) -> list[Exchange]:
    answers = (
        ask_each([build_request(probe, word) for probe, word in zip(probes, words, strict=True)]) if probes else ()
    )
    return [
        Exchange(word, answer, read_answer(probe, word, answer))
        for probe, word, answer in zip(probes, words, answers, strict=True)
    ]
