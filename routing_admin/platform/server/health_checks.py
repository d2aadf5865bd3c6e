"""Health checks for load balancers, without a key and without details that would help an attacker.

Health checks report whether this process can answer calls and which dependencies work. Each dependency is checked in a
thread of its own, by one check at a time. A check that hangs delays one probe by `PROBE_SECONDS` and occupies one
thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from django.db import connections
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.http import require_safe

from artifacts.core.errors import ArtifactError
from artifacts.storage.content import byte_store
from routing_admin.platform.databases.explaining import check_writable, explain_failure
from routing_admin.platform.databases.lock_timeout import lock_timeout
from routing_admin.platform.databases.unavailable import WAIT_SECONDS
from routing_admin.platform.redis.link import link
from routing_admin.platform.server.draining import draining
from routing_admin.platform.server.hooks import server_hooks
from routing_admin.platform.server.scrapes import metrics

log = logging.getLogger(__name__)

PROBE_SECONDS = 1.5
"""Maximum seconds that a probe waits for the checks. This is less than orchestrators' own timeouts, which would hide
the cause.
"""
OK, FAILED = "ok", "failed"


def _artifacts() -> None:
    byte_store().check()


class DependencyCheck:
    """Checks a dependency in a background thread; probes wait for the result for at most `PROBE_SECONDS`."""

    def __init__(self, name: str, check: Callable[[], None]) -> None:
        self.name, self._check = name, check
        self._lock, self._problem = threading.Lock(), ""
        self._finished: threading.Event | None = None
        self._began = 0.0

    def begin(self) -> None:
        """Start the check unless it is running."""
        with self._lock:
            if self._finished is None or self._finished.is_set():
                self._finished, self._began = threading.Event(), time.monotonic()
                thread = threading.Thread(
                    target=self._run, args=(self._finished,), name=f"check-{self.name}", daemon=True
                )
                thread.start()

    def works(self) -> bool:
        """Return whether the check succeeded; a check that runs for longer than `PROBE_SECONDS` counts as failed."""
        finished = self._finished
        if finished is not None and not finished.wait(max(0.0, self._began + PROBE_SECONDS - time.monotonic())):
            self._note(f"no answer within {PROBE_SECONDS:g} s")
        return not self._problem

    def _run(self, finished: threading.Event) -> None:
        problem = ""
        try:
            with lock_timeout(WAIT_SECONDS):
                self._check()
        except Exception as error:
            problem = _explain(error)
        finally:
            connections.close_all()
            self._note(problem)
            finished.set()

    def _note(self, problem: str) -> None:
        # Log a problem only once per outage, and log the end of the outage.
        if problem and not self._problem:
            log.error("readiness check of %s failed: %s", self.name, problem)
        elif self._problem and not problem:
            log.warning("readiness check of %s works again", self.name)
        self._problem = problem


def _explain(error: Exception) -> str:
    # The messages of these errors are written for operators, so they are shown unchanged.
    if isinstance(error, ArtifactError | LookupError):
        return str(getattr(error, "details", error))
    return explain_failure(error) or f"{type(error).__name__}: {error}"


def own_checks() -> list[DependencyCheck]:
    return [DependencyCheck("databases", check_writable), DependencyCheck("artifacts", _artifacts)]


def check_dependencies() -> dict[str, str]:
    """Return the state of each dependency by name, within `PROBE_SECONDS`."""
    # Start all checks before waiting for the first one.
    checks = server_hooks().checks
    for check in checks:
        check.begin()
    states = {check.name: OK if check.works() else FAILED for check in checks}
    return states | ({"redis": OK if link().is_up else "away"} if link().is_set else {})


def server_state() -> str:
    """Return `ok` if calls can be answered, even if only from memory, or else the reason why not."""
    if draining().has_begun:
        return "draining"
    if not server_hooks().has_configuration():
        return "without configuration"
    return OK


app_name = "probes"


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """Return 200 as long as the process is alive, without checking dependencies."""
    return HttpResponse("ok\n", content_type="text/plain; charset=utf-8")


@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Return 200 if calls can be answered, and list failing dependencies; with `?full`, return 503 if any fails.

    Servers share their dependencies. If they returned 503 for a failing dependency, all servers would be taken out of
    service at the same time, although they can still answer some calls from memory.
    """
    states = check_dependencies()
    checks = {"server": server_state(), **states}
    degraded = [name for name, state in states.items() if state != OK]
    status = "failed" if checks["server"] != OK else "degraded" if degraded else OK
    is_refused = status == "failed" or ("full" in request.GET and FAILED in states.values())
    body = {"status": "failed" if is_refused else status, "degraded": degraded, "checks": checks}
    return JsonResponse(body, status=503 if is_refused else 200)


urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
]
