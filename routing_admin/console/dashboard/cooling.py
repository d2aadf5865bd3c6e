"""Providers that are left alone after failures: the dashboard says for how long, and has them tried again at once."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from capabilities.access import actor_of
from capabilities.errors import ActionError
from routing_admin.console.base.answers import add_refusal_toast, add_toast
from routing_admin.console.dashboard.cooldown_resets import try_again
from routing_admin.core.fallback.cooldown import Cooldowns


@dataclass(frozen=True, slots=True)
class CoolingLine:
    """A provider, or a model of it, for how many seconds it is left alone, and after which fault."""

    provider: str
    model: str
    seconds: int
    fault: str

    @property
    def name(self) -> str:
        """The provider, and where only a model of it is meant that."""
        return f"{self.provider}/{self.model}" if self.model else self.provider


def list_cooling_lines(cooldowns: Cooldowns) -> list[CoolingLine]:
    """Everybody who is left alone by this process, the longest first."""
    found = [
        CoolingLine(provider, model or "", round(cooling.seconds), cooling.failure.fault.value)
        for (provider, model), cooling in cooldowns.list_cooling()
    ]
    return sorted(found, key=lambda line: -line.seconds)


@require_POST
def providers_try_again(request: HttpRequest) -> HttpResponse:
    """Ends the cooldowns of the named providers in every process."""
    try:
        names = try_again(actor_of(request), list(dict.fromkeys(request.POST.getlist("name"))))
    except ActionError as refusal:
        add_refusal_toast(request, refusal)
    else:
        text = ngettext(
            "%(names)s is tried again with the next call", "%(names)s are tried again with the next call", len(names)
        )
        add_toast(request, text % {"names": _(", ").join(names)})
    return redirect("dashboard")
