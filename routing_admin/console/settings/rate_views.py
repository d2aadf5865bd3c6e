"""The exchange rates of the settings page: one is set or removed, each as a revision with Undo."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from capabilities.access import actor_of
from capabilities.core.exchange import ExchangeRate
from capabilities.errors import ActionError, InvalidError
from capabilities.sentences import translate_sentence
from routing_admin.console.settings import rate_actions as actions
from routing_admin.console.settings.forms import ExchangeRateForm
from routing_admin.console.settings.views import answer_saved, section


@require_POST
def rate_set(request: HttpRequest) -> HttpResponse:
    """Sets what one unit of a currency is in another."""
    form = ExchangeRateForm(request.POST)
    if form.is_valid():
        rate = ExchangeRate(**form.cleaned_data)
        try:
            made = actions.set_rate(actor_of(request), rate)
        except InvalidError as refusal:
            for problem in refusal.problems:
                form.add_error(problem.field, translate_sentence(problem.message))
        else:
            return answer_saved(request, "rates", _("%(rate)s saved") % {"rate": rate}, made.revision)
    return section(request, "rates", 422, rate_form=form)


@require_POST
def rate_remove(request: HttpRequest) -> HttpResponse:
    """Removes a currency's rate; sums are then shown by currency alone."""
    currency = request.POST.get("currency", "")
    try:
        made = actions.remove_rate(actor_of(request), currency)
    except ActionError as refusal:
        return section(request, "rates", refusal.status, rate_refusal=str(refusal))
    return answer_saved(request, "rates", _("%(code)s removed") % {"code": currency}, made.revision)
