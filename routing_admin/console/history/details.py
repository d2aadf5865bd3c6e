"""An audit event's details as the audit log shows them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from capabilities.core.providers.redaction import redact
from capabilities.labels import KINDS, ROLES
from capabilities.quantities import size_text
from capabilities.sentences import join_words
from routing_admin.console.base.tags.ui import exact
from routing_admin.core.configuration.diff import round_floats

FIELD_NAMES: Mapping[str, str | Promise] = {
    "after": pgettext_lazy("audit", "After"),
    "before": pgettext_lazy("audit", "Before"),
    "by": gettext_lazy("Successor"),
    "capability": gettext_lazy("Capability"),
    "count": pgettext_lazy("audit", "Number"),
    "expires": gettext_lazy("Expires"),
    "filename": gettext_lazy("File name"),
    "folder": gettext_lazy("Folder"),
    "from": pgettext_lazy("audit", "From"),
    "ids": pgettext_lazy("audit", "Files"),
    "key": gettext_lazy("Key"),
    "kind": gettext_lazy("Kind"),
    "link": gettext_lazy("Link"),
    "mimeType": gettext_lazy("Type"),
    "model": gettext_lazy("Model"),
    "name": gettext_lazy("Name"),
    "on": pgettext_lazy("audit", "On"),
    "provider": gettext_lazy("Provider"),
    "providers": gettext_lazy("Providers"),
    "restores": gettext_lazy("Revision"),
    "role": gettext_lazy("Role"),
    "scopes": gettext_lazy("Scopes"),
    "seconds": pgettext_lazy("audit", "Seconds"),
    "services": gettext_lazy("Model services"),
    "sessions": pgettext_lazy("audit", "Sessions"),
    "size": gettext_lazy("Size"),
    "to": pgettext_lazy("audit", "To"),
    "token": gettext_lazy("Token"),
    "tokens": pgettext_lazy("audit", "Tokens"),
    "until": gettext_lazy("Until"),
    "variable": gettext_lazy("Variable"),
}
"""Maps names of details to labels. A detail without a label is shown under its own name."""

VALUE_NAMES: Mapping[str, Mapping[str, str | Promise]] = {"kind": KINDS, "role": ROLES, "from": ROLES, "to": ROLES}
PUBLIC = re.compile(r"(?:ra|rap|rat)_[0-9a-z]{8}")
"""Pattern for the public part of a key, link or token, which pages may show."""
ISO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d[\d:.]*[+-]\d\d:\d\d")


def list_details(details: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the label and text of each nonempty detail. Text that looks like a secret is masked."""
    for name, value in details.items():
        if text := _mask(name, _format_value(name, value)):
            yield str(FIELD_NAMES.get(name, name)), text


def _mask(name: str, text: str) -> str:
    # Redact name and value together, because the name may reveal that the value is a password.
    return text if PUBLIC.fullmatch(text) else redact(f"{name}: {text}").partition(": ")[2]


def _format_value(name: str, value: Any) -> str:
    if isinstance(value, list):
        return join_words(_format_value(name, item) for item in value)
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if value is None:
        return "–"
    if name == "size" and isinstance(value, int):
        return size_text(value)
    if not isinstance(value, str):
        return json.dumps(round_floats(value), ensure_ascii=False)
    if ISO_TIME.fullmatch(value):
        with suppress(ValueError):  # The text may look like a date that does not exist, such as February 30.
            return exact(datetime.fromisoformat(value))
    return str(VALUE_NAMES.get(name, {}).get(value, value))
