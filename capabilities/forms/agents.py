"""The forms of agents and their keys."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from capabilities.core.permissions import DEFAULT_SCOPES, SCOPES
from capabilities.core.services.agent_limits import CURRENCY, MODELS, MONEY, MOST, MOST_MONEY, Meter
from capabilities.models import Agent
from capabilities.ports import ports
from capabilities.queries.services import select_services

if TYPE_CHECKING:
    AgentModelForm = forms.ModelForm[Agent]
else:
    AgentModelForm = forms.ModelForm


SCOPE_MEANINGS: dict[str, str | Promise] = {
    "route": gettext_lazy("call models"),
    "artifacts:read": gettext_lazy("read artifacts by their reference"),
    "artifacts:write": gettext_lazy("store artifacts, delete its own"),
    "registry:read": gettext_lazy("see services, agents, routes and providers"),
    "agents:write": gettext_lazy("make agents at run time, and act for them"),
    "config:read": gettext_lazy("export the configuration"),
    "config:write": gettext_lazy("import a configuration"),
}
"""What each scope lets a key do."""


LIMITS: dict[Meter, tuple[Any, Any]] = {
    Meter.REQUESTS_PER_MINUTE: (gettext_lazy("Requests a minute"), ""),
    Meter.IN_FLIGHT: (gettext_lazy("Requests under way at a time"), ""),
    Meter.TOKENS_PER_DAY: (gettext_lazy("Tokens a day"), gettext_lazy("Those of requests and answers together.")),
    Meter.TOKENS_PER_MONTH: (gettext_lazy("Tokens a month"), ""),
    Meter.MONEY_PER_DAY: (gettext_lazy("Money a day"), ""),
    Meter.MONEY_PER_MONTH: (gettext_lazy("Money a month"), ""),
    Meter.BYTES_PER_DAY: (gettext_lazy("Bytes of requests a day"), ""),
}
"""What each limit is called, in the order of the form, and what is to be known of it."""


COUNT_BOUNDS: dict[str, Any] = {"min_value": 1, "max_value": MOST}
MONEY_BOUNDS: dict[str, Any] = {"min_value": Decimal("0.000001"), "max_value": MOST_MONEY, "decimal_places": 6}


class AgentForm(AgentModelForm):
    """An agent that an administrator keeps; its id stays once it is made."""

    service = forms.ModelChoiceField(
        select_services(), label=gettext_lazy("Model service"), required=False, empty_label=gettext_lazy("none")
    )
    task_type = forms.ChoiceField(
        label=gettext_lazy("Task route"),
        required=False,
        help_text=gettext_lazy("Instead of a model service: it begins with the first ready candidate."),
    )
    models = forms.CharField(
        label=gettext_lazy("Allowed routes and services"),
        required=False,
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=gettext_lazy("One a line: task:<task type>, or the id of a model service. Empty: all of them."),
    )
    currency = forms.RegexField(
        "^[A-Z]{3}$",
        label=gettext_lazy("Currency of the money"),
        required=False,
        help_text=gettext_lazy(
            "What is paid in another currency counts by its exchange rate; what has none, or no price, does not."
        ),
        error_messages={"invalid": gettext_lazy("Three capital letters, such as USD or CNY.")},
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
        help_texts = {"agent_id": gettext_lazy("Models read it when they are told whom to forward to.")}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            del self.fields["agent_id"]
        self.fields["version"].initial = self.instance.version
        choices = [("", _("none")), *((task, task) for task in ports.routes.task_types())]
        own = self.instance.task_type
        if own and own not in dict(choices):
            choices.append((own, own))
        self.fields["task_type"].choices = choices  # type: ignore[attr-defined]
        self.fields["models"].initial = "\n".join(self.instance.limits.get(MODELS, ()))
        for meter, (label, hint) in LIMITS.items():
            amount = forms.DecimalField if meter in MONEY else forms.IntegerField
            bounds = MONEY_BOUNDS if meter in MONEY else COUNT_BOUNDS
            self.fields[meter.value] = amount(label=label, help_text=hint, required=False, **bounds)
            self.fields[meter.value].initial = self.instance.limits.get(meter.value)
        self.fields[CURRENCY].initial = self.instance.limits.get(CURRENCY, "USD")
        if self.instance.origin == Agent.Origin.RUNTIME:  # its maker's hold for it
            for name in (MODELS, CURRENCY, *LIMITS):
                del self.fields[name]

    @property
    def limit_fields(self) -> list[forms.BoundField]:
        """The fields of the amounts, in their order."""
        names = [meter.value for meter in LIMITS]
        return [self[name] for name in (*names[:-1], CURRENCY, names[-1]) if name in self.fields]

    def clean(self) -> dict[str, Any]:
        """A service or a route, not both; the limits as the row keeps them."""
        data = super().clean() or {}
        if "models" in self.fields:
            names = dict.fromkeys(filter(None, map(str.strip, str(data.get("models", "")).splitlines())))
            most = {meter.value: data[meter.value] for meter in LIMITS if data.get(meter.value) is not None}
            for meter in MONEY:
                if meter.value in most:
                    most |= {meter.value: f"{most[meter.value]:f}", CURRENCY: data.get(CURRENCY) or "USD"}
            self.instance.limits = ({MODELS: list(names)} if names else {}) | most
        if data.get("service") and data.get("task_type"):
            self.add_error("task_type", _("An agent uses a service or a task route, not both."))
        return data


class KeyForm(forms.Form):
    """A new key: what it may do, what it is for, when it ends."""

    label = forms.CharField(
        label=gettext_lazy("What it is for"),
        max_length=100,
        required=False,
        help_text=gettext_lazy("Only people read it."),
    )
    scopes = forms.MultipleChoiceField(
        label=gettext_lazy("Scopes"),
        choices=[(scope, scope) for scope in SCOPES],
        widget=forms.CheckboxSelectMultiple,
        initial=list(DEFAULT_SCOPES),
    )
    days = forms.IntegerField(
        label=gettext_lazy("Expires after (days)"),
        required=False,
        min_value=1,
        max_value=3650,
        help_text=gettext_lazy("Empty: never."),
    )

    @property
    def scope_boxes(self) -> list[tuple[str, str | Promise, bool]]:
        """The scopes with what each means and whether it is ticked."""
        ticked = self["scopes"].value() or []
        return [(scope, SCOPE_MEANINGS[scope], scope in ticked) for scope in SCOPES]

    @property
    def expires_at(self) -> datetime | None:
        """When the key ends."""
        days = self.cleaned_data["days"]
        return timezone.now() + timedelta(days=days) if days else None
