"""Limits as a script sends them, put into the pages' forms, and what these refuse at the places of the JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from capabilities.core.problems import Problem
from capabilities.core.services.agent_limits import CURRENCY, MODELS, UNPRICED, UNPRICED_PRICE
from capabilities.errors import InvalidError
from routing_admin.console.base.limit_forms import LIMITS

NAMES = frozenset({MODELS, CURRENCY, UNPRICED, UNPRICED_PRICE, *(meter.value for meter in LIMITS)})


def limit_fields(limits: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a form. Raises `InvalidError` for a limit there is not, or models that are no list of names."""
    models = limits.get(MODELS) or []
    unknown = [name for name in limits if name not in NAMES]
    if unknown:
        message = f"There is no such limit. Limits are: {', '.join(sorted(NAMES))}."
        raise InvalidError([Problem(f"limits.{unknown[0]}", message, "enum")])
    if not isinstance(models, list) or not all(isinstance(name, str) for name in models):
        raise InvalidError([Problem(f"limits.{MODELS}", "A list of names is expected.", "type")])
    return {MODELS: "\n".join(models), **{name: value for name, value in limits.items() if name != MODELS}}


def problems_of(form: forms.BaseForm, fields: Mapping[str, str]) -> list[Problem]:
    """What a form refuses; `fields` says where those stand that are called otherwise in the JSON."""
    return [
        Problem(fields.get(name, f"limits.{name}" if name in NAMES else name), str(error), "range")
        for name, found in form.errors.items()
        for error in found
    ]
