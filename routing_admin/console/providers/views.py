"""Pages for a provider, its connection tests and its deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from capabilities.access import request_actor
from capabilities.errors import ActionError, ConflictError
from routing_admin.console.base.consequences import find_deletion_consequences, find_obstacle, find_unconfirmed
from routing_admin.console.base.page_responses import (
    UNPROCESSABLE,
    add_refusal,
    add_refusal_toast,
    add_toast,
    find_differences,
    renew_version,
    require_found,
)
from routing_admin.console.base.saving import describe_saving, is_asking_for_changes, render_changes
from routing_admin.console.providers import dialling
from routing_admin.console.providers.actions import (
    check_can_delete_provider,
    delete_provider,
    save_provider,
)
from routing_admin.console.providers.forms import ProviderForm
from routing_admin.console.providers.key_forms import FurtherKeyForm
from routing_admin.console.providers.queries import (
    describe_provider,
    find_provider,
    list_enabled_providers,
    list_key_rows,
)
from routing_admin.console.services.queries import list_services_at

if TYPE_CHECKING:
    from capabilities.models import Provider

FORM_FIELDS = {"apiKey": "key"}


def provider(request: HttpRequest, name: str) -> HttpResponseBase:
    row = require_found(find_provider(name))
    if request.method != "POST":
        # `quirk_*` parameters in the query string come from a connection test; see `DialResult.options_url`.
        offered = {name: text for name, text in request.GET.items() if name.startswith("quirk_")}
        return provider_page(request, row, ProviderForm(instance=row, offered=offered))
    return save(request, row)


def save(request: HttpRequest, row: Provider) -> HttpResponse:
    """Save the form.

    If this fails, return 422 with the form's errors, or 409 with both versions of the provider.
    """
    form = ProviderForm(request.POST, instance=row)
    if is_asking_for_changes(request):
        return render_changes(request, describe_saving(form))
    if not form.is_valid():
        # Validating the form has changed `row`, so the rest of the page shows the stored provider.
        return provider_page(request, require_found(find_provider(row.name)), form, UNPROCESSABLE)
    effects = find_unconfirmed(request, form, "provider", row.name)
    if effects:
        return provider_page(request, require_found(find_provider(row.name)), form, UNPROCESSABLE, effects=effects)
    try:
        saved, expected = form.build_row(), form.cleaned_data["version"]
        change = save_provider(request_actor(request), saved, key=form.key_change(), expected=expected)
    except ActionError as refusal:
        current = require_found(find_provider(row.name))
        status = add_refusal(form, refusal, FORM_FIELDS)
        conflict = find_differences(form, current) if isinstance(refusal, ConflictError) else None
        renew_version(form, current.version)  # Saving again now overwrites the other user's change.
        return provider_page(request, current, form, status=status, refusal=refusal, conflict=conflict)
    add_toast(request, _("%(name)s saved") % {"name": saved.name}, change.revision)
    return redirect("provider", name=saved.name)


def provider_page(
    request: HttpRequest, row: Provider, form: ProviderForm, status: int = 200, **more: Any
) -> HttpResponse:
    context = {
        "row": row,
        "form": form,
        **describe_saving(form),
        "line": describe_provider(row),
        "services": list_services_at(row),
        "keys": list_key_rows(row),
        "further_form": FurtherKeyForm(),
        "obstacle": find_obstacle(check_can_delete_provider, row, row.name),
        "losses": find_deletion_consequences("provider", [row.name]),
        **more,
    }
    return render(request, "capabilities/provider.html", context, status=status)


@require_POST
def provider_delete(request: HttpRequest, name: str) -> HttpResponse:
    row = require_found(find_provider(name))
    try:
        change = delete_provider(request_actor(request), row)
    except ActionError as refusal:
        add_refusal_toast(request, refusal)
        return redirect("provider", name=name)
    add_toast(request, _("%(name)s deleted") % {"name": name}, change.revision)
    return redirect("providers")


@require_POST
def provider_test(request: HttpRequest, name: str) -> HttpResponse:
    """Test a saved provider with a minimal request. Return the result as a fragment or a page."""
    row = require_found(find_provider(name))
    result = dialling.test(row)
    if request.htmx:  # type: ignore[attr-defined]
        template = "capabilities/dialled_short.html" if "short" in request.GET else "capabilities/dialled.html"
        return render(request, template, {"result": result, "row": row})
    return provider_page(request, row, ProviderForm(instance=row), result=result)


MAX_CONCURRENT_TESTS = 6
"""Maximum number of providers that are tested at the same time."""


@require_POST
def providers_test(request: HttpRequest) -> HttpResponse:
    """Test the batch of providers that begins at position `from`. Without `from`, show a page that starts the tests."""
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect("providers")
    rows, start_text = list_enabled_providers(), request.POST.get("from", "")
    begin = int(start_text) if start_text.isascii() and start_text.isdecimal() else 0
    batch = rows[begin : begin + MAX_CONCURRENT_TESTS] if start_text else []
    results = dialling.test_each(batch)
    count = begin + len(batch)
    context = {
        "is_going": count < len(rows),
        "count": count,
        "all": len(rows),
        # Each request repeats the names of the providers that failed in the previous batches.
        "failed": [*request.POST.getlist("failed"), *(name for name, result in results if not result.ok)],
        "results": [{"name": name, "result": result} for name, result in results],
    }
    return render(request, "capabilities/testing.html", context)
