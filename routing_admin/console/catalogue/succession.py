"""Putting a model's successor in its place: in its services, in chains, and as its provider's default."""

from __future__ import annotations

from django.utils.translation import gettext as _

from capabilities.acts import Actor, AuditedAction
from capabilities.core.vocabulary import Source
from capabilities.errors import ActionError
from capabilities.models import Provider, Service
from routing_admin.configuration.guards import save_fields
from routing_admin.configuration.revisions import ledger
from routing_admin.console.providers.actions import save_provider
from routing_admin.console.services.actions import save_service
from routing_admin.console.services.catalogue_actions import fill_from_catalogue, retirement_of
from routing_admin.models import Candidate, TaskRoute


def replace_model(actor: Actor, provider: Provider, model: str, successor: str) -> AuditedAction:
    """Puts the successor that the catalogue names in the model's place everywhere, as one revision.

    What an administrator declared that a service reads stays; what was looked up or probed is the catalogue's word on
    the successor now, and a price of the model's own is gone with it. Raises `ActionError` when the catalogue names
    another one, or none.
    """
    retirement = retirement_of(provider, model)
    if retirement is None or not successor or (retirement.model, retirement.successor) != (model, successor):
        raise ActionError(_("The catalogue does not name this successor. Choose a model on the service's page."))
    act = AuditedAction("model.replace", "provider", provider.name, {"model": model, "by": successor})
    with ledger.change(actor, act):
        services = list(Service.objects.filter(provider=provider, model=model))
        for service in services:
            service.capabilities.exclude(source=Source.DECLARED.value).delete()
            service.model, service.price = successor, {}
            save_service(actor, service)
        fill_from_catalogue(actor, Service.objects.filter(pk__in=[service.pk for service in services]))
        routes = TaskRoute.objects.filter(candidates__provider=provider, candidates__model=model).distinct()
        for route in list(routes):
            Candidate.objects.filter(route=route, provider=provider, model=model).update(model=successor)
            save_fields(route)
        if provider.default_model == model:
            provider.default_model = successor
            save_provider(actor, provider)
    return act
