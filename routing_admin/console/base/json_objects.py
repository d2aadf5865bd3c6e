"""A field for a JSON object as an administrator types it."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.utils.translation import gettext as _


def object_text(value: Any) -> str:
    """An object on one line; nothing for an empty one."""
    return json.dumps(value, ensure_ascii=False) if value else ""


def _refuse(word: str) -> None:
    raise ValueError(word)  # NaN and Infinity are no JSON, and no database has them


class JsonObjectField(forms.CharField):
    """An object, empty where nothing is typed."""

    def prepare_value(self, value: Any) -> Any:
        """The text of a stored object; what was typed as it was."""
        return value if isinstance(value, str) else object_text(value)

    def to_python(self, value: Any) -> Any:
        """The object. Raises `ValidationError` for what is none."""
        text = super().to_python(value)
        if not text:
            return {}
        try:
            found = json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError) as problem:
            raise forms.ValidationError(_("This is not JSON: %(problem)s") % {"problem": problem}) from None
        if not isinstance(found, dict):
            raise forms.ValidationError(_("Enter a JSON object."))
        return found
