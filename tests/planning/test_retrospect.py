"""A draft configuration is simulated with past requests. Where the log has no evidence, the result is unknown.

For each logged request, the simulation follows the draft's chain, candidate by candidate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.delivery.decision import DeliveryForm
from capabilities.core.delivery.reader import Reader, parse_policies
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
    WalkCandidate,
    WalkChain,
    WalkEnd,
    compare_routes,
    walk,
)

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
PICTURE = PastFile(message=0, part=1, kind=Kind.IMAGE, mime_type="image/png", size=2000, filename="plan.png")
OK, DOWN = PastTry("ok"), PastTry("http_503", 503)
BLIND, SEEING = ("echo", "text"), ("echo", "vision")


def reader(*reads: str, policy: str = "extract+convert", protocol: str = "openai") -> Reader:
    return Reader(slots_for(protocol), Capabilities(("text", *reads), ("text",)), parse_policies(policy))


def make_candidate(key: CandidateKey, *, policy: str = "extract+convert", is_callable: bool = True) -> WalkCandidate:
    reads = ("vision",) if key == SEEING else ()
    return WalkCandidate(*key, reader(*reads, policy=policy), is_callable)


def chain(*keys: CandidateKey, **more: Any) -> WalkChain:
    return WalkChain(tuple(make_candidate(key) for key in keys), **more)


def request(tries: Mapping[CandidateKey, PastTry], *files: PastFile, number: int = 0) -> PastRequest:
    return PastRequest(f"r{number}", NOW, files, tries)


def find_differences(past_request: PastRequest, before: WalkChain, after: WalkChain) -> set[str]:
    return {f"{kind} {detail}".strip() for kind, detail in compare_routes([past_request], before, after).differences}


def test_vision_model_receives_the_image_itself_in_the_retrospective() -> None:
    """The model that reads images receives the file itself, although the model before it received a description."""
    past_request = request({BLIND: OK, SEEING: OK}, PICTURE)
    comparison = compare_routes([past_request], chain(BLIND, SEEING), chain(SEEING, BLIND))
    assert set(comparison.differences) == {
        (DifferenceKind.KEEPS_FILE, "image"),
        (DifferenceKind.FIRST_CHANGES, "echo/vision"),
    }
    assert comparison.differences[DifferenceKind.KEEPS_FILE, "image"][0].file == 0
    assert [dict(forms) for forms in comparison.files] == [{DeliveryForm.DESCRIBED: 1}, {DeliveryForm.AS_IS: 1}]


def test_logged_failure_repeats_in_the_simulation_under_the_error_policy_of_the_draft() -> None:
    past_request = request({SEEING: DOWN, BLIND: OK})
    assert find_differences(past_request, chain(BLIND, SEEING), chain(SEEING, BLIND)) == {
        "falls_back",
        "first_changes echo/vision",
    }
    strict = Policy(ErrorPreset.SEED, {"5xx": Action.RAISE})
    assert walk(past_request, chain(SEEING, BLIND, policy=strict)).end is WalkEnd.UNANSWERED
    assert find_differences(past_request, chain(SEEING, BLIND), chain(SEEING, BLIND, policy=strict)) == {"fails"}
    assert find_differences(past_request, chain(SEEING, BLIND, policy=strict), chain(BLIND)) == {
        "answers",
        "first_changes echo/text",
    }


def test_retrospective_result_is_unknown_at_a_model_that_was_not_called() -> None:
    """A model that was not called has no known answer, but the form in which it would receive the file is known."""
    past_request = request({BLIND: OK}, PICTURE)
    walked = walk(past_request, chain(SEEING, BLIND))
    assert (walked.end, walked.last, walked.forms) == (WalkEnd.UNKNOWN, "echo/vision", (DeliveryForm.AS_IS,))
    assert find_differences(past_request, chain(BLIND), chain(SEEING, BLIND)) == {
        "unknown echo/vision",
        "first_changes echo/vision",
        "keeps_file image",
        "has_reader image",
    }
    assert find_differences(past_request, chain(("qwen", "vl"), BLIND), chain(SEEING)) >= {"unknown echo/vision"}
    assert "stays" not in find_differences(
        request({SEEING: DOWN, BLIND: OK}), chain(SEEING, BLIND), chain(("qwen", "vl"))
    )


@pytest.mark.parametrize("outcome", ["client_cancelled", "aborted", "skipped_disabled", "key_missing"])
def test_attempt_without_an_outcome_from_the_model_is_unknown(outcome: str) -> None:
    assert walk(request({SEEING: PastTry(outcome)}), chain(SEEING)).end is WalkEnd.UNKNOWN


def test_model_in_cooldown_is_skipped_and_a_last_resort_is_unknown() -> None:
    """A model that was in cooldown is skipped. If all models were, the log does not show which one was called as a last
    resort, so the result is unknown.
    """
    cooling = PastTry(SkipReason.COOLING.value)
    walked = walk(request({SEEING: cooling, BLIND: OK}), chain(SEEING, BLIND))
    assert (walked.end, walked.first, walked.place) == (WalkEnd.LATER, "echo/text", 1)
    assert walk(request({SEEING: cooling}), chain(SEEING)).end is WalkEnd.UNKNOWN


def test_native_only_candidate_is_skipped_if_it_needs_a_description() -> None:
    strict = WalkChain((make_candidate(BLIND, policy="native_only"),))
    past_request = request({BLIND: OK}, PICTURE)
    assert walk(past_request, strict).end is WalkEnd.UNANSWERED
    assert find_differences(past_request, chain(BLIND, SEEING), strict) == {"fails", "no_reader image"}


def test_skipped_candidate_keeps_its_position_in_the_chain() -> None:
    """The log counts fallbacks by their position in the chain."""
    walked = walk(request({BLIND: OK}), WalkChain((make_candidate(SEEING, is_callable=False), make_candidate(BLIND))))
    assert (walked.end, walked.first, walked.place) == (WalkEnd.LATER, "echo/text", 1)
    assert walk(request({}), WalkChain()).end is WalkEnd.UNANSWERED


def test_draft_that_forbids_drops_skips_a_candidate_that_dropped_a_parameter() -> None:
    assert walk(request({BLIND: PastTry("ok", drops=True)}), chain(BLIND, refuses_drops=True)).end is WalkEnd.UNANSWERED
    dropped = request({BLIND: PastTry(SkipReason.WOULD_DROP.value)})
    assert walk(dropped, chain(BLIND)).end is WalkEnd.UNKNOWN
    assert walk(dropped, chain(BLIND, refuses_drops=True)).end is WalkEnd.UNANSWERED


def delivery(outcome: str, reason: str, **facts: Any) -> dict[str, Any]:
    sentence = {"code": "…", "facts": facts}
    file_fields = {"message": 0, "part": 1, "kind": "image", "mimeType": "image/png", "size": 9_000, "filename": None}
    return {**file_fields, "artifactId": None, "outcome": outcome, "reason": reason, "sentence": sentence}


def test_file_facts_are_derived_from_logged_delivery_reasons() -> None:
    """If the log says that the file was in a tool result, too wide or unreadable, this also applies to other
    candidates.
    """
    (file,) = files_in([[delivery("hoisted", "fits")], [delivery("described", "too_wide", actual=9000, limit=8000)]])
    assert (file.role, file.width) == (Role.TOOL, 9000)
    (spoilt,) = files_in([[delivery("described", "unreadable", problem="artifact_missing")]])
    assert walk(request({SEEING: OK}, spoilt), chain(SEEING)).forms == (DeliveryForm.DESCRIBED,)
    (unconverted,) = files_in([[delivery("described", "not_converted", mime_type="image/png")]])
    assert (unconverted.converts, unconverted.has_text) == (False, True)


KEYS = [("echo", "text"), ("echo", "vision"), ("qwen", "vl"), ("deepseek", "chat")]
OUTCOMES = ["ok", *(fault.value for fault in Fault), *(reason.value for reason in SkipReason), "aborted"]
tries = st.dictionaries(st.sampled_from(KEYS), st.builds(PastTry, st.sampled_from(OUTCOMES)))
SIZES = (None, 0, 10, 50_000, 6 << 20, 30 << 20, 600 << 20)
files = st.tuples(
    st.sampled_from(list(Kind)), st.sampled_from(["image/png", "application/pdf"]), st.sampled_from(SIZES)
)
pictures = st.lists(files, max_size=3).map(
    lambda drawn: tuple(
        PastFile(message=0, part=index, kind=kind, mime_type=mime, size=size)
        for index, (kind, mime, size) in enumerate(drawn)
    )
)
past = st.lists(st.builds(PastRequest, st.uuids().map(str), st.just(NOW), pictures, tries), max_size=6)
chains = st.builds(
    WalkChain,
    st.lists(st.sampled_from(KEYS), unique=True).map(lambda keys: tuple(map(make_candidate, keys))),
    st.sampled_from(ErrorPreset).map(Policy),
    st.booleans(),
    st.booleans(),
)


def test_file_of_unknown_size_is_treated_as_a_small_file() -> None:
    unknown, small = (request({BLIND: OK}, replace(PICTURE, size=size)) for size in (None, 1))
    before, after = chain(BLIND), chain(SEEING)
    assert find_differences(unknown, before, after) == find_differences(small, before, after) != set()


@given(past, chains)
def test_unchanged_draft_changes_no_request(requests: list[PastRequest], same: WalkChain) -> None:
    comparison = compare_routes(requests, same, same)
    assert not comparison.differences
    assert comparison.ends[0] == comparison.ends[1]


@given(past, chains, chains)
def test_retrospective_counts_add_up_to_the_number_of_requests(
    requests: list[PastRequest], before: WalkChain, after: WalkChain
) -> None:
    """Each request has exactly one result, and counts at most once for each kind of difference. Swapping the two chains
    reverses all differences.
    """
    forward, backward = compare_routes(requests, before, after), compare_routes(requests, after, before)
    assert [side.total() for side in forward.ends] == [len(requests)] * 2
    assert forward.count == len(requests)
    for pairs in forward.differences.values():
        assert len({pair.request.id for pair in pairs}) == len(pairs)
    for more, less in (("keeps_file", "loses_file"), ("has_reader", "no_reader"), ("falls_back", "stays")):
        gains = {detail: len(pairs) for (kind, detail), pairs in forward.differences.items() if kind == more}
        assert gains == {detail: len(pairs) for (kind, detail), pairs in backward.differences.items() if kind == less}


@given(past, chains, chains)
def test_grouped_requests_have_the_same_results_as_single_requests(
    requests: list[PastRequest], before: WalkChain, after: WalkChain
) -> None:
    comparison = compare_routes(requests, before, after)
    for chain_walked, ends, forms in zip((before, after), comparison.ends, comparison.files, strict=True):
        single_walks = [walk(past_request, chain_walked) for past_request in requests]
        assert ends == Counter(walked.end for walked in single_walks)
        assert forms == Counter(form for walked in single_walks for form in walked.forms)


@given(past, chains)
def test_retrospective_answers_only_with_a_candidate_that_answered_in_the_log(
    requests: list[PastRequest], after: WalkChain
) -> None:
    for past_request in requests:
        end = walk(past_request, after)
        if end.end in (WalkEnd.FIRST, WalkEnd.LATER):
            provider, _, model = end.last.partition("/")
            assert past_request.tries[provider, model].outcome == "ok"
