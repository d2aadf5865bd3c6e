"""Content policies as choices in forms."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from capabilities.core.delivery.reader import POLICY_WORDS

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
"""Maps the word for a policy in files and in the API to its label."""


def policy_choices(inherited: str | Promise = "") -> list[tuple[str, str | Promise]]:
    choices: list[tuple[str, str | Promise]] = [(word, LABELS[word]) for word in POLICY_WORDS]
    return [("", inherited), *choices] if inherited else choices


def policy_word(content: Any) -> str:
    """Return the policy in the `content` of a route or a service, or an empty string if it has none."""
    word = str(content.get("policy") or "") if isinstance(content, Mapping) else ""
    # A policy may join several words with `+`, in any order and with spaces.
    parts = frozenset(word.replace(" ", "").split("+"))
    return next((policy for policy in POLICY_WORDS if frozenset(policy.split("+")) == parts), "")
