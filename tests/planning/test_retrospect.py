"""Simulation of a draft against past requests: known results, and unknown where the log has no evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.delivery.decision import DeliveryForm
from capabilities.core.delivery.reader import Reader, policies_of
from capabilities.core.delivery.slot_choice import slots_for
from capabilities.core.message import Role
from capabilities.core.vocabulary import Capabilities, Kind
from capabilities.core.wire import Fault
from routing_admin.core.fallback.chain import SkipReason
from routing_admin.core.fallback.policy import ErrorPreset, Policy
from routing_admin.core.fallback.table import Action
from routing_admin.core.planning.past_requests import CandidateKey, PastFile, PastRequest, PastTry, files_in
from routing_admin.core.planning.retrospect import (
    DifferenceKind,
    WalkChain,
    WalkEnd,
    WalkPlace,
    look_back,
    walk,
)

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
PICTURE = PastFile(message=0, part=1, kind=Kind.IMAGE, mime_type="image/png", size=2000, filename="plan.png")
OK, DOWN = PastTry("ok"), PastTry("http_503", 503)
BLIND, SEEING = ("echo", "text"), ("echo", "vision")


def reader(*reads: str, policy: str = "extract+convert", protocol: str = "openai") -> Reader:
    return Reader(slots_for(protocol), Capabilities(("text", *reads), ("text",)), policies_of(policy))


def place(key: CandidateKey, *, policy: str = "extract+convert", is_callable: bool = True) -> WalkPlace:
    reads = ("vision",) if key == SEEING else ()
    return WalkPlace(*key, reader(*reads, policy=policy), is_callable)


def chain(*keys: CandidateKey, **more: Any) -> WalkChain:
    return WalkChain(tuple(place(key) for key in keys), **more)


def request(tries: Mapping[CandidateKey, PastTry], *files: PastFile, number: int = 0) -> PastRequest:
    return PastRequest(f"r{number}", NOW, files, tries)


def told(asked: PastRequest, before: WalkChain, after: WalkChain) -> set[str]:
    return {f"{kind} {word}".strip() for kind, word in look_back([asked], before, after).differences}


def test_a_picture_that_comes_to_a_model_that_sees_is_kept() -> None:
    """A model that reads images keeps the file that the model before it got as a description."""
    asked = request({BLIND: OK, SEEING: OK}, PICTURE)
    found = look_back([asked], chain(BLIND, SEEING), chain(SEEING, BLIND))
    assert set(found.differences) == {
        (DifferenceKind.KEEPS_FILE, "image"),
        (DifferenceKind.FIRST_CHANGES, "echo/vision"),
    }
    assert found.differences[DifferenceKind.KEEPS_FILE, "image"][0].file == 0
    assert [dict(each) for each in found.files] == [{DeliveryForm.DESCRIBED: 1}, {DeliveryForm.AS_IS: 1}]


def test_what_failed_then_fails_again_and_the_next_one_answers() -> None:
    """A past failure repeats and is handled by the draft's error policy: fallback or error."""
    asked = request({SEEING: DOWN, BLIND: OK})
    assert told(asked, chain(BLIND, SEEING), chain(SEEING, BLIND)) == {
        "falls_back",
        "first_changes echo/vision",
    }
    strict = Policy(ErrorPreset.SEED, {"5xx": Action.RAISE})
    assert walk(asked, chain(SEEING, BLIND, policy=strict)).end is WalkEnd.UNANSWERED
    assert told(asked, chain(SEEING, BLIND), chain(SEEING, BLIND, policy=strict)) == {"fails"}
    assert told(asked, chain(SEEING, BLIND, policy=strict), chain(BLIND)) == {"answers", "first_changes echo/text"}


def test_of_a_model_that_was_not_asked_nothing_is_said_but_that() -> None:
    """The walk ends at a model that was not called then: its answer is unknown, but the form of the file is known."""
    asked = request({BLIND: OK}, PICTURE)
    found = walk(asked, chain(SEEING, BLIND))
    assert (found.end, found.last, found.forms) == (WalkEnd.UNKNOWN, "echo/vision", (DeliveryForm.AS_IS,))
    assert told(asked, chain(BLIND), chain(SEEING, BLIND)) == {
        "unknown echo/vision",
        "first_changes echo/vision",
        "keeps_file image",
        "has_reader image",
    }
    assert told(asked, chain(("qwen", "vl"), BLIND), chain(SEEING)) >= {"unknown echo/vision"}
    assert "stays" not in told(request({SEEING: DOWN, BLIND: OK}), chain(SEEING, BLIND), chain(("qwen", "vl")))


@pytest.mark.parametrize("outcome", ["client_cancelled", "aborted", "skipped_disabled", "key_missing"])
def test_an_attempt_that_says_nothing_of_the_model_leaves_it_unknown(outcome: str) -> None:
    """The result is unknown if the caller disconnected, the run was aborted or the model was skipped."""
    assert walk(request({SEEING: PastTry(outcome)}), chain(SEEING)).end is WalkEnd.UNKNOWN


def test_a_model_that_was_cooling_is_passed_by_and_where_all_were_nobody_knows_who_wakes() -> None:
    """A cooling model is skipped. If all were cooling, the last resort is unknown, since the log does not name it."""
    cooling = PastTry(SkipReason.COOLING.value)
    found = walk(request({SEEING: cooling, BLIND: OK}), chain(SEEING, BLIND))
    assert (found.end, found.first, found.place) == (WalkEnd.LATER, "echo/text", 1)
    assert walk(request({SEEING: cooling}), chain(SEEING)).end is WalkEnd.UNKNOWN


def test_a_model_that_may_not_be_told_in_words_is_passed_by() -> None:
    """With the policy `native_only`, a candidate that needs a description is skipped, so this chain fails."""
    strict = WalkChain((place(BLIND, policy="native_only"),))
    asked = request({BLIND: OK}, PICTURE)
    assert walk(asked, strict).end is WalkEnd.UNANSWERED
    assert told(asked, chain(BLIND, SEEING), strict) == {"fails", "no_reader image"}


def test_what_the_configuration_passes_by_is_not_walked_and_keeps_its_place() -> None:
    """A skipped candidate keeps its position, as the log counts fallbacks by position."""
    walked = walk(request({BLIND: OK}), WalkChain((place(SEEING, is_callable=False), place(BLIND))))
    assert (walked.end, walked.first, walked.place) == (WalkEnd.LATER, "echo/text", 1)
    assert walk(request({}), WalkChain()).end is WalkEnd.UNANSWERED


def test_a_candidate_that_left_something_out_is_passed_by_where_the_draft_refuses_that() -> None:
    """A draft that refuses drops skips a candidate that dropped a parameter. One skipped for it then is unknown now."""
    assert walk(request({BLIND: PastTry("ok", drops=True)}), chain(BLIND, refuses_drops=True)).end is WalkEnd.UNANSWERED
    dropped = request({BLIND: PastTry(SkipReason.WOULD_DROP.value)})
    assert walk(dropped, chain(BLIND)).end is WalkEnd.UNKNOWN
    assert walk(dropped, chain(BLIND, refuses_drops=True)).end is WalkEnd.UNANSWERED


def delivery(outcome: str, reason: str, **facts: Any) -> dict[str, Any]:
    said = {"code": "…", "facts": facts}
    where = {"message": 0, "part": 1, "kind": "image", "mimeType": "image/png", "size": 9_000, "filename": None}
    return {**where, "artifactId": None, "outcome": outcome, "reason": reason, "sentence": said}


def test_the_log_s_reasons_tell_what_a_file_was() -> None:
    """A logged reason (tool result, too wide, unreadable) applies to the file for every other candidate."""
    (file,) = files_in([[delivery("hoisted", "fits")], [delivery("described", "too_wide", actual=9000, limit=8000)]])
    assert (file.role, file.width) == (Role.TOOL, 9000)
    (spoilt,) = files_in([[delivery("described", "unreadable", problem="artifact_missing")]])
    assert walk(request({SEEING: OK}, spoilt), chain(SEEING)).forms == (DeliveryForm.DESCRIBED,)
    (odd,) = files_in([[delivery("described", "not_converted", mime_type="image/png")]])
    assert (odd.converts, odd.has_text) == (False, True)


KEYS = [("echo", "text"), ("echo", "vision"), ("qwen", "vl"), ("deepseek", "chat")]
OUTCOMES = ["ok", *(fault.value for fault in Fault), *(reason.value for reason in SkipReason), "aborted"]
tries = st.dictionaries(st.sampled_from(KEYS), st.builds(PastTry, st.sampled_from(OUTCOMES)))
SIZES = (None, 0, 10, 50_000, 6 << 20, 30 << 20, 600 << 20)
files = st.tuples(
    st.sampled_from(list(Kind)), st.sampled_from(["image/png", "application/pdf"]), st.sampled_from(SIZES)
)
pictures = st.lists(files, max_size=3).map(
    lambda found: tuple(
        PastFile(message=0, part=at, kind=kind, mime_type=mime, size=size)
        for at, (kind, mime, size) in enumerate(found)
    )
)
past = st.lists(st.builds(PastRequest, st.uuids().map(str), st.just(NOW), pictures, tries), max_size=6)
chains = st.builds(
    WalkChain,
    st.lists(st.sampled_from(KEYS), unique=True).map(lambda keys: tuple(map(place, keys))),
    st.sampled_from(ErrorPreset).map(Policy),
    st.booleans(),
    st.booleans(),
)


@given(past, chains)
def test_a_draft_that_changes_nothing_changes_no_request(requests: list[PastRequest], same: WalkChain) -> None:
    """A draft that changes nothing has no differences, whatever the log holds."""
    found = look_back(requests, same, same)
    assert not found.differences
    assert found.ends[0] == found.ends[1]


@given(past, chains, chains)
def test_counts_add_up_to_the_requests(requests: list[PastRequest], before: WalkChain, after: WalkChain) -> None:
    """Each request has one end and counts once per difference; swapping the two chains reverses every difference."""
    found, back = look_back(requests, before, after), look_back(requests, after, before)
    assert [side.total() for side in found.ends] == [len(requests)] * 2
    assert found.count == len(requests)
    for pairs in found.differences.values():
        assert len({each.request.id for each in pairs}) == len(pairs)
    for more, less in (("keeps_file", "loses_file"), ("has_reader", "no_reader"), ("falls_back", "stays")):
        gains = {word: len(pairs) for (kind, word), pairs in found.differences.items() if kind == more}
        assert gains == {word: len(pairs) for (kind, word), pairs in back.differences.items() if kind == less}


@given(past, chains, chains)
def test_requests_that_walk_together_would_go_the_same_way_alone(
    requests: list[PastRequest], before: WalkChain, after: WalkChain
) -> None:
    """Requests that are grouped for the walk end as they would one by one, whatever the size of their files."""
    found = look_back(requests, before, after)
    for chain_walked, ends, forms in zip((before, after), found.ends, found.files, strict=True):
        alone = [walk(each, chain_walked) for each in requests]
        assert ends == Counter(each.end for each in alone)
        assert forms == Counter(form for each in alone for form in each.forms)


@given(past, chains)
def test_nobody_who_was_not_asked_is_said_to_answer(requests: list[PastRequest], after: WalkChain) -> None:
    """A candidate answers in the simulation only if it answered that request in the past."""
    for each in requests:
        end = walk(each, after)
        if end.end in (WalkEnd.FIRST, WalkEnd.LATER):
            provider, _, model = end.last.partition("/")
            assert each.tries[provider, model].outcome == "ok"
