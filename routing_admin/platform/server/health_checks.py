"""Health checks for load balancers, without a key and without details that would help an attacker."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.http import require_safe

from routing_admin.platform.server.readiness import FAILED, OK, check_dependencies, state_of_server
from routing_admin.platform.server.scrapes import metrics

app_name = "probes"


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """Return 200 while the process is alive, without checking dependencies."""
    return HttpResponse("ok\n", content_type="text/plain; charset=utf-8")


@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Return 200 while calls can be answered, with failing dependencies listed; with `?full`, 503 if one fails.

    Dependencies are shared: if a server returned 503 for them, all servers would be stopped at once, along with what
    they can answer from memory.
    """
    states = check_dependencies()
    checks = {"server": state_of_server(), **states}
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
