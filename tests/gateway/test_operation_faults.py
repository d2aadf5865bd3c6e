"""The faults of the table in calls beside chat: embeddings as a whole answer, transcripts as a stream.

Each fault has its own provider, with and without a second provider of the same model. The expected results are in
tests/fallback/expected_faults.py.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from capabilities.core.wire import Fault
from tests.gateway.fault_cases import (
    HEAVY,
    OUT_OF_REACH,
    PLANTED_KEY,
    UNASKED,
    CaseResult,
    FaultCase,
    provider_of,
    read_rows,
)
from tests.gateway.serving import Server, routing, serving
from tests.lab import SCENARIOS, Lab

AT_ONCE = 16
OF_CHAT = frozenset({"empty_content", "strict"})
"""An answer that is empty in a chat has content here, and the lab's strict hosts know only chat."""
OTHERWISE = {"unsupported_parameter": 1, "capability_mismatch": 1}
"""A call that passes through unchanged is never repeated with fewer parameters, so these are tried once."""


def is_played(scenario: str, *, stream: bool) -> bool:
    """Whether the fault can occur in the bytes of this call."""
    known = SCENARIOS.get(scenario)
    if known is None:
        return not stream
    if "openai" not in known.needs or scenario in OF_CHAT | HEAVY or (stream and scenario == "empty_choices"):
        return False
    return (known.stream if stream else known.plain) is not None


CASES = [
    FaultCase("openai", scenario, stream, alone)
    for scenario in (*SCENARIOS, *OUT_OF_REACH, *UNASKED)
    for stream in (False, True)
    for alone in (False, True)
    if is_played(scenario, stream=stream)
]


def configured(lab: Lab, unreachable: dict[str, str]) -> dict[str, Any]:
    file = routing(lab)
    good = {"providerName": "good", "apiKey": "NOT_NEEDED", "endpoint": lab.url("openai", "good")}
    good["defaultModel"] = "lab-model"
    file["providers"] += [good, *(provider_of(case, lab, unreachable) for case in CASES)]
    for case in CASES:
        fallback = [] if case.alone else [{"provider": "good", "model": "lab-model"}]
        # Short only where the deadline is the fault.
        deadline = 6 if case.fault == "deadline" else 120
        file["routing"][case.name] = {"provider": case.name, "fallback": fallback, "deadline": deadline}
    return file


async def call_all(server: Server) -> list[CaseResult]:
    places = asyncio.Semaphore(AT_ONCE)
    async with httpx.AsyncClient(base_url=server.url, timeout=120) as client:

        async def call(case: FaultCase) -> CaseResult:
            headers = {"authorization": f"Bearer {server.key}", "x-request-id": case.name}
            model = f"task:{case.name}"
            async with places:
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
        asked = [received.name for received in lab.requests]
    attempts = list(read_rows(directory, "SELECT * FROM routing_admin_attemptlog ORDER BY position"))
    for result in results:
        result.asked = asked.count(result.case.name)
        result.attempts = tuple(each for each in attempts if each["request_id"] == result.case.name)
    return results


def check(results: list[CaseResult], actual: Callable[[CaseResult], Any], expected: Callable[[FaultCase], Any]) -> None:
    """Compare a value of each result with what its case expects, by the case's name."""
    assert results
    assert {each.case.name: actual(each) for each in results} == {
        each.case.name: expected(each.case) for each in results
    }


def last_event(result: CaseResult) -> Any:
    data = [line for line in result.body.decode().splitlines() if line.startswith("data: ")]
    return json.loads(data[-1].removeprefix("data: "))


def test_all_faults_but_those_of_a_chat_are_played(results) -> None:
    """Nearly every fault of the table applies to every call."""
    played = {case.fault for case in CASES}
    assert {fault.value for fault in Fault} - played <= {
        "empty_content",
        "fire_drill",
        "generation_failed",
        "too_large",
    }


def test_the_caller_is_refused_as_in_a_chat(results) -> None:
    """Status and code are those of the table, in OpenAI's shape."""
    refused = [each for each in results if not (each.case.goes_on or each.case.breaks_off)]

    def actual(result: CaseResult) -> Any:
        error = json.loads(result.body)["error"]
        return result.status, error["code"], error["request_id"], result.headers["x-should-retry"]

    check(refused, actual, lambda case: (*case.refusal, case.name, "false"))


def test_the_same_model_elsewhere_answers_where_the_table_goes_on(results) -> None:
    """A second provider of the same model answers, whole and streamed."""
    went_on = [each for each in results if each.case.goes_on]

    def actual(result: CaseResult) -> Any:
        told = result.headers["x-routing-provider"], result.headers["x-routing-attempts"]
        if result.case.stream:
            return result.status, *told, b"transcript.text.done" in result.body
        return result.status, *told, len(json.loads(result.body)["data"][0]["embedding"]) == 3

    check(went_on, actual, lambda case: (200, "good", "2", True))


def test_a_stream_that_breaks_off_ends_with_an_error(results) -> None:
    """The error is the last event, and no other candidate is called."""
    broken = [each for each in results if each.case.breaks_off]
    check(broken, lambda each: (each.status, last_event(each)["error"]["code"]), lambda case: (200, case.line.code))
    check(broken, lambda each: b"transcript.text.done" in each.body, lambda case: False)


def test_the_log_has_each_attempt(results) -> None:
    """Each attempt is logged with its fault."""

    def expected(case: FaultCase) -> Any:
        return [(case.name, case.fault), *([("good", "ok")] if case.goes_on else [])]

    check(results, lambda each: [(row["provider"], row["outcome"]) for row in each.attempts], expected)


def test_a_candidate_is_asked_as_often_as_the_table_says(results) -> None:
    """A candidate is retried as in a chat, but never with fewer parameters."""
    reached = [each for each in results if each.asked]
    tries = {each.case.name: each.attempts[0]["retry_attempts"] + 1 for each in reached}
    check(reached, lambda each: tries[each.case.name], lambda case: OTHERWISE.get(case.fault or "", case.tries))


def test_no_answer_holds_a_key_or_a_traceback(results) -> None:
    """A provider's refusal may echo our key; no answer contains it."""
    texts = [each.body.decode("utf-8", "replace") for each in results]
    assert not [text for text in texts if PLANTED_KEY in text or "Traceback" in text]
