"""Every fault of the fault lab as a call to /v1: plain and streamed, with and without a second candidate.

One server answers all calls, many of them concurrently. Each call has its own provider and route, since a fault may put
a whole provider on cooldown. The expected results are written by hand in tests/fallback/expected_faults.py.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx

from tests.fallback.expected_faults import BYTES_DIFFER, EXPECTED, ExpectedFault
from tests.gateway.serving import Server, routing, serving
from tests.lab import SCENARIOS, Lab
from tests.lab.shapes import VENDORS

PLANTED_KEY = "planted-7f3a9c51e2d8"
"""Every failing provider's key. It matches no vendor's key format.

A provider that refuses a request repeats this key in its message.
"""
UNSET_KEY = "${LLM_PROVIDER_UNSET_API_KEY}"
QUESTION = "Grüezi, 你好 🚲?"
ANSWER = f"You said: {QUESTION}"
CONCURRENCY = 24
HEAVY = frozenset({"huge_body", "gzip_bomb", "giant_event"})
HEAVY_CONCURRENCY = 2
"""Limits on concurrent cases. The limit for heavy cases is lower, because their responses need a lot of memory."""
PATIENT = {"connect": 20.0, "firstContent": 60.0, "between": 60.0}
IMPATIENT = {
    "connect_timeout": {"connect": 0.3},
    "read_timeout": {"firstContent": 0.5},
    "ttft_timeout": {"firstContent": 0.5},
    "stream_stall": {"between": 0.5},
    "slow_body": {"between": 0.5},
}
"""Maps each fault to the timeout that it exceeds. All other timeouts are long, so that a busy machine exceeds none."""
OUT_OF_REACH = ("connect_refused", "connect_timeout", "dns_error", "tls_error", "tls_cert_error")
NOT_SENT = ("origin_refused", "key_missing")
"""`OUT_OF_REACH` contains the connection faults, `NOT_SENT` the faults for which no request is sent at all."""
OWN_STATUS = {"http_418": (418, "upstream_418"), "http_499": (499, "upstream_499")}
ENDLESS = frozenset({("comments_forever", True), ("endless", True)})
"""Faults with a stream that only the request's total deadline ends."""


@dataclass(frozen=True)
class FaultCase:
    """One call: its first candidate's protocol and fault, whether it is streamed, and whether it has a second
    candidate.
    """

    protocol: str
    scenario: str
    stream: bool
    alone: bool

    @property
    def name(self) -> str:
        return "-".join(
            (self.protocol, self.scenario, "stream" if self.stream else "plain", "alone" if self.alone else "fallback")
        )

    @property
    def fallback_protocol(self) -> str:
        """Return the second candidate's protocol, which always differs, so that the answer is converted."""
        names = list(VENDORS)
        return names[(names.index(self.protocol) + 1) % len(names)]

    @cached_property
    def fault(self) -> str | None:
        """Return the fault of the first candidate, or None if that candidate answers after all."""
        if (self.scenario, self.stream) in ENDLESS:
            return "deadline"
        known = SCENARIOS.get(self.scenario)
        if known is None:
            return self.scenario
        fault = known.stream if self.stream else known.plain
        return None if fault is None else fault.value

    @property
    def expected(self) -> ExpectedFault:
        return EXPECTED[self.fault or ""]

    @property
    def breaks_off(self) -> bool:
        """Return whether the caller sees the fault as the last event of a stream, after content."""
        return self.fault is not None and (self.expected.in_the_stream or self.scenario == "endless")

    @property
    def raised(self) -> bool:
        return self.fault is not None and not self.breaks_off and self.expected.seed == "raise"

    @property
    def falls_back(self) -> bool:
        return self.fault is not None and not self.breaks_off and not self.raised and not self.alone

    @property
    def tries(self) -> int:
        return 0 if self.fault in NOT_SENT else self.expected.tries if self.fault else 1

    @property
    def refusal(self) -> tuple[int, str]:
        """Return the status and error code that the caller receives instead of an answer."""
        if self.raised:
            return OWN_STATUS.get(self.scenario, (self.expected.status, self.expected.code))
        return self.expected.exhausted or 0, "all_providers_failed"

    @property
    def step(self) -> str:
        """Return the step of the fault lab's script that performs the scenario.

        A provider that refuses the request repeats the received key in its message.
        """
        return f"{self.scenario}:message=No to {PLANTED_KEY}" if self.scenario.startswith("http_") else self.scenario


def first_protocol(scenario: str) -> str:
    known = SCENARIOS.get(scenario)
    return known.needs[0] if known else "openai"


def protocol_in_turn(scenario: str) -> str:
    known = SCENARIOS.get(scenario)
    protocols = known.needs if known else tuple(VENDORS)
    return protocols[(*SCENARIOS, *OUT_OF_REACH, *NOT_SENT).index(scenario) % len(protocols)]


ALL_CASES = (
    FaultCase(protocol, scenario, stream, alone)
    for protocol in VENDORS
    for scenario in (*SCENARIOS, *OUT_OF_REACH, *NOT_SENT)
    for stream in (False, True)
    for alone in (False, True)
    if scenario not in SCENARIOS or protocol in SCENARIOS[scenario].needs
    if scenario in BYTES_DIFFER or protocol in (first_protocol(scenario), protocol_in_turn(scenario))
    if scenario not in HEAVY or protocol == "openai"
)
CASES = [
    case
    for case in ALL_CASES
    if (case.fault is not None or (case.stream and not case.alone))
    and (not case.alone or case.protocol == first_protocol(case.scenario))
    and (case.alone or case.scenario in BYTES_DIFFER | HEAVY or case.protocol == protocol_in_turn(case.scenario))
]
"""Scenarios without a fault run only streamed and with a second candidate, which must not be called.

Heavy scenarios run only in OpenAI's protocol. Scenarios whose bytes are the same in every protocol run in one protocol
each; the protocols take turns. Without a second candidate, the caller receives a refusal that depends on the fault
alone, so each fault runs in one protocol.
"""


@dataclass
class CaseResult:
    """The result of a case: the response, the log rows, and the number of requests that the fault lab received."""

    case: FaultCase
    status: int
    headers: httpx.Headers
    body: bytes
    call_count: int = 0
    rows: tuple[Mapping[str, Any], ...] = ()
    attempts: tuple[Mapping[str, Any], ...] = ()

    @property
    def is_stream(self) -> bool:
        return self.headers["content-type"].startswith("text/event-stream")

    @cached_property
    def lines(self) -> list[str]:
        return [line.removeprefix("data: ") for line in self.body.decode().split("\n\n") if line.startswith("data: ")]

    @cached_property
    def events(self) -> list[Any]:
        """Parse the events, excluding the final `[DONE]`."""
        return [json.loads(line) for line in self.lines if line != "[DONE]"]

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        if not self.is_stream:
            return str(self.json["choices"][0]["message"]["content"] or "")
        choices = [choice for event in self.events for choice in event.get("choices", ())]
        return "".join(choice["delta"].get("content") or "" for choice in choices)

    @property
    def finish_reasons(self) -> list[str]:
        parts = self.events if self.is_stream else [self.json]
        choices = [choice for part in parts for choice in part.get("choices", ())]
        return [choice["finish_reason"] for choice in choices if choice["finish_reason"]]


def play_cases(directory: Path) -> list[CaseResult]:
    """Run all cases through one server. The log is read after the server has stopped, when all rows are written."""
    script = {case.name: case.step for case in CASES if case.scenario in SCENARIOS}
    with Lab(script) as lab:
        unreachable = {fault: lab.broken_url(fault) for fault in OUT_OF_REACH}
        allowed = ",".join([lab.url(), *unreachable.values()])
        with serving(directory, lab, [configuration(lab, unreachable)], {"ALLOWED_ORIGINS": allowed}) as server:
            results = asyncio.run(call_all(server))
        names_received = [received.name for received in lab.requests]
    rows = {row["id"]: [row] for row in read_rows(directory, "SELECT * FROM routing_admin_requestlog")}
    attempts = list(read_rows(directory, "SELECT * FROM routing_admin_attemptlog ORDER BY position"))
    for result in results:
        name = result.case.name
        result.call_count = names_received.count(name)
        result.rows = tuple(rows.get(name, ()))
        result.attempts = tuple(attempt for attempt in attempts if attempt["request_id"] == name)
    return results


def read_rows(directory: Path, query: str) -> Iterator[dict[str, Any]]:
    log = sqlite3.connect(directory / "logs.sqlite3")
    log.row_factory = sqlite3.Row
    yield from (dict(row) for row in log.execute(query))
    log.close()


def configuration(lab: Lab, unreachable: Mapping[str, str]) -> dict[str, Any]:
    """Return the demo's configuration with a failing provider, and a route that begins with it, for each case."""
    file = routing(lab)
    for protocol in VENDORS:
        good = {"providerName": f"good-{protocol}", "apiKey": "NOT_NEEDED", "protocol": protocol}
        file["providers"].append(good | {"endpoint": lab.url(protocol, "good"), "defaultModel": "lab-model"})
    for case in CASES:
        file["providers"].append(build_provider(case, lab, unreachable))
        file["routing"][case.name] = {
            "provider": case.name,
            "fallback": [] if case.alone else [f"good-{case.fallback_protocol}"],
            # The deadline is short only if the fault under test is the deadline.
            "deadline": 6 if case.fault == "deadline" else 120,
        }
    return file


def build_provider(case: FaultCase, lab: Lab, unreachable: Mapping[str, str]) -> dict[str, Any]:
    endpoint = unreachable.get(case.scenario, lab.url(case.protocol, case.name))
    if case.scenario == "origin_refused":
        endpoint = "http://127.0.0.1:1/v1"
    return {
        "providerName": case.name,
        "apiKey": UNSET_KEY if case.scenario == "key_missing" else PLANTED_KEY,
        "endpoint": endpoint,
        "defaultModel": "lab-model",
        "protocol": case.protocol,
        "timeouts": PATIENT | IMPATIENT.get(case.fault or "", {}),
    }


async def call_all(server: Server) -> list[CaseResult]:
    slots, heavy_slots = asyncio.Semaphore(CONCURRENCY), asyncio.Semaphore(HEAVY_CONCURRENCY)
    async with httpx.AsyncClient(base_url=server.url, timeout=120) as client:

        async def call(case: FaultCase) -> CaseResult:
            body = {
                "model": f"task:{case.name}",
                "messages": [{"role": "user", "content": QUESTION}],
                "stream": case.stream,
                "temperature": 0.5,
            }
            headers = {"authorization": f"Bearer {server.key}", "x-request-id": case.name}
            async with heavy_slots if case.scenario in HEAVY else slots:
                answer = await client.post("/v1/chat/completions", json=body, headers=headers)
            return CaseResult(case, answer.status_code, answer.headers, answer.content)

        return await asyncio.gather(*map(call, CASES))


def check_cases(
    results: list[CaseResult], actual: Callable[[CaseResult], Any], expected: Callable[[FaultCase], Any]
) -> None:
    """Compare one value of each result with the value that its case expects. A failure shows the names of the cases."""
    assert results
    assert {result.case.name: actual(result) for result in results} == {
        result.case.name: expected(result.case) for result in results
    }
