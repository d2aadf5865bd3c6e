"""Form fields for content policies, which say how files are delivered to models."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from capabilities.core.delivery.reader import POLICY_WORDS
from capabilities.core.delivery.text_limit import find_problem
from capabilities.sentences import translate_sentence

LABELS: Mapping[str, Promise] = MappingProxyType(
    {
        "describe": _("describe what the model cannot read"),
        "extract": _("extract text from documents"),
        "convert": _("convert to a supported type"),
        "extract+convert": _("extract text, convert the rest"),
        "native_only": _("skip models that cannot read it"),
        "extract+convert+describer": _("extract text, convert, let a model describe the rest"),
        "extract+convert+describer+question": _("the same, and the describing model gets the question"),
    }
)
"""Maps each policy's name in files and the API to its label."""


HTML_LABELS: Mapping[str, Promise] = MappingProxyType(
    {"words": _("as words with headings and links"), "source": _("as source code")}
)
"""Labels of the forms in which a web page can be sent, by the form's name in files and the API."""


def policy_choices(inherited: str | Promise = "") -> list[tuple[str, str | Promise]]:
    choices: list[tuple[str, str | Promise]] = [(word, LABELS[word]) for word in POLICY_WORDS]
    return [("", inherited), *choices] if inherited else choices


def read_policy(content: Any) -> str:
    """Return the policy in the `content` of a route or a service, or an empty string if it has none."""
    word = str(content.get("policy") or "") if isinstance(content, Mapping) else ""
    # A stored policy may join several names with `+`, in any order and with spaces.
    parts = frozenset(word.replace(" ", "").split("+"))
    return next((policy for policy in POLICY_WORDS if frozenset(policy.split("+")) == parts), "")


class TextLimitField(forms.CharField):
    """A field for the maximum length of a file's text, in characters or as a share of the free context window."""

    def __init__(self, inherited: str | Promise) -> None:
        attrs = {"placeholder": inherited, "autocomplete": "off", "inputmode": "text"}
        label, help_text = _("Text of a file"), _("Characters, or a share of the model's free window: 200000 or 30%.")
        widget = forms.TextInput(attrs=attrs)
        super().__init__(label=label, help_text=help_text, required=False, max_length=20, widget=widget)

    def validate(self, value: str) -> None:
        super().validate(value)
        if value and (problem := find_problem(value)):
            raise forms.ValidationError(translate_sentence(problem))


class HtmlFormField(forms.ChoiceField):
    """A field that selects whether models get the text or the source of web pages."""

    def __init__(self, inherited: str | Promise = "") -> None:
        choices: list[tuple[str, str | Promise]] = [*HTML_LABELS.items()]
        super().__init__(
            label=_("Web pages (HTML)"), required=False, choices=[("", inherited), *choices] if inherited else choices
        )


def read_content_option(content: Any, name: str) -> str:
    """Return an option such as `text` from a route's or service's `content`, or an empty string if it is not set."""
    return str(content.get(name) or "") if isinstance(content, Mapping) else ""


def with_content(content: Mapping[str, Any], **words: str) -> dict[str, Any]:
    """Return `content` with these options replaced. Options with empty values are removed."""
    others = {name: value for name, value in content.items() if name not in words}
    return others | {name: word for name, word in words.items() if word}
