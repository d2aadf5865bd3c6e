"""Nobody is surprised: what disabling something changes is said before it is done, and asked about once."""

from __future__ import annotations

from collections.abc import Sequence

from django import forms
from django.http import HttpRequest

from capabilities.core.consequence import Consequence
from routing_admin.console.base.consequences import foresee_disabling

CONFIRMED = "confirmed"
"""The field of the button beside what was said."""


def find_unconfirmed(request: HttpRequest, form: forms.BaseForm, kind: str, name: str) -> Sequence[Consequence]:
    """What a valid form that switches the thing off would change and nobody has confirmed; else nothing."""
    if "enabled" not in form.changed_data or form.cleaned_data["enabled"]:
        return ()
    return find_unconfirmed_disabling(request, kind, [name])


def find_unconfirmed_disabling(request: HttpRequest, kind: str, names: Sequence[str]) -> Sequence[Consequence]:
    """What disabling these would change; nothing where the person has confirmed it."""
    return () if CONFIRMED in request.POST else foresee_disabling(kind, names)
