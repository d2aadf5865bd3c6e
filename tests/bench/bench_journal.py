"""`python -m tests.bench.bench_journal`: CPU time of logging a request, on the event loop and in the writer.

A recorder passes the entries to a separate journal, which writes them to a temporary data directory in batches as large
as those of a busy process.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.bench_pages import begin
from tests.bench.table import median, show

if TYPE_CHECKING:
    from capabilities.core.delivery.model_endpoint import Prepared
    from routing_admin.core.fallback.chain import Attempt, Plan
    from routing_admin.request_log.journal import Journal

BATCH, ROUNDS = 50, 60
MICROSECONDS = 1_000_000


@dataclass(frozen=True)
class Call:
    """The logged facts about a call: its plan, its attempts, and what was sent to each candidate."""

    name: str
    plan: Plan
    attempts: Sequence[Attempt]
    prepared: Mapping[int, Prepared]


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="routing-admin-bench-") as folder:
        begin(Path(folder))
        show(
            "Logging one request, µs of the processor (medians)",
            ["call", "on the loop", "in the thread", "both"],
            [measure_call(call) for call in calls()],
        )


def calls() -> list[Call]:
    """Return the calls to measure: the simplest one, and one with files and three attempted candidates."""
    from routing_admin.core.fallback.chain import Attempt, Plan, PlannedCandidate, Try

    tries = (Try(1.25, 210.5, "http_503", 503),)
    failed = [
        Attempt(name, "model", "http_503", 503, "overloaded, try again", 0, 210.5, 1.25, tries=tries)
        for name in ("one", "two")
    ]
    good = Attempt("three", "model", "ok", None, None, 0, 340.125, 440.5, tries=(Try(440.5, 340.125, "ok", 200),))
    chain = tuple(PlannedCandidate(position, name, "model") for position, name in enumerate(("one", "two", "three")))
    return [
        Call("one attempt", Plan(chain[2:]), (good,), {0: prepared_with(files=0)}),
        Call(
            "three attempts, two files each",
            Plan(chain),
            (*failed, good),
            {position: prepared_with(files=2) for position in range(3)},
        ),
    ]


def prepared_with(files: int) -> Prepared:
    from capabilities.core.delivery.adaptation import PartDelivery
    from capabilities.core.delivery.decision import Delivery, Outcome
    from capabilities.core.delivery.model_endpoint import Prepared
    from capabilities.core.delivery.obstacles import ReasonCode, make_reason
    from capabilities.core.message import ChatRequest, FilePart
    from capabilities.core.vocabulary import Kind
    from capabilities.core.wire import UpstreamRequest

    file = FilePart(Kind.IMAGE, "image/png", "dot.png", 70, "0123456789abcdef")
    delivery = Delivery(Outcome.DESCRIBED, make_reason(ReasonCode.NO_CAPABILITY, capability="vision"))
    request = UpstreamRequest("https://one.example/v1/chat/completions", {})
    return Prepared(request, ChatRequest(()), (PartDelivery(0, 0, file, delivery, "a picture"),) * files)


def measure_call(call: Call) -> list[object]:
    from routing_admin.platform.server.request_id import new_id
    from routing_admin.request_log.journal import Journal

    journal, loop, thread = Journal(), [], []
    for _ in range(ROUNDS):
        ids = [new_id("req_") for _ in range(BATCH)]
        loop.append(cpu(partial(record, journal, call, ids)))
        thread.append(cpu(journal.flush))
    if journal.lost:
        raise RuntimeError(f"{journal.lost} entries were not written")
    return [call.name, median(loop), median(thread), median(loop) + median(thread)]


def record(journal: Journal, call: Call, ids: Sequence[str]) -> None:
    from capabilities.core.wire import Usage
    from routing_admin.request_log.recorder import RequestRecorder

    for request_id in ids:
        recorder = RequestRecorder(request_id, "v1", journal)
        recorder.add_facts(agent="text-agent", key="abcdef01")
        recorder.add_facts(asked_model="task:planning", stream=False)
        recorder.add_plan(call.plan, task_type="planning", stream=False, revision=7, words=None)
        recorder.end(call.attempts, call.prepared, usage=Usage(12, 34))


def cpu(work: Callable[[], object]) -> float:
    """Return this thread's CPU time for a batch, in microseconds per entry."""
    started = time.thread_time()
    work()
    return (time.thread_time() - started) * MICROSECONDS / BATCH


if __name__ == "__main__":
    main()
