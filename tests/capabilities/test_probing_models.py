"""Probes over real sockets in every protocol: a model that guesses, refuses or evades never passes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

import pytest

from capabilities.core.delivery.slot_choice import slots_for
from capabilities.core.message import ChatRequest
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.providers.origins import OriginPolicy
from capabilities.core.providers.probes.judgement import ProbeAnswer, ProbeOutcome, conduct
from capabilities.core.providers.probes.questions import PROBES, WORDS, Probe
from capabilities.core.wire import Failure, Target
from routing_admin.core.fallback.chain import Timeouts
from routing_admin.upstream import Upstream, run_sync
from tests.lab.reading_model import word_in
from tests.lab.received_requests import ReceivedRequest
from tests.lab.server import Lab

PROBED_PROTOCOLS = ("openai", "openai-responses", "anthropic", "gemini")
TIME = Timeouts(connect=5, first_content=20, between=20, total=60)
Model = Callable[[ReceivedRequest], str | int]


def answer_with(text: str) -> Model:
    return lambda _: f"say:{text}"


def guess_at_random() -> Model:
    next_words = iter([*WORDS[::3], *WORDS])
    return lambda request: f"say:{next(next_words)} {random.Random(request.question).randrange(10)}"


def read_politely(prefix: str, suffix: str = "", case: Callable[[str], str] = str) -> Model:
    """Return a model that reads the file and adds polite phrases to its answer."""

    def model(request: ReceivedRequest) -> str:
        word = word_in(request.media[0])
        return f"say:{prefix}{case(word)}{suffix}" if word else "say:NONE"

    return model


def read_first_letters(request: ReceivedRequest) -> str:
    return f"say:{word_in(request.media[0])[:3] or 'NONE'}"


def see_words_in_empty_files(request: ReceivedRequest) -> str:
    """Answer as a model that reads files correctly, but claims to see something in an empty file."""
    return f"say:{word_in(request.media[0]) or 'A kitten on a sofa.'}"


LIARS: dict[str, Callable[[], Model]] = {
    "says yes": lambda: answer_with("Yes, I can see it."),
    "is sure": lambda: answer_with("Yes! I can read it perfectly, and hear it, too."),
    "denies": lambda: answer_with("NONE. I cannot hear any sound."),
    "denies politely": lambda: answer_with("I'm sorry, but I cannot view images or listen to audio."),
    "denies in Chinese": lambda: answer_with("抱歉，我无法查看图片，也听不到任何声音。"),
    "answers in Chinese": lambda: answer_with("是的，我看到了一张美丽的图片。"),
    "guesses a word": lambda: answer_with("LANTERN"),
    "guesses digits": lambda: answer_with("1234"),
    "guesses differently each time": guess_at_random,
    "lists every word": lambda: answer_with(" ".join(WORDS)),
    "hedges": lambda: answer_with("Perhaps LANTERN, perhaps UMBRELLA, perhaps 1234 or 4321."),
    "describes what is not there": lambda: answer_with("A sunny beach with palm trees; a dog barks."),
    "echoes the question": lambda: lambda request: f"say:{request.question}",
    "echoes what came": lambda: lambda _: "ok",
    "lists the words of the question": lambda: lambda request: f"say:{', '.join(request.question.upper().split())}",
    "refuses": lambda: lambda _: "http_400:message=image input is not supported",
    "calls it wrong": lambda: lambda _: 400,
    "cannot process it": lambda: lambda _: 422,
    "says nothing": lambda: lambda _: "empty_content",
    "has no time": lambda: lambda _: 429,
    "sees too little": lambda: read_first_letters,
    "finds something in nothing": lambda: see_words_in_empty_files,
}

READERS: dict[str, Callable[[], Model]] = {
    "says the word": lambda: read_politely(""),
    "is polite": lambda: read_politely("Of course! It is **", "**. Let me know if you need anything else."),
    "answers in Chinese": lambda: read_politely("文件里写的是“", "”。"),
    "writes small": lambda: read_politely("", ".", str.lower),
}


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab() as lab:
        yield lab


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    upstream = Upstream(OriginPolicy(everything=True))
    yield upstream
    run_sync(upstream.close())


def probe(lab: Lab, upstream: Upstream, protocol: str, model: Model) -> dict[str, ProbeOutcome]:
    """Return the probe's outcome for each kind of content for which the protocol has a slot."""
    lab.play({})
    lab.model = model
    speaks, slots = PROTOCOLS[protocol], slots_for(protocol, None, None, {})
    probes: list[Probe] = [row for row in PROBES.values() if slots.get(row.kind) is not None]

    target = Target("lab", lab.url(protocol), "x-1", "sk-lab")

    def ask_each(chats: Sequence[ChatRequest]) -> list[ProbeAnswer]:
        requests = [speaks.encode(chat, target, stream=False) for chat in chats]
        outcomes = [upstream.call_sync(request, speaks, TIME) for request in requests]
        return [
            ProbeAnswer(fault=outcome.fault.value, status=outcome.status)
            if isinstance(outcome, Failure)
            else ProbeAnswer(text=outcome.text)
            for outcome in outcomes
        ]

    findings = conduct(probes, ask_each, random.Random(4).sample)
    assert not any(received.heard.problem for received in lab.requests)
    return {finding.probe.capability: finding.outcome for finding in findings}


@pytest.mark.parametrize("protocol", PROBED_PROTOCOLS)
@pytest.mark.parametrize("model", LIARS)
def test_probe_never_confirms_a_model_that_cannot_read(lab: Lab, upstream: Upstream, protocol: str, model: str) -> None:
    assert ProbeOutcome.YES not in probe(lab, upstream, protocol, LIARS[model]()).values()


@pytest.mark.parametrize("protocol", PROBED_PROTOCOLS)
@pytest.mark.parametrize("reader", READERS)
def test_probe_confirms_a_model_that_reads(lab: Lab, upstream: Upstream, protocol: str, reader: str) -> None:
    outcomes = probe(lab, upstream, protocol, READERS[reader]())
    assert len(outcomes) >= 2
    assert set(outcomes.values()) == {ProbeOutcome.YES}


@pytest.mark.parametrize("model", ["denies", "denies politely", "denies in Chinese", "refuses", "calls it wrong"])
def test_probe_reports_no_for_a_model_that_denies_or_refuses_both_files(
    lab: Lab, upstream: Upstream, model: str
) -> None:
    assert set(probe(lab, upstream, "gemini", LIARS[model]()).values()) == {ProbeOutcome.NO}


@pytest.mark.parametrize("model", ["says yes", "hedges", "echoes the question", "says nothing", "has no time"])
def test_probe_result_of_an_evasive_model_is_unclear(lab: Lab, upstream: Upstream, model: str) -> None:
    assert set(probe(lab, upstream, "gemini", LIARS[model]()).values()) == {ProbeOutcome.UNCLEAR}
