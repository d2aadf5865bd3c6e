"""Pages for adding a provider: first preset, key and connection test, then the models, added as one revision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from capabilities.access import request_actor
from capabilities.core.providers.hosts.china import CHINA
from capabilities.core.providers.hosts.local import LOCAL
from capabilities.core.providers.hosts.worldwide import WORLDWIDE
from capabilities.core.providers.presets import BY_NAME, PRESETS, HostPreset
from capabilities.errors import ActionError
from capabilities.sentences import translate_refusal
from routing_admin.console.base.page_responses import (
    UNPROCESSABLE,
    add_refusal,
    add_toast,
    require_found,
    wants_fragment,
)
from routing_admin.console.providers import dialling
from routing_admin.console.providers.actions import KeyAct, save_provider
from routing_admin.console.providers.forms import NewProviderForm
from routing_admin.console.providers.key_forms import ProviderKeyForm
from routing_admin.console.providers.model_forms import (
    ModelLine,
    Offer,
    adjust_lines,
    list_chosen,
    offer_models,
    read_lines,
    read_offer,
)
from routing_admin.console.providers.queries import (
    ProviderLine,
    find_provider,
    list_by_preset,
)
from routing_admin.console.services.actions import add_models
from routing_admin.console.services.queries import has_services

if TYPE_CHECKING:
    from capabilities.models import Provider


RESELLERS = {"groq", "openrouter", "siliconflow"}
"""Presets for hosts that resell the models of several vendors."""


def group_presets() -> Mapping[str, Sequence[HostPreset]]:
    """Group the presets by the headings on the page."""
    return {
        _("Makers of models"): [preset for preset in WORLDWIDE if preset.name not in RESELLERS],
        _("Makers of models in China"): [preset for preset in CHINA if preset.name not in RESELLERS],
        _("Models of many makers"): [preset for preset in PRESETS if preset.name in RESELLERS],
        _("On your own servers"): LOCAL,
    }


def preset_label(preset: HostPreset) -> str:
    return preset.label_zh if (get_language() or "").startswith("zh") else preset.label_en


def initial_values(preset: HostPreset | None, existing: Sequence[ProviderLine]) -> dict[str, Any]:
    """Return the form's initial values. `existing` contains the providers that already use the preset's host."""
    if preset is None:
        return {"protocol": "openai"}
    taken = any(line.row.name == preset.name for line in existing)
    return {
        "name": f"{preset.name}-2" if taken else preset.name,
        "display_name": preset_label(preset),
        "protocol": preset.protocol,
        "endpoint": preset.base_url,
        "default_model": preset.models[0] if preset.models else "",
        "key_act": (KeyAct.SET if preset.needs_key else KeyAct.NONE).value,
    }


def provider_new(request: HttpRequest) -> HttpResponse:
    """Show the first step: choose a preset or enter a URL, then enter the key.

    If a provider already uses the preset, the page offers to set that provider's key instead.
    """
    preset = BY_NAME.get(request.GET.get("preset", ""))
    if "provider" in request.POST:
        return save_missing_key(request, preset)
    by_preset = list_by_preset()
    if preset and preset.name in by_preset and "another" not in request.GET and request.method == "GET":
        return render_new_page(request, ProviderKeyForm(), preset, by_preset, offers=True)
    form = NewProviderForm(
        request.POST or None, initial=initial_values(preset, by_preset.get(preset.name, ()) if preset else ())
    )
    if preset and not preset.needs_key:
        # Servers of this preset need no key. If the field is empty, the provider has none.
        form.key_act_unless_chosen = KeyAct.NONE
    status = 200
    if request.method == "POST":
        if form.is_valid():
            try:
                row = form.build_row()
                change = save_provider(request_actor(request), row, key=form.key_change())
                add_toast(request, _("%(name)s added") % {"name": row.name}, change.revision)
                return redirect("provider_models", name=row.name)
            except ActionError as refusal:
                add_refusal(form, refusal, {"apiKey": "key"})
        status = UNPROCESSABLE
    return render_new_page(request, form, preset, by_preset, status)


def save_missing_key(request: HttpRequest, preset: HostPreset | None) -> HttpResponse:
    """Store a key for an existing provider, then continue with its models."""
    row = require_found(find_provider(request.POST["provider"]))
    form = ProviderKeyForm(request.POST)
    if form.is_valid():
        try:
            change = save_provider(request_actor(request), row, key=form.key_change())
        except ActionError as refusal:
            add_refusal(form, refusal, {"apiKey": "key"})
        else:
            add_toast(request, _("%(name)s saved") % {"name": row.name}, change.revision)
            return redirect("provider_models", name=row.name)
    return render_new_page(request, form, preset, list_by_preset(), UNPROCESSABLE, offers=True)


def render_new_page(
    request: HttpRequest,
    form: ProviderKeyForm,
    preset: HostPreset | None,
    by_preset: Mapping[str, Sequence[ProviderLine]],
    status: int = 200,
    *,
    offers: bool = False,
) -> HttpResponse:
    existing = by_preset.get(preset.name, ()) if preset and offers else ()
    if preset:  # With a preset, the user only needs to type the key.
        form.fields["key"].widget.attrs["autofocus"] = True
    context = {
        "form": form,
        "presets": [
            (heading, [(choice, preset_label(choice), by_preset.get(choice.name, ())) for choice in choices])
            for heading, choices in group_presets().items()
        ],
        "preset": preset,
        "label": preset_label(preset) if preset else "",
        "own": "own" in request.GET,
        "existing": existing,
        "keyless": next((line for line in existing if line.key.source == "missing"), None),
    }
    return render(request, "capabilities/provider_new.html", context, status=status)


def provider_models(request: HttpRequest, name: str) -> HttpResponse:
    """Show the second step: test the connection, fetch or type the list of models, and add models as services."""
    row = require_found(find_provider(name))
    act = request.POST.get("act", "")
    if act == "make":
        return make_services(request, row, read_lines(row, request.POST))
    if act in CHOICE_ACTIONS:
        return choose_models(request, row, act)
    context: dict[str, Any] = {}
    if act == "test":
        context = {"result": dialling.test(row), **read_submitted_models(row, request.POST)}
    elif act == "fetch":
        result = dialling.models(row)
        found = {"offer": offer_models(row, result.models)} if result.ok else {}
        context = {"result": result, **(found or read_submitted_models(row, request.POST))}
    elif act == "write":
        names = request.POST.get("names", "").splitlines()
        context["offer"] = offer_models(row, names).choosing(True)
    # On the first visit, the preset's models are suggested, so that the list need not be fetched.
    elif request.method == "GET" and not has_services(row):
        context["offer"] = suggest_models(row)
    return models_page(request, row, **context)


def read_submitted_models(row: Provider, data: QueryDict) -> dict[str, Any]:
    """Return the models that were posted along with another action, so that they are not lost if it fails."""
    if "model" in data:
        return {"lines": read_lines(row, data)}
    return {"offer": read_offer(row, data)} if any(data.getlist("names")) else {}


CHOICE_ACTIONS = ("find", "all", "none", "count", "adjust", "add")


def choose_models(request: HttpRequest, row: Provider, act: str) -> HttpResponse:
    """Show the table of models after a search or a selection.

    If `adjust` is posted, show only the chosen models. If `add` is posted, add services for them.
    """
    offer = read_offer(row, request.POST)
    if act in ("adjust", "add"):
        lines = adjust_lines(row, offer)
        if lines and act == "add":
            return make_services(request, row, lines)
        context = {"lines": lines} if lines else {"offer": offer, "problem": _("Choose at least one model.")}
        return models_page(request, row, 200 if lines else UNPROCESSABLE, **context)
    if act in ("all", "none"):
        offer = offer.choosing(act == "all")
    part = {"count": "#chosen", "find": "#lines"}.get(act, "") if wants_fragment(request) else ""
    template = f"capabilities/models_offer.html{part}" if part else "capabilities/provider_models.html"
    return render(request, template, {"row": row, "offer": offer})


def suggest_models(row: Provider) -> Offer | None:
    """Return the models of the provider's preset, with the default model chosen, or None if it has no preset."""
    preset = next((preset for preset in PRESETS if preset.base_url == row.endpoint and preset.models), None)
    if preset is None:
        return None
    return offer_models(row, (row.default_model, *preset.models), (row.default_model,))


def models_page(request: HttpRequest, row: Provider, status: int = 200, **context: Any) -> HttpResponse:
    return render(request, "capabilities/provider_models.html", {"row": row, **context}, status=status)


def make_services(request: HttpRequest, row: Provider, lines: list[ModelLine]) -> HttpResponse:
    chosen = list_chosen(lines)
    # All services are added as one revision, or none: if any line of the table has an error, the table is shown again.
    problem = "" if chosen else _("Choose at least one model.")
    if not problem and not any(line.error for line in lines):
        try:
            change = add_models(request_actor(request), row, chosen)
        except ActionError as refusal:
            problem = translate_refusal(refusal)
        else:
            text = ngettext("%(count)s model service added", "%(count)s model services added", len(chosen))
            add_toast(request, text % {"count": len(chosen)}, change.revision)
            return redirect(f"{reverse('matrix')}?{urlencode({'provider': row.name})}")
    return models_page(request, row, UNPROCESSABLE, lines=lines, problem=problem)
