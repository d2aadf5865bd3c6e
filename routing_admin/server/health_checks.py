"""Health for load balancers and numbers for a scraper; no key, and nothing that a stranger could use."""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.db import connections
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.http import require_safe

from artifacts.models import Artifact
from artifacts.storage.content import byte_store
from routing_admin.configuration import snapshot

log = logging.getLogger(__name__)
app_name = "probes"


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """200 while the process answers at all."""
    return HttpResponse("ok\n", content_type="text/plain; charset=utf-8")


def _databases() -> None:
    for alias in connections:
        with connections[alias].cursor() as cursor:
            cursor.execute("SELECT 1")


def _configuration() -> None:
    snapshot.current()
    if since := snapshot.unread_since():
        raise LookupError(f"the configuration cannot be read since {since:%H:%M:%S} UTC; an older one is in use")


def _artifacts() -> None:
    byte_store().exists("0" * 64)


CHECKS: dict[str, Callable[[], None]] = {
    "databases": _databases,
    "configuration": _configuration,
    "artifacts": _artifacts,
}
"""What has to work before requests are sent here."""


@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """200 when requests can be served, else 503; each check says ok or failed, and the log says why."""
    results = {name: _works(check) for name, check in CHECKS.items()}
    ready = all(results.values())
    said = {name: "ok" if works else "failed" for name, works in results.items()}
    return JsonResponse({"status": "ok" if ready else "failed", "checks": said}, status=200 if ready else 503)


def _works(check: Callable[[], None]) -> bool:
    try:
        check()
    except Exception:
        log.exception("readiness check failed")
        return False
    return True


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Numbers in Prometheus' text form."""
    state = snapshot.current()
    usable = sum(key.usable for key in state.keys.values())
    lines = [
        *gauge("routing_admin_revision", "Newest revision of the configuration.", state.revision or 0),
        *gauge("routing_admin_providers", "Providers configured.", len(state.configuration.providers)),
        *gauge("routing_admin_providers_usable", "Providers with a usable key and address.", usable),
        *gauge("routing_admin_services", "Model services configured.", len(state.configuration.services)),
        *gauge("routing_admin_routes", "Task routes configured.", len(state.configuration.routes)),
        *gauge("routing_admin_agents", "Living agents.", len(state.agents)),
        *gauge("routing_admin_artifacts", "Living artifacts.", Artifact.objects.living().count()),
    ]
    return HttpResponse("\n".join(lines) + "\n", content_type="text/plain; version=0.0.4; charset=utf-8")


def gauge(name: str, help_text: str, value: int) -> list[str]:
    """One number with its explanation."""
    return [f"# HELP {name} {help_text}", f"# TYPE {name} gauge", f"{name} {value}"]


urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
]
