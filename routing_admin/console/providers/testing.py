"""Test all enabled providers in batches. Each response shows its results and makes the page request the next batch."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from routing_admin.console.providers import dialling
from routing_admin.console.providers.queries import list_enabled_providers

AT_ONCE = 6
"""How many providers are tested at the same time."""


@require_POST
def providers_test(request: HttpRequest) -> HttpResponse:
    """Test the batch of providers that starts at `from`. Without `from`, only show that the test begins."""
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect("providers")
    rows, start_text = list_enabled_providers(), request.POST.get("from", "")
    begin = int(start_text) if start_text.isascii() and start_text.isdecimal() else 0
    batch = rows[begin : begin + AT_ONCE] if start_text else []
    results = dialling.test_each(batch)
    count = begin + len(batch)
    context = {
        "is_going": count < len(rows),
        "count": count,
        "all": len(rows),
        # Each request posts the failures of the previous batches.
        "failed": [*request.POST.getlist("failed"), *(name for name, result in results if not result.ok)],
        "results": [{"name": name, "result": result} for name, result in results],
    }
    return render(request, "capabilities/testing.html", context)
