"""A form whose saving was refused: reasons at its fields, both versions of a conflict, and how to save again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.db.models import Model
from django.http import QueryDict
from django.utils.translation import gettext as _

from capabilities.errors import ActionError, ConflictError, InvalidError
from capabilities.sentences import translate_sentence
from routing_admin.console.base.answers import UNPROCESSABLE


def add_refusal(form: forms.BaseForm, refusal: ActionError, places: Mapping[str, str] | None = None) -> int:
    """Writes a refusal into the form, each problem at its field where there is one; the status to answer with."""
    if isinstance(refusal, InvalidError):
        for problem in refusal.problems:
            name = (places or {}).get(problem.field, problem.field)
            form.add_error(name if name in form.fields else None, translate_sentence(problem.message))
        return UNPROCESSABLE
    if not isinstance(refusal, ConflictError):
        form.add_error(None, str(refusal))
    return refusal.status


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that somebody else changed meanwhile: its label, their value, and the one in the form."""

    label: str
    theirs: str
    mine: str


def find_differences(form: forms.BaseForm, current: Model) -> list[Difference]:
    """Where the form says something else than the row now does."""
    found = []
    for name in form.fields:
        if not hasattr(current, name) or name == "version":
            continue
        theirs, mine = getattr(current, name), form.cleaned_data.get(name)
        if str(theirs or "") != str(mine or ""):
            found.append(Difference(str(form.fields[name].label), render_value(theirs), render_value(mine)))
    return found


def render_value(value: Any) -> str:
    """A value as the comparison shows it."""
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return str(value) if value not in (None, "") else _("nothing")


def renew_version(form: forms.BaseForm, version: int) -> None:
    """Lets the next save of this form be on top of the version that is there now."""
    data = QueryDict("", mutable=True)
    data.update(form.data)
    data["version"] = str(version)
    form.data = data
