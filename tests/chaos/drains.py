"""SIGTERM under load: every call gets a complete response, or an error that says that the server is stopping."""

from __future__ import annotations

import http.client
import json
import threading
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field

from tests.chaos.callers import CUT, Finding, at_once, finding
from tests.chaos.installation import installed
from tests.gateway.serving import Server

CALLERS = 20
STEPS = ("ok", "delay:seconds=0.3", "slow_stream:seconds=0.1", "stall")
LOAD_SECONDS = 1.5
DRAINING = "server_draining"


def drain(times: int) -> Finding:
    """Start and stop a server with two processes `times` times. A refused connection does not count as a loss."""
    ends, losses = Counter[str](), list[str]()
    with installed(DRAIN_SECONDS="3") as installation:
        for number in range(times):
            with installation.serve("--workers", "2") as server:
                stop = threading.Timer(LOAD_SECONDS, server.process.terminate)
                stop.start()
                callers = [
                    Caller(server, f"drain-{number}-{caller_number}", STEPS[caller_number % len(STEPS)])
                    for caller_number in range(CALLERS)
                ]
                losses += [repr(error) for error in at_once(*(caller.call_until_gone for caller in callers))]
                server.process.wait(timeout=60)
            ends.update(end for caller in callers for end in caller.ends)
        losses += [f"{count} answers were cut" for end, count in ends.items() if end == "cut"]
        outcomes = dict(installation.rows("select outcome, count(*) from routing_admin_requestlog group by 1", "logs"))
        answered = ends["whole"] + ends[DRAINING]
        logged = outcomes.get("ok", 0) + outcomes.get(DRAINING, 0) - 1  # Do not count the demo's logged request.
        losses += [
            f"the log calls {n} answers {outcome}" for outcome, n in outcomes.items() if outcome not in ("ok", DRAINING)
        ]
        if logged < answered:
            losses.append(f"{answered - logged} answers are not in the log")
        losses += installation.faults()
    facts = ", ".join(f"{count} × {end}" for end, count in sorted(ends.items()))
    return finding("drain under load", f"{times} ends, {CALLERS} callers", facts, losses)


@dataclass
class Caller:
    """A caller that sends the same call repeatedly and records the outcome of each."""

    server: Server
    name: str
    step: str
    ends: list[str] = field(default_factory=list)

    def call_until_gone(self) -> None:
        """Send calls until one is refused, or until its connection is closed before it has been read.

        Such a call does not count as lost.
        """
        streamed = "stream" in self.step or self.step == "stall"
        messages = [{"role": "user", "content": "hello"}]
        body = json.dumps({"model": f"one/fault:{self.step}", "messages": messages, "stream": streamed})
        whole = "[DONE]" if streamed else '"finish_reason":"stop"'
        while (content := self._answer(body)) is not None:
            self.ends.append("whole" if whole in content else DRAINING if DRAINING in content else "cut")

    def _answer(self, body: str) -> str | None:
        headers = {"authorization": f"Bearer {self.server.key}", "x-request-id": f"{self.name}-{len(self.ends)}"}
        with closing(http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)) as connection:
            try:
                connection.request("POST", "/v1/chat/completions", body, headers)
                response = connection.getresponse()
            except CUT:
                return None
            try:
                return response.read().decode()
            except CUT:
                # The connection ended after the headers, so the response is incomplete.
                return ""
