"""Summaries of forms: the changed fields for the save bar, and a single list of all errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

CHANGES = "changes"
"""If the form field `act` has this value, the form is not saved; the response is a list of the changed fields."""


@dataclass(frozen=True, slots=True)
class FormProblem:
    """A form error with its field's id and label, which are empty if the error concerns the whole form."""

    target: str
    label: str
    error: str


def list_problems(*all_forms: forms.BaseForm) -> list[FormProblem]:
    return [problem for form in all_forms for problem in _list_form_problems(form)]


def _list_form_problems(form: forms.BaseForm) -> Iterator[FormProblem]:
    yield from (FormProblem("", "", str(error)) for error in form.non_field_errors())
    for bound in form:
        yield from (FormProblem(bound.id_for_label, field_label(bound), str(error)) for error in bound.errors)


def field_label(bound: forms.BoundField) -> str:
    """Return the field's `full_label`, which is clear without the heading above the field, else its label."""
    return str(getattr(bound.field, "full_label", bound.label))


def list_changes(*all_forms: forms.BaseForm) -> list[str]:
    """Return the labels of visible fields that differ from their initial values."""
    return [
        field_label(bound)
        for form in all_forms
        for bound in form
        if form.is_bound and not bound.is_hidden and _text(bound.value()) != _text(_initial_value(bound))
    ]


def _initial_value(bound: forms.BoundField) -> Any:
    return bound.field.prepare_value(bound.initial)


def _text(value: Any) -> str:
    # Values are compared as text, because stored and posted values differ in type: 5 is posted as "5", True as "on".
    return "" if value in (None, False) else str(value).replace("\r\n", "\n").strip()


def is_asking_for_changes(request: HttpRequest) -> bool:
    return request.POST.get("act") == CHANGES


def describe_saving(*all_forms: forms.BaseForm) -> dict[str, Any]:
    """Return the template context of components/savebar.html for these forms."""
    return {"changes": list_changes(*all_forms), "attention": list_problems(*all_forms)}


def render_changes(request: HttpRequest, saving: dict[str, Any]) -> HttpResponse:
    return render(request, "components/savebar.html#changes", saving)
