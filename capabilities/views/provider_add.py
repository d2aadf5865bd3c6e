"""Adding a provider as one flow: preset, key, test, choose models, services and aliases made as one revision."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from capabilities import actions
from capabilities.access import actor_of
from capabilities.core.providers.presets import BY_NAME, PRESETS, HostPreset
from capabilities.errors import ActionError
from capabilities.forms.models import ModelLine, list_chosen, offer_models, read_lines
from capabilities.forms.providers import NewProviderForm
from capabilities.queries.providers import find_provider, provider_exists
from capabilities.queries.services import has_services
from capabilities.views import dialling
from capabilities.views.answers import UNPROCESSABLE, add_toast, require_found
from capabilities.views.refused_forms import add_refusal

if TYPE_CHECKING:
    from capabilities.models import Provider


def label_of(preset: HostPreset) -> str:
    """What a preset is called in the reader's language."""
    return preset.label_zh if (get_language() or "").startswith("zh") else preset.label_en


def start_of(preset: HostPreset | None) -> dict[str, Any]:
    """What the form begins with."""
    if preset is None:
        return {"protocol": "openai"}
    taken = provider_exists(preset.name)
    return {
        "name": f"{preset.name}-2" if taken else preset.name,
        "display_name": label_of(preset),
        "protocol": preset.protocol,
        "endpoint": preset.base_url,
        "default_model": preset.models[0] if preset.models else "",
        "key": "",
    }


def provider_new(request: HttpRequest) -> HttpResponse:
    """The first step: a preset or an address of one's own, and the key."""
    preset = BY_NAME.get(request.GET.get("preset", ""))
    form = NewProviderForm(request.POST or None, initial=start_of(preset))
    form.needs_key = preset.needs_key if preset else True
    if preset:  # the rest is filled in
        form.fields["key"].widget.attrs["autofocus"] = True
    status = 200
    if request.method == "POST":
        if form.is_valid():
            try:
                row = form.build_row()
                made = actions.save_provider(actor_of(request), row, key=form.key_change())
                add_toast(request, _("%(name)s added") % {"name": row.name}, made.revision)
                return redirect("provider_models", name=row.name)
            except ActionError as refusal:
                add_refusal(form, refusal, {"apiKey": "key"})
        status = UNPROCESSABLE
    presets = [(each, label_of(each)) for each in PRESETS]
    context = {"form": form, "presets": presets, "preset": preset, "own": "own" in request.GET}
    return render(request, "capabilities/provider_new.html", context, status=status)


def provider_models(request: HttpRequest, name: str) -> HttpResponse:
    """The further steps: test, fetch or write the models, choose, make services."""
    row = require_found(find_provider(name))
    act = request.POST.get("act", "")
    if act == "make":
        return make_services(request, row)
    context: dict[str, Any] = {}
    if act == "test":
        context["result"] = dialling.test(row)
    elif act == "fetch":
        context["result"] = found = dialling.models(row)
        context["lines"] = offer_models(row, found.models)
    elif act == "write":
        context["lines"] = offer_models(row, request.POST.get("names", "").splitlines(), use=True)
    elif request.method == "GET" and not has_services(row):
        context["lines"] = suggest_models(row)
    return models_page(request, row, **context)


def suggest_models(row: Provider) -> list[ModelLine] | None:
    """What the preset of a new provider's address names, the default model chosen; None without a preset."""
    preset = next((each for each in PRESETS if each.base_url == row.endpoint and each.models), None)
    if preset is None:
        return None
    names = dict.fromkeys((row.default_model, *preset.models))
    return [replace(line, use=line.model == row.default_model) for line in offer_models(row, names)]


def models_page(request: HttpRequest, row: Provider, status: int = 200, **context: Any) -> HttpResponse:
    """The page of the further steps."""
    shown = {"row": row, "lines": None, **context}
    return render(request, "capabilities/provider_models.html", shown, status=status)


def make_services(request: HttpRequest, row: Provider) -> HttpResponse:
    """Makes the chosen services and their aliases as one revision."""
    lines = read_lines(row, request.POST)
    wanted = list_chosen(lines)
    problem = "" if wanted else _("Choose at least one model.")
    if not problem and not any(line.error for line in lines):
        try:
            made = actions.add_models(actor_of(request), row, wanted)
        except ActionError as refusal:
            problem = str(refusal)
        else:
            text = ngettext("%(count)s model service added", "%(count)s model services added", len(wanted))
            add_toast(request, text % {"count": len(wanted)}, made.revision)
            return redirect(f"{reverse('matrix')}?{urlencode({'provider': row.name})}")
    return models_page(request, row, UNPROCESSABLE, lines=lines, problem=problem)
