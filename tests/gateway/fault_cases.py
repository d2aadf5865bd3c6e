"""Every fault of the lab as a call to /v1: plain and streamed, in each protocol, alone and with somebody to go on to.

One server answers all the calls, many at once; each has a provider and a route of its own, since a fault may leave a
whole provider alone. What each must lead to stands in tests/fallback/expected_faults.py, written by hand.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx

from tests.fallback.expected_faults import EXPECTED, ExpectedFault
from tests.gateway.serving import Server, routing, serving
from tests.lab import SCENARIOS, Lab
from tests.lab.shapes import VENDORS

PLANTED_KEY = "planted-7f3a9c51e2d8"
"""The key of every failing provider; it looks like no vendor's, and a refusing provider says it back."""
UNSET_KEY = "${LLM_PROVIDER_NOBODY_API_KEY}"
QUESTION = "Grüezi, 你好 🚲?"
ANSWER = f"You said: {QUESTION}"
AT_ONCE = 24
HEAVY = frozenset({"huge_body", "gzip_bomb", "giant_event"})
HEAVY_AT_ONCE = 2
"""Calls at a time; those whose answers are larger than any honest one cost as much memory as that."""
PATIENT = {"connect": 20.0, "firstContent": 60.0, "between": 60.0}
IMPATIENT = {
    "connect_timeout": {"connect": 0.3},
    "read_timeout": {"firstContent": 0.5},
    "ttft_timeout": {"firstContent": 0.5},
    "stream_stall": {"between": 0.5},
    "slow_body": {"between": 0.5},
}
"""Only what a fault is a matter of is waited for with short patience, so that a busy machine adds no other."""
OUT_OF_REACH = ("connect_refused", "connect_timeout", "dns_error", "tls_error", "tls_cert_error")
UNASKED = ("origin_refused", "key_missing")
"""Faults that no byte can show, and those for which nobody is called."""
OWN_STATUS = {"http_418": (418, "upstream_418"), "http_499": (499, "upstream_499")}
ENDLESS = frozenset({("comments_forever", True), ("endless", True)})
"""Only the total time of the request ends these."""


@dataclass(frozen=True)
class FaultCase:
    """One call: the protocol and the fault of the first candidate, how it is asked, and whether there is a second."""

    protocol: str
    scenario: str
    stream: bool
    alone: bool

    @property
    def name(self) -> str:
        """Its provider, its route and the id of its request."""
        return "-".join(
            (self.protocol, self.scenario, "stream" if self.stream else "plain", "alone" if self.alone else "fallback")
        )

    @property
    def other(self) -> str:
        """The protocol of the candidate to go on to: another one, so that the answer crosses over."""
        names = list(VENDORS)
        return names[(names.index(self.protocol) + 1) % len(names)]

    @cached_property
    def fault(self) -> str | None:
        """What the first candidate fails with; None where it answers after all."""
        if (self.scenario, self.stream) in ENDLESS:
            return "deadline"
        known = SCENARIOS.get(self.scenario)
        if known is None:
            return self.scenario
        fault = known.stream if self.stream else known.plain
        return None if fault is None else fault.value

    @property
    def line(self) -> ExpectedFault:
        """What was written down for the fault."""
        return EXPECTED[self.fault or ""]

    @property
    def breaks_off(self) -> bool:
        """Whether the fault comes after content, as the last event of a stream."""
        return self.fault is not None and (self.line.in_the_stream or self.scenario == "endless")

    @property
    def raised(self) -> bool:
        """Whether nobody else is asked after the fault."""
        return self.fault is not None and not self.breaks_off and self.line.seed == "raise"

    @property
    def goes_on(self) -> bool:
        """Whether the second candidate answers."""
        return self.fault is not None and not self.breaks_off and not self.raised and not self.alone

    @property
    def tries(self) -> int:
        """How often the first candidate is called."""
        return 0 if self.fault in UNASKED else self.line.tries if self.fault else 1

    @property
    def refusal(self) -> tuple[int, str]:
        """The status and the code that the caller gets in place of an answer."""
        if self.raised:
            return OWN_STATUS.get(self.scenario, (self.line.status, self.line.code))
        return self.line.exhausted or 0, "all_providers_failed"

    @property
    def step(self) -> str:
        """What the lab plays; a provider that refuses says the key that it was given."""
        return f"{self.scenario}:message=No to {PLANTED_KEY}" if self.scenario.startswith("http_") else self.scenario


ALL_CASES = (
    FaultCase(protocol, scenario, stream, alone)
    for protocol in VENDORS
    for scenario in (*SCENARIOS, *OUT_OF_REACH, *UNASKED)
    for stream in (False, True)
    for alone in (False, True)
    if scenario not in SCENARIOS or protocol in SCENARIOS[scenario].needs
    if scenario not in HEAVY or protocol == "openai"
)
CASES = [case for case in ALL_CASES if case.fault is not None or (case.stream and not case.alone)]
"""What is no fault is streamed, with somebody to go on to who is not asked; heavy bytes are alike in each protocol."""


@dataclass
class CaseResult:
    """What came of a case: the answer as the caller got it, the rows of the log, how often the lab was asked."""

    case: FaultCase
    status: int
    headers: httpx.Headers
    body: bytes
    asked: int = 0
    rows: tuple[Mapping[str, Any], ...] = ()
    attempts: tuple[Mapping[str, Any], ...] = ()

    @property
    def is_stream(self) -> bool:
        """Whether it came as events."""
        return self.headers["content-type"].startswith("text/event-stream")

    @cached_property
    def lines(self) -> list[str]:
        """The data of each event, in order."""
        return [each.removeprefix("data: ") for each in self.body.decode().split("\n\n") if each.startswith("data: ")]

    @cached_property
    def events(self) -> list[Any]:
        """The events but for the goodbye."""
        return [json.loads(line) for line in self.lines if line != "[DONE]"]

    @property
    def json(self) -> Any:
        """The body of an answer that is no stream."""
        return json.loads(self.body)

    @property
    def text(self) -> str:
        """The words of the answer, joined where they came in pieces."""
        if not self.is_stream:
            return str(self.json["choices"][0]["message"]["content"] or "")
        choices = [choice for event in self.events for choice in event.get("choices", ())]
        return "".join(choice["delta"].get("content") or "" for choice in choices)

    @property
    def reasons_to_stop(self) -> list[str]:
        """The reasons that the answer gives for its end."""
        parts = self.events if self.is_stream else [self.json]
        choices = [choice for part in parts for choice in part.get("choices", ())]
        return [choice["finish_reason"] for choice in choices if choice["finish_reason"]]


def play_cases(directory: Path) -> list[CaseResult]:
    """All cases, through one server; the log is read when that has ended, so that nothing is still on its way."""
    script = {case.name: case.step for case in CASES if case.scenario in SCENARIOS}
    with Lab(script) as lab:
        unreachable = {fault: lab.broken_url(fault) for fault in OUT_OF_REACH}
        allowed = ",".join([lab.url(), *unreachable.values()])
        with serving(directory, lab, [configuration(lab, unreachable)], {"ALLOWED_ORIGINS": allowed}) as server:
            results = asyncio.run(call_all(server))
        asked = [received.name for received in lab.requests]
    rows = {row["id"]: [row] for row in read_rows(directory, "SELECT * FROM routing_admin_requestlog")}
    attempts = list(read_rows(directory, "SELECT * FROM routing_admin_attemptlog ORDER BY position"))
    for result in results:
        name = result.case.name
        result.asked = asked.count(name)
        result.rows = tuple(rows.get(name, ()))
        result.attempts = tuple(each for each in attempts if each["request_id"] == name)
    return results


def read_rows(directory: Path, query: str) -> Iterator[dict[str, Any]]:
    """Rows of the server's log."""
    log = sqlite3.connect(directory / "logs.sqlite3")
    log.row_factory = sqlite3.Row
    yield from (dict(row) for row in log.execute(query))
    log.close()


def configuration(lab: Lab, unreachable: Mapping[str, str]) -> dict[str, Any]:
    """The demo's routes, and for each case a provider that fails so and a route that begins with it."""
    file = routing(lab)
    for protocol in VENDORS:
        good = {"providerName": f"good-{protocol}", "apiKey": "NOT_NEEDED", "protocol": protocol}
        file["providers"].append(good | {"endpoint": lab.url(protocol, "good"), "defaultModel": "lab-model"})
    for case in CASES:
        file["providers"].append(provider_of(case, lab, unreachable))
        file["routing"][case.name] = {
            "provider": case.name,
            "fallback": [] if case.alone else [f"good-{case.other}"],
            "deadline": 6 if case.fault == "deadline" else 120,
        }
    return file


def provider_of(case: FaultCase, lab: Lab, unreachable: Mapping[str, str]) -> dict[str, Any]:
    """The provider that fails."""
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
    """The results of all cases, in their order; as many at once as the server is meant to bear."""
    places, heavy_places = asyncio.Semaphore(AT_ONCE), asyncio.Semaphore(HEAVY_AT_ONCE)
    async with httpx.AsyncClient(base_url=server.url, timeout=120) as client:

        async def call(case: FaultCase) -> CaseResult:
            body = {
                "model": f"task:{case.name}",
                "messages": [{"role": "user", "content": QUESTION}],
                "stream": case.stream,
                "temperature": 0.5,
            }
            headers = {"authorization": f"Bearer {server.key}", "x-request-id": case.name}
            async with heavy_places if case.scenario in HEAVY else places:
                answer = await client.post("/v1/chat/completions", json=body, headers=headers)
            return CaseResult(case, answer.status_code, answer.headers, answer.content)

        return await asyncio.gather(*map(call, CASES))
