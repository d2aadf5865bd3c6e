"""The faults of the fault table in calls other than chat: embeddings as a complete response, transcripts as a stream.

Each fault has its own provider, with and without a second provider for the same model. The expected results are in
tests/fallback/expected_faults.py.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from capabilities.core.wire import Fault
from tests.gateway.fault_cases import (
    HEAVY,
    NOT_SENT,
    OUT_OF_REACH,
    PLANTED_KEY,
    CaseResult,
    FaultCase,
    build_provider,
    check_cases,
    read_rows,
)
from tests.gateway.serving import Server, routing, serving
from tests.lab import SCENARIOS, Lab

CONCURRENCY = 16
OF_CHAT = frozenset({"empty_content", "strict"})
"""Scenarios that make sense only for chat: strict hosts, and an answer that counts as empty in chat but not here."""
OTHER_TRIES = {"unsupported_parameter": 1, "capability_mismatch": 1}
"""Attempt counts that differ from those in chat.

A call that passes through unchanged is never repeated with fewer parameters, so these faults end it at the first
attempt.
"""


def is_played(scenario: str, *, stream: bool) -> bool:
    """Return whether to test the scenario with this API, whose responses cannot show every fault."""
    known = SCENARIOS.get(scenario)
    if known is None:
        return not stream
    if "openai" not in known.needs or scenario in OF_CHAT | HEAVY or (stream and scenario == "empty_choices"):
        return False
    return (known.stream if stream else known.plain) is not None


CASES = [
    FaultCase("openai", scenario, stream, alone)
    for scenario in (*SCENARIOS, *OUT_OF_REACH, *NOT_SENT)
    for stream in (False, True)
    for alone in (False, True)
    if is_played(scenario, stream=stream)
]


def configured(lab: Lab, unreachable: dict[str, str]) -> dict[str, Any]:
    file = routing(lab)
    good = {"providerName": "good", "apiKey": "NOT_NEEDED", "endpoint": lab.url("openai", "good")}
    good["defaultModel"] = "lab-model"
    file["providers"] += [good, *(build_provider(case, lab, unreachable) for case in CASES)]
    for case in CASES:
        fallback = [] if case.alone else [{"provider": "good", "model": "lab-model"}]
        # The deadline is short only if the fault under test is the deadline.
        deadline = 6 if case.fault == "deadline" else 120
        file["routing"][case.name] = {"provider": case.name, "fallback": fallback, "deadline": deadline}
    return file


async def call_all(server: Server) -> list[CaseResult]:
    slots = asyncio.Semaphore(CONCURRENCY)
    async with httpx.AsyncClient(base_url=server.url, timeout=120) as client:

        async def call(case: FaultCase) -> CaseResult:
            headers = {"authorization": f"Bearer {server.key}", "x-request-id": case.name}
            model = f"task:{case.name}"
            async with slots:
                if case.stream:
                    form: Any = {"data": {"model": model, "stream": "true"}, "files": {"file": ("a.wav", b"RIFF")}}
                    answer = await client.post("/v1/audio/transcriptions", headers=headers, **form)
                else:
                    answer = await client.post("/v1/embeddings", json={"model": model, "input": "a"}, headers=headers)
            return CaseResult(case, answer.status_code, answer.headers, answer.content)

        return await asyncio.gather(*map(call, CASES))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[CaseResult]:
    directory = tmp_path_factory.mktemp("operation-faults")
    with Lab({case.name: case.step for case in CASES if case.scenario in SCENARIOS}) as lab:
        unreachable = {fault: lab.broken_url(fault) for fault in OUT_OF_REACH}
        allowed = {"ALLOWED_ORIGINS": ",".join([lab.url(), *unreachable.values()])}
        with serving(directory, lab, [configured(lab, unreachable)], allowed) as server:
            results = asyncio.run(call_all(server))
        names_received = [received.name for received in lab.requests]
    attempts = list(read_rows(directory, "SELECT * FROM routing_admin_attemptlog ORDER BY position"))
    for result in results:
        result.call_count = names_received.count(result.case.name)
        result.attempts = tuple(attempt for attempt in attempts if attempt["request_id"] == result.case.name)
    return results


def last_event(result: CaseResult) -> Any:
    data = [line for line in result.body.decode().splitlines() if line.startswith("data: ")]
    return json.loads(data[-1].removeprefix("data: "))


def test_cases_include_nearly_every_fault(results) -> None:
    played = {case.fault for case in CASES}
    assert {fault.value for fault in Fault} - played <= {
        "empty_content",
        "fire_drill",
        "generation_failed",
        "too_large",
    }


def test_refusal_has_the_status_and_code_of_the_table(results) -> None:
    refused = [result for result in results if not (result.case.falls_back or result.case.breaks_off)]

    def actual(result: CaseResult) -> Any:
        error = json.loads(result.body)["error"]
        return result.status, error["code"], error["request_id"], result.headers["x-should-retry"]

    check_cases(refused, actual, lambda case: (*case.refusal, case.name, "false"))


def test_second_provider_of_the_same_model_answers_after_a_fault(results) -> None:
    fell_back = [result for result in results if result.case.falls_back]

    def actual(result: CaseResult) -> Any:
        routing_headers = result.headers["x-routing-provider"], result.headers["x-routing-attempts"]
        if result.case.stream:
            return result.status, *routing_headers, b"transcript.text.done" in result.body
        return result.status, *routing_headers, len(json.loads(result.body)["data"][0]["embedding"]) == 3

    check_cases(fell_back, actual, lambda case: (200, "good", "2", True))


def test_broken_stream_ends_with_an_error(results) -> None:
    broken = [result for result in results if result.case.breaks_off]
    check_cases(
        broken,
        lambda result: (result.status, last_event(result)["error"]["code"]),
        lambda case: (200, case.expected.code),
    )
    check_cases(broken, lambda result: b"transcript.text.done" in result.body, lambda case: False)


def test_every_attempt_is_logged(results) -> None:

    def expected(case: FaultCase) -> Any:
        return [(case.name, case.fault), *([("good", "ok")] if case.falls_back else [])]

    check_cases(results, lambda result: [(row["provider"], row["outcome"]) for row in result.attempts], expected)


def test_candidate_is_retried_as_often_as_the_fault_table_says(results) -> None:
    """A candidate is retried as in chat, but never with fewer parameters."""
    reached = [result for result in results if result.call_count]
    tries = {result.case.name: result.attempts[0]["retry_attempts"] + 1 for result in reached}
    check_cases(
        reached, lambda result: tries[result.case.name], lambda case: OTHER_TRIES.get(case.fault or "", case.tries)
    )


def test_answers_contain_no_key_and_no_traceback(results) -> None:
    texts = [result.body.decode("utf-8", "replace") for result in results]
    assert not [text for text in texts if PLANTED_KEY in text or "Traceback" in text]
