"""Pages of a model service: its form, its probes, drifts, and the catalogue's values for it.

A drift is evidence that the model's capabilities differ from the service's settings.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from capabilities.access import request_actor
from capabilities.core.delivery.slot_choice import slots_for
from capabilities.core.delivery.slots import SLOT_KINDS, Slot
from capabilities.core.delivery.token_limits import TokenLimit, token_limits
from capabilities.core.prices import NO_CURRENCY, Price, amount_from_rate
from capabilities.core.providers.catalogue import CELLS, TEXT, CatalogueEntry, StatedLimit
from capabilities.core.providers.catalogue.price_verdicts import find_contested
from capabilities.core.providers.presets import limits_template, quirks_for
from capabilities.core.translatable import insert_facts
from capabilities.core.vocabulary import Source
from capabilities.errors import ActionError, ConflictError
from capabilities.labels import KINDS, capability_label
from capabilities.sentences import join_words
from routing_admin.console.base.consequences import find_deletion_consequences, find_obstacle, find_unconfirmed
from routing_admin.console.base.page_responses import (
    UNPROCESSABLE,
    Difference,
    add_refusal,
    add_refusal_toast,
    add_toast,
    find_differences,
    render_value,
    renew_version,
    require_found,
)
from routing_admin.console.base.saving import describe_saving, is_asking_for_changes, render_changes
from routing_admin.console.catalogue.queries import find_ending_consequences
from routing_admin.console.matrix.queries import MatrixCell, list_cells
from routing_admin.console.providers import dialling
from routing_admin.console.providers.queries import find_provider
from routing_admin.console.services.actions import (
    accept_doubt,
    check_can_delete_service,
    delete_service,
    dismiss_drift,
    entry_for,
    fill_from_catalogue,
    find_retirement,
    list_catalogue_cells,
    save_service,
)
from routing_admin.console.services.forms import ServiceForm
from routing_admin.console.services.nightly import set_nightly
from routing_admin.console.services.probing import probe_service, summarize_probe
from routing_admin.console.services.queries import (
    estimate_night,
    find_service,
    list_agents_using,
    list_service_drifts,
    list_transcripts,
    render_drifts,
)
from routing_admin.console.services.transcripts import render_transcripts
from routing_admin.dispatch.stored_refusals import forget_refusal, list_refusals
from routing_admin.limits.prices.sheet import price_today

if TYPE_CHECKING:
    from capabilities.models import Service


@require_POST
def service_drift(request: HttpRequest, service_id: str) -> HttpResponse:
    """Decide on a drift: `off` declares that the model lacks the capability, `dismiss` hides the drift for a week."""
    row = require_found(find_service(service_id))
    capability, act = request.POST.get("capability", "")[:100], request.POST.get("act", "")
    facts = {"service": service_id, "capability": capability_label(capability)}
    if act == "off" and capability:
        change = accept_doubt(request_actor(request), row, capability)
        add_toast(request, insert_facts(_("%(service)s no longer reads %(capability)s"), facts), change.revision)
    elif capability:
        dismiss_drift(request_actor(request), row, capability)
        add_toast(request, _("Dismissed. You will not see this again for a week."))
    return redirect("dashboard") if request.POST.get("back") == "dashboard" else redirect("service", service_id)


@require_POST
def service_nightly(request: HttpRequest, service_id: str) -> HttpResponse:
    row = require_found(find_service(service_id))
    on = "on" in request.POST
    set_nightly(request_actor(request), row, on, timezone.now())
    text = _("%(name)s is probed every night") if on else _("%(name)s is no longer probed at night")
    add_toast(request, text % {"name": service_id})
    return redirect("service", service_id)


FORM_FIELDS = {"serviceId": "service_id"}


def service_new(request: HttpRequest) -> HttpResponse:
    provider = find_provider(request.GET.get("provider", ""))
    form = ServiceForm(request.POST or None, initial={"provider": provider})
    status = 200
    if request.method == "POST":
        status = UNPROCESSABLE
        if form.is_valid():
            try:
                row = form.build_row()
                change = save_service(request_actor(request), row)
            except ActionError as refusal:
                status = add_refusal(form, refusal, FORM_FIELDS)
            else:
                add_toast(request, _("%(name)s added") % {"name": row.service_id}, change.revision)
                return redirect("service", service_id=row.service_id)
    return render(request, "capabilities/service_new.html", {"form": form}, status=status)


def service(request: HttpRequest, service_id: str) -> HttpResponseBase:
    row = require_found(find_service(service_id))
    if request.method != "POST":
        return service_page(request, row, ServiceForm(instance=row))
    return save(request, row)


def save(request: HttpRequest, row: Service) -> HttpResponse:
    """Save the form.

    If this fails, return 422 with the form's errors, or 409 with both versions of the service.
    """
    form = ServiceForm(request.POST, instance=row)
    if is_asking_for_changes(request):
        return render_changes(request, describe_service_saving(form, row))
    if not form.is_valid():
        # Validating the form has changed `row`, so the rest of the page shows the stored service.
        return service_page(request, require_found(find_service(row.service_id)), form, UNPROCESSABLE)
    effects = find_unconfirmed(request, form, "service", row.service_id)
    if effects:
        return service_page(request, require_found(find_service(row.service_id)), form, UNPROCESSABLE, effects=effects)
    try:
        saved, cells = form.build_row(), form.cells(list_cells(row))
        change = save_service(request_actor(request), saved, cells=cells, expected=form.cleaned_data["version"])
    except ActionError as refusal:
        current = require_found(find_service(row.service_id))
        status = add_refusal(form, refusal, FORM_FIELDS)
        differences = [*find_switch_differences(form, current), *find_differences(form, current)]
        conflict = differences if isinstance(refusal, ConflictError) else None
        renew_version(form, current.version)
        return service_page(request, current, form, status, refusal=refusal, conflict=conflict)
    add_toast(request, _("%(name)s saved") % {"name": saved.service_id}, change.revision)
    return redirect("service", service_id=saved.service_id)


def describe_service_saving(form: ServiceForm, current: Service) -> dict[str, Any]:
    saving = describe_saving(form, form.price)
    switches = [difference.label for difference in find_switch_differences(form, current)]
    return {**saving, "changes": [*switches, *saving["changes"]]}


def find_switch_differences(form: ServiceForm, current: Service) -> list[Difference]:
    """Return a difference for each side (input or output) on which the form's switches differ from the stored row."""
    stored = list_cells(current)
    submitted = form.apply_switches(stored)
    found = []
    for side, label in (("input", _("Reads (input)")), ("output", _("Writes (output)"))):
        theirs, mine = (
            join_words(capability_label(square.name, side) for square in squares if square.side == side and square.on)
            for squares in (stored, submitted)
        )
        if theirs != mine:
            found.append(Difference(label, render_value(theirs), render_value(mine)))
    return found


@dataclass(frozen=True, slots=True)
class SlotLine:
    """A service's limits for one kind of input file, and whether the service itself sets them."""

    label: str | Promise
    slot: Slot | None
    own: bool


def list_slots(row: Service) -> list[SlotLine]:
    provider = row.provider
    quirks = quirks_for(provider.endpoint, provider.quirks)
    template = limits_template(provider.endpoint, provider.protocol)
    slots = slots_for(provider.protocol, template, row.limits or None, quirks, row.model)
    return [
        SlotLine(KINDS[kinds[0]], slots.get(kinds[0]), name in row.limits)
        for name, kinds in SLOT_KINDS.items()
        if name != "text"
    ]


@dataclass(frozen=True, slots=True)
class TokenLimitLine:
    """A service's maximum number of input or output tokens, and its source.

    `limit` is None if the maximum is unknown.
    """

    label: str
    limit: TokenLimit | None
    stated: StatedLimit | None = None

    @property
    def count(self) -> str:
        return f"{self.limit.tokens:,}" if self.limit else ""


def list_token_limits(row: Service, entry: CatalogueEntry | None) -> list[TokenLimitLine]:
    limits = token_limits(row.limits, entry)
    stated_limits = (entry.max_input, entry.max_output) if entry else (None, None)
    return [
        TokenLimitLine(_("Context"), limits.context, stated_limits[0]),
        TokenLimitLine(_("Longest answer"), limits.output, stated_limits[1]),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPrice:
    """The listed price as the page shows it: amounts per million tokens for input and output."""

    input: str
    output: str
    currency: str
    source: str
    price: Price

    @property
    def is_contested(self) -> bool:
        return bool(find_contested(self.price))

    @property
    def is_free(self) -> bool:
        return self.currency == NO_CURRENCY


def describe_list_price(row: Service) -> ListedPrice | None:
    price = price_today(row.provider.endpoint, row.model)
    if price is None:
        return None
    rates = price.tiers[0].rates
    input_price, output_price = (f"{amount_from_rate(rate or 0).normalize():f}" for rate in (rates.input, rates.output))
    source = " ".join(filter(None, (price.source, str(price.checked_on or ""))))
    return ListedPrice(input=input_price, output=output_price, currency=price.currency, source=source, price=price)


def service_page(request: HttpRequest, row: Service, form: ServiceForm, status: int = 200, **more: Any) -> HttpResponse:
    stored = list_cells(row)
    switches = form.apply_switches(stored)
    entry = entry_for(row.provider, row.model)
    transcripts = list_transcripts(row)
    context = {
        "row": row,
        "form": form,
        **describe_service_saving(form, row),
        "reads": [square for square in switches if square.side == "input"],
        "writes": [square for square in switches if square.side == "output"],
        "entry": entry,
        "disagrees": find_disagreements(stored, entry) if entry else [],
        "facts": [(*cell, entry.facts.get(cell)) for cell in CELLS if cell not in TEXT] if entry else [],
        "slots": list_slots(row),
        "token_limits": list_token_limits(row, entry),
        "list_price": describe_list_price(row),
        "retirement": find_retirement(row.provider, row.model),
        "ending_effects": find_ending_consequences(row.provider.name, row.model),
        "agents": list_agents_using(row),
        "drifts": render_drifts(list_service_drifts(row)),
        "transcripts": render_transcripts(transcripts),
        "night": estimate_night(row, transcripts),
        "refusals": list_refusals(row.provider.name, row.model),
        "obstacle": find_obstacle(check_can_delete_service, row, row.service_id),
        "losses": find_deletion_consequences("service", [row.service_id]),
        **more,
    }
    return render(request, "capabilities/service.html", context, status=status)


def find_disagreements(stored: Iterable[MatrixCell], entry: CatalogueEntry) -> list[MatrixCell]:
    """Return the cells whose stored value differs from what the catalogue's sources agree on."""
    stored_values = {(square.side, square.name): square.on for square in stored}
    return [
        MatrixCell(*cell, on, source.value)
        for cell, (on, source) in list_catalogue_cells(entry).items()
        # If the catalogue has no clear value for a cell, the source is contested or unknown, so the cell is left out.
        if source is Source.CATALOGUE and stored_values.get(cell, False) != on
    ]


@require_POST
def service_catalogue(request: HttpRequest, service_id: str) -> HttpResponse:
    """Set all values that the catalogue has for a service's model, even where other values were declared."""
    row = require_found(find_service(service_id))
    changed = fill_from_catalogue(request_actor(request), [row], insist=True)
    if changed.count:
        add_toast(request, _("%(name)s now matches the catalogue") % {"name": row.service_id}, changed.revision)
    else:
        add_toast(request, _("The catalogue has nothing new for it."))
    return redirect("service", service_id=service_id)


@require_POST
def service_forget(request: HttpRequest, service_id: str) -> HttpResponse:
    """Forget that the model rejected a parameter, so that the next request contains it again."""
    row, name = require_found(find_service(service_id)), request.POST.get("name", "")
    forget_refusal(row.provider.name, row.model, name)
    add_toast(request, _("%(name)s is sent again") % {"name": name})
    return redirect("service", service_id=service_id)


@require_POST
def service_probe(request: HttpRequest, service_id: str) -> HttpResponse:
    row = require_found(find_service(service_id))
    probed = probe_service(request_actor(request), row)
    if probed.failed:
        result = dialling.explain_answer(row.provider.name, probed.failed)
        return service_page(request, row, ServiceForm(instance=row), result=result)
    add_toast(request, summarize_probe(row, probed), probed.revision)
    return redirect("service", service_id=service_id)


@require_POST
def service_delete(request: HttpRequest, service_id: str) -> HttpResponse:
    row = require_found(find_service(service_id))
    try:
        change = delete_service(request_actor(request), row)
    except ActionError as refusal:
        add_refusal_toast(request, refusal)
        return redirect("service", service_id=service_id)
    add_toast(request, _("%(name)s deleted") % {"name": service_id}, change.revision)
    return redirect("services")
