"""Names of configuration fields in the user's language, which pages show instead of the fields' paths."""

from __future__ import annotations

import re
from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from capabilities.core.services.agent_limits import MODELS
from capabilities.core.translatable import insert_facts
from capabilities.labels import CONTENTS, capability_label
from routing_admin.console.base.form_fields import LIMITS, TIMEOUTS

FIELDS: Mapping[str, str | Promise] = {
    "name": gettext_lazy("name"),
    "display_name": gettext_lazy("display name"),
    "description": gettext_lazy("description"),
    "enabled": gettext_lazy("enabled"),
    "protocol": gettext_lazy("protocol"),
    "endpoint": gettext_lazy("base URL"),
    "base_url": gettext_lazy("base URL"),
    "default_model": gettext_lazy("default model"),
    "key": gettext_lazy("key"),
    "key_name": gettext_lazy("name of the key"),
    "key_enabled": gettext_lazy("use of the key"),
    "more_keys": gettext_lazy("further keys"),
    "keys": gettext_lazy("key"),
    "env_name": gettext_lazy("name in environment variables"),
    "quirks": gettext_lazy("compatibility options"),
    "timeouts": gettext_lazy("timeouts"),
    "proxy": gettext_lazy("outgoing proxy"),
    "vendor_tools": gettext_lazy("the vendor's own tools"),
    "in_routing_file": gettext_lazy("entry in llm-routing.json"),
    "provider": gettext_lazy("provider"),
    "model": gettext_lazy("model name"),
    "capabilities": gettext_lazy("capabilities"),
    "capabilities.input": gettext_lazy("input"),
    "capabilities.output": gettext_lazy("output"),
    "capability_tags": gettext_lazy("tags"),
    "limits": gettext_lazy("limits"),
    "price": gettext_lazy("price"),
    "content": gettext_lazy("content policy"),
    "content_policy": gettext_lazy("content policy"),
    "content_text": gettext_lazy("text of a file"),
    "content_html": gettext_lazy("web pages"),
    "extra_body": gettext_lazy("additional request fields"),
    "routed": gettext_lazy("use by routes"),
    "candidates": gettext_lazy("fallback chain"),
    "temperature": gettext_lazy("temperature"),
    "max_tokens": gettext_lazy("max tokens"),
    "on_error": gettext_lazy("error policy"),
    "retries": gettext_lazy("retries"),
    "deadline": gettext_lazy("total deadline"),
    "first_content": gettext_lazy("first content"),
    "on_drop": gettext_lazy("what may be left out"),
    "on_overflow": gettext_lazy("what happens to a request too long for a model"),
    "keep_alive_seconds": gettext_lazy("seconds until keep-alive comments"),
    "target": gettext_lazy("target"),
    "service_id": gettext_lazy("model service"),
    "task_type": gettext_lazy("task route"),
    "directive": gettext_lazy("directive"),
    "allow_n": gettext_lazy("several answers (n)"),
    "rate": gettext_lazy("exchange rate"),
    "default_language": gettext_lazy("default language"),
    "catalogue": gettext_lazy("edition of the catalogue"),
}
"""Names of fields, by field or path. A field without a name here is split into words."""

FIELD_LABELS: Mapping[str, str | Promise] = {
    **{f"limits.{meter.value}": label for meter, (label, _hint) in LIMITS.items()},
    f"limits.{MODELS}": gettext_lazy("Allowed routes and services"),
    **{f"timeouts.{name}": label for name, label in TIMEOUTS},
}
"""Maps paths to the labels that forms use for their last parts. A part without a label is split into words."""

UNKNOWN = frozenset({"extra", "extra_routing", "extra_services"})
"""Fields that store, under their original names, the parts of imported files that this version does not know."""

_STEP = re.compile(r'\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]|([^.\[\]]+)')
_WORD_START = re.compile(r"(?<=[a-z])(?=[A-Z])")


def field_name(path: str) -> str:
    """Return a field's name in the user's language: "input" for `capabilities.input`, "region" for `extra.region`."""
    head, *rest = _split(path)
    if head == "sources" and rest:
        return _source_name(rest[0])
    if head in UNKNOWN and rest:
        return " ".join(_humanize(step) for step in rest)
    # Use the name of the whole path if there is one, as for `capabilities.input`. Otherwise, use the name of the first
    # part, with the others in brackets.
    if path in FIELDS or not rest:
        return str(FIELDS.get(path) or _humanize(path))
    label = str(FIELD_LABELS.get(path, ""))
    part = label[:1].lower() + label[1:] if label else " ".join(_humanize(step) for step in rest)
    names = {"field": FIELDS.get(head) or _humanize(head), "part": part}
    return insert_facts(_("%(field)s (%(part)s)"), names)


def _source_name(cell: str) -> str:
    side, _colon, word = cell.partition(":")
    text = _("source of reading %(kinds)s") if side == "input" else _("source of writing %(kinds)s")
    return insert_facts(text, {"kinds": CONTENTS.get(word, capability_label(word))})


def _split(path: str) -> list[str]:
    return [match[match.lastindex or 0] for match in _STEP.finditer(path)] or [path]


def _humanize(step: str) -> str:
    # Keys of mappings, such as "gpt-4o", are data. Only field names (`maxBytes`, `max_bytes`) are split into words.
    if not step.isidentifier():
        return step
    return _WORD_START.sub(" ", step).replace("_", " ").lower()
