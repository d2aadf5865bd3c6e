"""Content policies as forms offer them."""

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
"""Labels by the word that files and the API use."""


def policy_choices(inherited: str | Promise = "") -> list[tuple[str, str | Promise]]:
    choices: list[tuple[str, str | Promise]] = [(word, LABELS[word]) for word in POLICY_WORDS]
    return [("", inherited), *choices] if inherited else choices


def policy_word(content: Any) -> str:
    """Return the policy of a route's or a service's `content`; empty if it has none."""
    word = str(content.get("policy") or "") if isinstance(content, Mapping) else ""
    # Words may be given in any order and with spaces.
    parts = frozenset(word.replace(" ", "").split("+"))
    return next((policy for policy in POLICY_WORDS if frozenset(policy.split("+")) == parts), "")
