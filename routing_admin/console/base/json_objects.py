"""A form field for a JSON object."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.utils.translation import gettext as _


def object_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if value else ""


def _refuse(word: str) -> None:
    raise ValueError(word)  # NaN and Infinity are not JSON, and databases reject them


class JsonObjectField(forms.CharField):
    def prepare_value(self, value: Any) -> Any:
        return value if isinstance(value, str) else object_text(value)

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        if not text:
            return {}
        try:
            parsed = json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError) as problem:
            raise forms.ValidationError(_("This is not JSON: %(problem)s") % {"problem": problem}) from None
        if not isinstance(parsed, dict):
            raise forms.ValidationError(_("Enter a JSON object."))
        return parsed
