"""Exchange rates: one revision for each that is set or removed."""

from __future__ import annotations

from dataclasses import asdict

from django.utils import timezone
from django.utils.translation import gettext as _

from capabilities.acts import Actor, AuditedAction
from capabilities.core.exchange import ExchangeRate, check_rate
from capabilities.errors import InvalidError, NotFoundError
from routing_admin.configuration.revisions import ledger
from routing_admin.models import Installation


def set_rate(actor: Actor, rate: ExchangeRate) -> AuditedAction:
    """Sets a currency's rate, instead of the one it had. Raises `InvalidError`."""
    act = AuditedAction("exchange_rate.set", "exchange_rate", rate.currency)
    with ledger.change(actor, act):
        row = Installation.current()
        others = [each for each in row.exchange_rates if each["currency"] != rate.currency]
        problems = list(check_rate(rate, [ExchangeRate(**each) for each in others], timezone.localdate()))
        if problems:
            raise InvalidError(problems)
        row.exchange_rates = [*others, asdict(rate)]
        row.save()
    return act


def remove_rate(actor: Actor, currency: str) -> AuditedAction:
    """Removes a currency's rate. Raises `NotFoundError` where it has none."""
    message = _("Removed the exchange rate of %(currency)s") % {"currency": currency}
    act = AuditedAction("exchange_rate.remove", "exchange_rate", currency, message=message)
    with ledger.change(actor, act):
        row = Installation.current()
        others = [each for each in row.exchange_rates if each["currency"] != currency]
        if len(others) == len(row.exchange_rates):
            raise NotFoundError(_("%(currency)s has no exchange rate.") % {"currency": currency})
        row.exchange_rates = others
        row.save()
    return act
