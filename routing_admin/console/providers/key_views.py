"""Actions on a provider's page: add, change, remove and test keys, and allow a key to be sent to an origin."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from capabilities.access import request_actor
from capabilities.errors import ActionError, ConflictError
from routing_admin.console.base.page_responses import (
    UNPROCESSABLE,
    add_refusal,
    add_refusal_toast,
    add_toast,
    require_found,
)
from routing_admin.console.providers import dialling
from routing_admin.console.providers import views as providers
from routing_admin.console.providers.actions import (
    add_provider_key,
    change_provider_key,
    confirm_key_origin,
    remove_provider_key,
)
from routing_admin.console.providers.forms import ProviderForm
from routing_admin.console.providers.key_forms import FurtherKeyForm, KeyNameForm
from routing_admin.console.providers.queries import describe_keys, find_provider

FORM_FIELDS = {"apiKey": "key"}


@require_POST
def provider_key_add(request: HttpRequest, name: str) -> HttpResponse:
    """Add a key. If the form is not valid, return 422 with its errors."""
    row = require_found(find_provider(name))
    form = FurtherKeyForm(request.POST)
    if not form.is_valid():
        # Without JavaScript, return the whole page, with the errors of the dialog's form at the top.
        return providers.provider_page(request, row, ProviderForm(instance=row), UNPROCESSABLE, further_form=form)
    try:
        change = add_provider_key(request_actor(request), row, form.cleaned_data["name"].strip(), form.key_change())
    except ActionError as refusal:
        status = add_refusal(form, refusal, FORM_FIELDS)
        row = require_found(find_provider(name))
        return providers.provider_page(request, row, ProviderForm(instance=row), status, further_form=form)
    add_toast(request, _("A key was added to %(name)s") % {"name": name}, change.revision)
    return redirect("provider", name=name)


@require_POST
def provider_key_change(request: HttpRequest, name: str) -> HttpResponse:
    row = require_found(find_provider(name))
    form = KeyNameForm(request.POST, prefix=request.POST.get("form", ""))
    if not form.is_valid():
        add_refusal_toast(request, ActionError(_("A key needs a name of at most 60 characters.")))
        return redirect("provider", name=name)
    data = form.cleaned_data
    try:
        change = change_provider_key(
            request_actor(request), row, data["key"], new_name=data["name"].strip(), enabled=data["enabled"]
        )
    except ActionError as refusal:
        add_refusal_toast(request, refusal)
    else:
        add_toast(request, _("Key %(name)s saved") % {"name": data["name"].strip()}, change.revision)
    return redirect("provider", name=name)


@require_POST
def provider_key_remove(request: HttpRequest, name: str) -> HttpResponse:
    row, key = require_found(find_provider(name)), request.POST.get("key", "")
    try:
        change = remove_provider_key(request_actor(request), row, key)
    except ActionError as refusal:
        add_refusal_toast(request, refusal)
    else:
        add_toast(request, _("Key %(name)s deleted") % {"name": key}, change.revision)
    return redirect("provider", name=name)


@require_POST
def provider_key_origin(request: HttpRequest, name: str) -> HttpResponse:
    """Allow the key in an environment variable to be sent to the provider's origin, if the page offers this choice."""
    row = require_found(find_provider(name))
    variable, origin = request.POST.get("variable", ""), request.POST.get("origin", "")
    # Accept only choices that the page offers now, so that a forged form cannot allow another variable or origin.
    if (variable, origin) not in {(key.note.variable, key.note.unconfirmed) for key in describe_keys(name)}:
        add_refusal_toast(request, ConflictError(_("This key needs no permission now.")))
        return redirect("provider", name=name)
    try:
        confirm_key_origin(request_actor(request), row, variable, origin)
    except ActionError as refusal:
        add_refusal_toast(request, refusal)
    else:
        add_toast(
            request, _("The key in %(variable)s is sent to %(origin)s") % {"variable": variable, "origin": origin}
        )
    return redirect("provider", name=name)


@require_POST
def provider_keys_test(request: HttpRequest, name: str) -> HttpResponse:
    """Test the named keys of a provider, or all its keys, with one minimal request each."""
    row = require_found(find_provider(name))
    results = dialling.test_keys(row, request.POST.getlist("key"))
    is_good = all(result.ok for _name, result in results)
    return providers.provider_page(
        request, row, ProviderForm(instance=row), key_results=results, results_are_good=is_good
    )
