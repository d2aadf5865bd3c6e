"""The page of aliases: other names for task routes and model services."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from capabilities.access import request_actor
from routing_admin.configuration import snapshot
from routing_admin.console.base.lists import Column, arrange, natural_key, page_size
from routing_admin.console.base.page_responses import UNPROCESSABLE, add_toast, wants_fragment
from routing_admin.console.routes.actions import save_alias
from routing_admin.console.routes.forms import AliasForm
from routing_admin.core.configuration.specs import AliasSpec
from routing_admin.core.planning.model_names import CATCH_ALL

COLUMNS: Mapping[str, Column[AliasSpec]] = {
    "name": Column(lambda alias: natural_key(alias.name)),
    "target": Column(lambda alias: natural_key(alias.target)),
}


def alias(request: HttpRequest) -> HttpResponse:
    """Show the aliases. A POST request adds or changes an alias, or removes the one named by the parameter `remove`."""
    if request.method != "POST":
        return alias_page(request, AliasForm())
    removed = request.POST.get("remove", "")
    if removed:
        change = save_alias(request_actor(request), removed, "")
        add_toast(request, _("Alias %(name)s is deleted.") % {"name": removed}, change.revision)
        return redirect("alias")
    form = AliasForm(request.POST)
    if not form.is_valid():
        return alias_page(request, form, UNPROCESSABLE)
    spec = AliasSpec(form.cleaned_data["name"], form.cleaned_data["target"])
    change = save_alias(request_actor(request), spec.name, spec.target)
    text = _("%(name)s now leads to %(target)s.")
    add_toast(request, text % {"name": spec.name, "target": spec.target}, change.revision)
    return redirect("alias")


def alias_page(request: HttpRequest, form: AliasForm, status: int = 200) -> HttpResponse:
    configuration = snapshot.current().configuration
    listing = arrange(
        configuration.aliases,
        request.GET,
        texts=lambda entry: (entry.name, entry.target),
        columns=COLUMNS,
        sort="name",
        per_page=page_size(request),
    )
    context = {
        "listing": listing,
        "aliases": listing.total,
        "catches_all": any(entry.name == CATCH_ALL for entry in configuration.aliases),
        "alias_form": form,
    }
    template = "routes/aliases.html#rows" if wants_fragment(request) else "routes/aliases.html"
    return render(request, template, context, status=status)
