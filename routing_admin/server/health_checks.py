"""Health for load balancers, which needs no key and tells nothing that a stranger could use; numbers for a scraper."""

from __future__ import annotations

from ipaddress import ip_address

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_safe

from routing_admin.configuration import snapshot
from routing_admin.server.addresses import address_in
from routing_admin.server.connections import process_connections
from routing_admin.server.memory import count_tasks
from routing_admin.server.metrics import CONTENT_TYPE, Numbers, render
from routing_admin.server.places import bodies, calls, lookups, requests
from routing_admin.server.readiness import FAILED, OK, check_dependencies, state_of_server

app_name = "probes"


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """200 while the process lives; no dependency is asked."""
    return HttpResponse("ok\n", content_type="text/plain; charset=utf-8")


@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """200 while calls can be answered, with the dependencies that do not work; with `?full` 503 where one does not.

    Dependencies are shared: a server that said 503 for them would be ended with every other, and with what they answer
    from memory.
    """
    states = check_dependencies()
    checks = {"server": state_of_server(), **states}
    degraded = [name for name, state in states.items() if state != OK]
    status = "failed" if checks["server"] != OK else "degraded" if degraded else OK
    is_refused = status == "failed" or ("full" in request.GET and FAILED in states.values())
    said = {"status": "failed" if is_refused else status, "degraded": degraded, "checks": checks}
    return JsonResponse(said, status=503 if is_refused else 200)


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Numbers in Prometheus' text form, for this machine or whoever has the token; 403 for others."""
    if not may_read_numbers(request):
        return HttpResponse(FOR_OURS, status=403, content_type="text/plain; charset=utf-8")
    state = snapshot.current()
    usable = sum(key.usable for key in state.keys.values())
    installed = (
        ("routing_admin_revision", "Newest revision of the configuration.", state.revision or 0),
        ("routing_admin_providers", "Providers configured.", len(state.configuration.providers)),
        ("routing_admin_providers_usable", "Providers with a usable key and address.", usable),
        ("routing_admin_services", "Model services configured.", len(state.configuration.services)),
        ("routing_admin_routes", "Task routes configured.", len(state.configuration.routes)),
        ("routing_admin_agents", "Living agents.", len(state.agents)),
    )
    return HttpResponse(render(Numbers(installed, ()), load_of_process()), content_type=CONTENT_TYPE)


def load_of_process() -> Numbers:
    """How much the process that answers has to do, and how often it refused more."""
    connections, kinds = process_connections(), {"chat": calls(), "other": requests(), "lookup": lookups()}
    gauges = [
        ("routing_admin_connections", "Open connections of this process.", len(connections)),
        ("routing_admin_connections_limit", "Connections that may be open.", connections.limits.in_all),
        ("routing_admin_large_bodies_mebibytes", "Memory for large bodies of chat calls.", bodies().in_use),
        ("routing_admin_tasks", "Tasks of the serving loop.", count_tasks()),
    ]
    counters = [
        ("routing_admin_connections_refused", "Closed for being too many.", connections.refused),
        ("routing_admin_large_bodies_refused", "Refused as overloaded.", bodies().refused),
    ]
    for name, places in kinds.items():
        gauges.append((f"routing_admin_{name}_requests", "Requests that are answered.", places.in_use))
        gauges.append((f"routing_admin_{name}_requests_waiting", "Requests that wait for a place.", places.waiting))
        counters.append((f"routing_admin_{name}_requests_refused", "Refused as overloaded.", places.refused))
    return Numbers(gauges, counters)


FOR_OURS = (
    "These numbers are for 127.0.0.1. Another machine reads them with Authorization: Bearer and the token that "
    "ROUTING_ADMIN_METRICS_TOKEN sets.\n"
)
FORWARDED = ("HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED", "HTTP_X_REAL_IP")


def may_read_numbers(request: HttpRequest) -> bool:
    """Whether the caller has the token, or is this machine itself and no proxy on it that speaks for another."""
    token, given = settings.METRICS_TOKEN, request.headers.get("Authorization", "")
    if token and constant_time_compare(given, f"Bearer {token}"):
        return True
    if not settings.TRUSTED_PROXIES and any(name in request.META for name in FORWARDED):
        return False
    try:
        return ip_address(address_in(request.META, settings.TRUSTED_PROXIES)).is_loopback
    except ValueError:
        return False


urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
]
