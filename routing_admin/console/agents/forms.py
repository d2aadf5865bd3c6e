"""The form of an agent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from django import forms
from django.forms.models import ModelChoiceIterator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from capabilities.core.services.agent_limits import MODELS
from capabilities.models import Agent, Service
from routing_admin.configuration import snapshot
from routing_admin.console.base.limit_forms import (
    amounts_in,
    check_unpriced,
    make_amount_fields,
    make_models_field,
    models_in,
)
from routing_admin.console.services.queries import list_choices, select_services

if TYPE_CHECKING:
    AgentModelForm = forms.ModelForm[Agent]
    ServiceChoiceField = forms.ModelChoiceField[Service]
    ServiceIterator = ModelChoiceIterator[Service]
else:
    AgentModelForm = forms.ModelForm
    ServiceChoiceField = forms.ModelChoiceField
    ServiceIterator = ModelChoiceIterator


class ServiceChoices(ServiceIterator):
    """No service, then each by its id: hundreds of whole rows would be read for as many words."""

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        yield "", self.field.empty_label
        yield from list_choices()


class ServiceField(ServiceChoiceField):
    """The choice of a model service."""

    iterator = ServiceChoices


class AgentForm(AgentModelForm):
    """An agent that an administrator keeps; its id stays once it is made."""

    service = ServiceField(
        select_services(), label=gettext_lazy("Model service"), required=False, empty_label=gettext_lazy("none")
    )
    task_type = forms.ChoiceField(
        label=gettext_lazy("Task route"),
        required=False,
        help_text=gettext_lazy("Instead of a model service. Starts with the first available candidate."),
    )
    version = forms.IntegerField(widget=forms.HiddenInput, required=False)

    class Meta:
        model = Agent
        fields = ["agent_id", "name", "description", "service", "task_type"]
        labels = {
            "agent_id": gettext_lazy("Id"),
            "name": gettext_lazy("Name"),
            "description": gettext_lazy("Description"),
        }
        error_messages = {"agent_id": {"unique": gettext_lazy("An agent with this id already exists.")}}
        help_texts = {"agent_id": gettext_lazy("Models see it when they choose an agent to forward to.")}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            del self.fields["agent_id"]
        self.fields["version"].initial = self.instance.version
        task_types = [route.task_type for route in snapshot.current().configuration.routes]
        choices = [("", _("none")), *((task_type, task_type) for task_type in task_types)]
        own = self.instance.task_type
        if own and own not in dict(choices):
            choices.append((own, own))
        self.fields["task_type"].choices = choices  # type: ignore[attr-defined]
        self.amounts = make_amount_fields(self.instance.limits)
        if self.instance.origin == Agent.Origin.RUNTIME:  # its maker's hold for it
            self.amounts = {}
        else:
            hint = gettext_lazy("One per line: task:<task type> or a model service id. Empty: all.")
            self.fields[MODELS] = make_models_field(self.instance.limits, hint)
        self.fields.update(self.amounts)

    @property
    def limit_fields(self) -> list[forms.BoundField]:
        """The fields of the amounts, in their order."""
        return [self[name] for name in self.amounts]

    def clean(self) -> dict[str, Any]:
        """A service or a route, not both; the limits as the row keeps them."""
        data = super().clean() or {}
        if MODELS in self.fields:
            check_unpriced(self, data)
            self.instance.limits = models_in(data) | amounts_in(data)
        if data.get("service") and data.get("task_type"):
            self.add_error("task_type", _("An agent uses a service or a task route, not both."))
        return data
