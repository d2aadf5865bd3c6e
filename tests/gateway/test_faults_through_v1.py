"""The fault matrix through /v1: each fault, plain and streamed, in each protocol, with and without a fallback."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from capabilities.core.wire import Fault
from tests.gateway.fault_cases import ANSWER, CASES, PLANTED_KEY, CaseResult, FaultCase, play_cases

RESENT = frozenset({"reset_before_headers", "close_before_headers", "reset_before_content"})
"""On a kept-alive connection these look like one that was closed while idle, so the request is sent once more."""
LIMITED = {"wait": "30", "gemini_retry": "34"}
"""The Retry-After that the caller receives for the wait that the provider named, in seconds."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[CaseResult]:
    return play_cases(tmp_path_factory.mktemp("faults"))


def check(results: list[CaseResult], actual: Callable[[CaseResult], Any], expected: Callable[[FaultCase], Any]) -> None:
    """Compare a value of each result with what its case expects, by the case's name."""
    assert results
    assert {each.case.name: actual(each) for each in results} == {
        each.case.name: expected(each.case) for each in results
    }


def refused(results: list[CaseResult]) -> list[CaseResult]:
    return [each for each in results if each.case.fault and not each.case.goes_on and not each.case.breaks_off]


def answered(results: list[CaseResult]) -> list[CaseResult]:
    return [each for each in results if each.case.fault is None or each.case.goes_on]


def broken_off(results: list[CaseResult]) -> list[CaseResult]:
    return [each for each in results if each.case.breaks_off]


def test_the_matrix_holds_every_fault_in_every_way() -> None:
    """The cases include every fault of a provider, and more than 40 of them in each protocol."""
    assert {case.fault for case in CASES} - {None} == {fault.value for fault in Fault} - {Fault.FIRE_DRILL.value}
    plain = {(case.protocol, case.fault) for case in CASES if case.fault and not case.stream}
    for protocol in ("openai", "openai-responses", "anthropic", "gemini"):
        assert len({fault for name, fault in plain if name == protocol}) > 40


@pytest.mark.requirement("MMR-P8", "MMR-P9", "MMR-P10")
def test_a_refused_caller_gets_status_and_code_in_the_shape_of_the_interface(results) -> None:
    """A refusal before any content is a JSON error, for a stream too, and asks the client not to retry."""

    def actual(result: CaseResult) -> Any:
        error = result.json["error"]
        kinds = (result.headers["content-type"], result.headers["x-should-retry"], result.headers["x-routing-attempts"])
        return result.status, error["code"], error["request_id"], len(error["attempts"]), kinds

    def expected(case: FaultCase) -> Any:
        return *case.refusal, case.name, 1, ("application/json", "false", "1")

    check(refused(results), actual, expected)


def test_a_wait_is_passed_on_where_a_provider_named_one_that_makes_sense(results) -> None:
    """Only a plausible wait that the provider named itself is passed on as Retry-After."""
    check(refused(results), lambda each: each.headers.get("retry-after"), lambda case: LIMITED.get(case.scenario))


@pytest.mark.requirement("MMR-P8")
def test_the_next_candidate_s_answer_arrives_whole(results) -> None:
    """The second candidate's answer arrives complete although its protocol differs; the headers name its provider."""
    went_on = [each for each in results if each.case.goes_on]

    def actual(result: CaseResult) -> Any:
        said = [result.headers[f"x-routing-{name}"] for name in ("provider", "attempts")]
        return result.status, result.text, result.reasons_to_stop, *said

    check(went_on, actual, lambda case: (200, ANSWER, ["stop"], f"good-{case.other}", "2"))


def test_what_is_no_fault_asks_nobody_else(results) -> None:
    """Without a fault only the first candidate is called."""
    fine = [each for each in results if each.case.fault is None]
    check(fine, lambda each: each.headers["x-routing-provider"], lambda case: case.name)


def test_a_stream_ends_with_a_reason_and_a_goodbye_or_with_an_error_and_neither(results) -> None:
    """A complete stream has one finish reason and ends with `[DONE]`. One that broke off has neither, so that no client
    takes it for complete.
    """

    def actual(result: CaseResult) -> Any:
        errors = [event["error"]["code"] for event in result.events if "error" in event]
        last = "error" if result.lines[-1] != "[DONE]" and "error" in result.events[-1] else result.lines[-1]
        return result.status, errors, len(result.reasons_to_stop), last, bool(result.text)

    def expected(case: FaultCase) -> Any:
        return 200, [case.line.code], 0, "error", True

    check(broken_off(results), actual, expected)
    whole = [each for each in answered(results) if each.is_stream]
    assert [each.case.stream for each in answered(results)] == [each.is_stream for each in answered(results)]
    check(whole, lambda each: (each.lines.count("[DONE]"), each.lines[-1]), lambda case: (1, "[DONE]"))
    check(whole, lambda each: len(each.reasons_to_stop), lambda case: 1)


def test_no_answer_and_no_log_holds_a_key_or_a_traceback(results) -> None:
    """A provider's refusal may echo our key; it is redacted in the answer and in the log."""
    for result in results:
        seen = [result.body.decode(), str(result.headers), json.dumps([*result.rows, *result.attempts])]
        assert not [word for word in (PLANTED_KEY, "Traceback", ".py") if any(word in text for text in seen)], result
    told = [each for each in refused(results) if each.case.step != each.case.scenario]
    check(told, lambda each: "No to …" in each.json["error"]["message"], lambda case: True)


def test_a_request_is_one_row_and_each_candidate_reached_one_attempt(results) -> None:
    """The request's row has the caller's outcome and status; the attempts have each candidate's outcome, in order."""

    def actual(result: CaseResult) -> Any:
        rows = [(row["outcome"], row["status"], row["stream"]) for row in result.rows]
        return rows, [(each["provider"], each["outcome"]) for each in result.attempts]

    def expected(case: FaultCase) -> Any:
        status, code = (200, "ok") if case.fault is None or case.goes_on else case.refusal
        status, code = (200, case.line.code) if case.breaks_off else (status, code)
        second = [(f"good-{case.other}", "ok")] if case.goes_on else []
        return [(code, status, int(case.stream))], [(case.name, case.fault or "ok"), *second]

    check(results, actual, expected)


def test_a_failing_candidate_is_tried_as_often_as_is_written_down_and_the_log_counts_it(results) -> None:
    """Each candidate is called as often as expected. The log's count is what the provider received, except for requests
    that may not have been sent.
    """
    reached = [each for each in results if each.case.fault]
    check(reached, lambda each: each.attempts[0]["retry_attempts"], lambda case: max(0, case.tries - 1))
    played = [each for each in results if each.asked]
    check(
        [each for each in played if each.case.scenario not in RESENT], lambda each: each.asked, lambda case: case.tries
    )
    assert all(each.case.tries <= each.asked <= 2 * each.case.tries for each in played)
