"""The fault matrix through /v1: each fault, plain and streamed, with and without a fallback."""

from __future__ import annotations

import json
from typing import Any

import pytest

from capabilities.core.wire import Fault
from tests.gateway.fault_cases import ANSWER, CASES, PLANTED_KEY, CaseResult, FaultCase, check_cases, play_cases

RESENT = frozenset({"reset_before_headers", "close_before_headers", "reset_before_content"})
"""On a kept-alive connection, these faults look like a connection closed while idle, so the request is sent again."""
LIMITED = {"wait": "30", "gemini_retry": "34"}
"""Maps scenarios in which the provider requests a delay to the Retry-After in seconds that the caller receives."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[CaseResult]:
    return play_cases(tmp_path_factory.mktemp("faults"))


def refused(results: list[CaseResult]) -> list[CaseResult]:
    return [
        result for result in results if result.case.fault and not result.case.falls_back and not result.case.breaks_off
    ]


def answered(results: list[CaseResult]) -> list[CaseResult]:
    return [result for result in results if result.case.fault is None or result.case.falls_back]


def broken_off(results: list[CaseResult]) -> list[CaseResult]:
    return [result for result in results if result.case.breaks_off]


def test_cases_include_every_fault_of_a_provider() -> None:
    assert {case.fault for case in CASES} - {None} == {fault.value for fault in Fault} - {Fault.FIRE_DRILL.value}
    plain = {(case.protocol, case.fault) for case in CASES if case.fault and not case.stream}
    for protocol in ("openai", "openai-responses", "anthropic", "gemini"):
        assert len({fault for name, fault in plain if name == protocol}) > 20


@pytest.mark.requirement("MMR-P8", "MMR-P9", "MMR-P10")
def test_refusal_has_the_expected_status_and_code(results) -> None:
    def actual(result: CaseResult) -> Any:
        error = result.json["error"]
        kinds = (result.headers["content-type"], result.headers["x-should-retry"], result.headers["x-routing-attempts"])
        return result.status, error["code"], error["request_id"], len(error["attempts"]), kinds

    def expected(case: FaultCase) -> Any:
        return *case.refusal, case.name, 1, ("application/json", "false", "1")

    check_cases(refused(results), actual, expected)


def test_only_a_plausible_retry_after_is_passed_on(results) -> None:
    check_cases(
        refused(results), lambda result: result.headers.get("retry-after"), lambda case: LIMITED.get(case.scenario)
    )


@pytest.mark.requirement("MMR-P8")
def test_answer_of_the_next_candidate_arrives_complete(results) -> None:
    fell_back = [result for result in results if result.case.falls_back]

    def actual(result: CaseResult) -> Any:
        routing_headers = [result.headers[f"x-routing-{name}"] for name in ("provider", "attempts")]
        return result.status, result.text, result.finish_reasons, *routing_headers

    check_cases(fell_back, actual, lambda case: (200, ANSWER, ["stop"], f"good-{case.fallback_protocol}", "2"))


def test_only_the_first_candidate_is_called_if_the_candidate_answers(results) -> None:
    faultless = [result for result in results if result.case.fault is None]
    check_cases(faultless, lambda result: result.headers["x-routing-provider"], lambda case: case.name)


def test_stream_ends_with_a_finish_reason_and_done_or_with_an_error(results) -> None:
    """A stream that broke off has neither a finish reason nor `[DONE]`, so no client mistakes it for a complete one."""

    def actual(result: CaseResult) -> Any:
        errors = [event["error"]["code"] for event in result.events if "error" in event]
        last = "error" if result.lines[-1] != "[DONE]" and "error" in result.events[-1] else result.lines[-1]
        return result.status, errors, len(result.finish_reasons), last, bool(result.text)

    def expected(case: FaultCase) -> Any:
        return 200, [case.expected.code], 0, "error", True

    check_cases(broken_off(results), actual, expected)
    whole = [result for result in answered(results) if result.is_stream]
    assert [result.case.stream for result in answered(results)] == [result.is_stream for result in answered(results)]
    check_cases(whole, lambda result: (result.lines.count("[DONE]"), result.lines[-1]), lambda case: (1, "[DONE]"))
    check_cases(whole, lambda result: len(result.finish_reasons), lambda case: 1)


def test_answers_and_logs_contain_no_key_and_no_traceback(results) -> None:
    for result in results:
        texts = [result.body.decode(), str(result.headers), json.dumps([*result.rows, *result.attempts])]
        assert not [secret for secret in (PLANTED_KEY, "Traceback", ".py") if any(secret in text for text in texts)], (
            result
        )
    echoing = [result for result in refused(results) if result.case.step != result.case.scenario]
    check_cases(echoing, lambda result: "No to …" in result.json["error"]["message"], lambda case: True)


def test_request_has_one_row_and_one_attempt_per_candidate(results) -> None:
    def actual(result: CaseResult) -> Any:
        rows = [(row["outcome"], row["status"], row["stream"]) for row in result.rows]
        return rows, [(attempt["provider"], attempt["outcome"]) for attempt in result.attempts]

    def expected(case: FaultCase) -> Any:
        status, code = (200, "ok") if case.fault is None or case.falls_back else case.refusal
        status, code = (200, case.expected.code) if case.breaks_off else (status, code)
        second = [(f"good-{case.fallback_protocol}", "ok")] if case.falls_back else []
        return [(code, status, int(case.stream))], [(case.name, case.fault or "ok"), *second]

    check_cases(results, actual, expected)


def test_candidates_are_called_and_logged_with_the_expected_number_of_tries(results) -> None:
    faulty = [result for result in results if result.case.fault]
    check_cases(faulty, lambda result: result.attempts[0]["retry_attempts"], lambda case: max(0, case.tries - 1))
    played = [result for result in results if result.call_count]
    check_cases(
        [result for result in played if result.case.scenario not in RESENT],
        lambda result: result.call_count,
        lambda case: case.tries,
    )
    assert all(result.case.tries <= result.call_count <= 2 * result.case.tries for result in played)
