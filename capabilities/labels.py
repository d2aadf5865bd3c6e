"""Translated labels and icons of capabilities, kinds of content, call outcomes and health states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_noop, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from capabilities.core.vocabulary import Kind

TYPE_ICONS: Mapping[str, str] = {
    "text": "text",
    "vision": "vision",
    "image": "image",
    "audio": "audio",
    "video": "video",
    "file": "doc",
    "document": "doc",
    "other": "doc",
    "structured_output": "json",
    "tool_calling": "tool",
}
"""Icons of capabilities and kinds of content. All others get the icon `probe`."""

CAPABILITY_LABELS: Mapping[str, str | Promise] = {
    "text": pgettext_lazy("capability", "text"),
    "vision": pgettext_lazy("capability", "vision"),
    "audio": pgettext_lazy("capability", "audio"),
    "video": pgettext_lazy("capability", "video"),
    "file": pgettext_lazy("capability", "file"),
    "structured_output": pgettext_lazy("capability", "structured output"),
    "tool_calling": pgettext_lazy("capability", "tool calling"),
}
"""Labels of standard capabilities. A custom capability is shown by its id."""

OUTPUT_LABELS: Mapping[str, str | Promise] = {
    "text": pgettext_lazy("output capability", "text"),
    "vision": pgettext_lazy("output capability", "images"),
    "audio": pgettext_lazy("output capability", "audio"),
    "video": pgettext_lazy("output capability", "video"),
    "file": pgettext_lazy("output capability", "files"),
}
"""Labels of the output capabilities that need one of their own. All others share the input capability's label."""

PRICE_LABELS: Mapping[str, Any] = {
    "input": pgettext_lazy("price", "Input"),
    "output": pgettext_lazy("price", "Output"),
    "cacheRead": _("Cache read"),
    "cacheWrite": _("Cache write"),
    "cacheWrite1h": _("Cache write (1 hour)"),
    "inputAudio": _("Audio input"),
    "inputImage": _("Image input"),
    "outputAudio": _("Audio output"),
    "outputImage": _("Image output"),
    "reasoning": _("Reasoning"),
}
"""Labels of the amounts in a price, most common first."""

KINDS: Mapping[str, str | Promise] = {
    Kind.TEXT: pgettext_lazy("kind", "Text"),
    Kind.IMAGE: pgettext_lazy("kind", "Image"),
    Kind.AUDIO: pgettext_lazy("kind", "Audio"),
    Kind.VIDEO: pgettext_lazy("kind", "Video"),
    Kind.DOCUMENT: pgettext_lazy("kind", "Document"),
    Kind.OTHER: pgettext_lazy("kind", "Other"),
}

CONTENTS: Mapping[str, str | Promise] = {
    "text": pgettext_lazy("content", "text"),
    "vision": _("images"),
    "audio": _("audio"),
    "video": _("videos"),
    "file": _("files"),
}
"""Maps each capability to a noun for what a model with this capability can read, for use in a sentence."""

ROLES: Mapping[str, str | Promise] = {
    "administrator": _("Administrator"),
    "editor": _("Editor"),
    "viewer": _("Viewer"),
}

ACTORS: Mapping[str, str | Promise] = {"nightly probe": _("nightly probe")}
"""Labels of actors that are not users."""

BADGES: Mapping[str, tuple[str, str, str | Promise]] = {
    "ok": ("ok", "check", _("Ready")),
    "slow": ("warn", "clock", pgettext_lazy("health", "Slow")),
    "down": ("bad", "stop", _("Unreachable")),
    "failing": ("bad", "stop", pgettext_lazy("health", "Failing")),
    "cooling": ("warn", "pause", _("Cooling")),
    "no_key": ("warn", "key", _("No key")),
    "rejected": ("bad", "key", _("Key rejected")),
    "not_allowed": ("bad", "lock", _("Address not allowed")),
    "native": ("ok", "check", pgettext_lazy("delivery", "As it is")),
    "converted": ("info", "convert", pgettext_lazy("delivery", "Converted")),
    "cut": ("warn", "warn", pgettext_lazy("delivery", "Not whole")),
    "described": ("warn", "say", pgettext_lazy("delivery", "Described only")),
    "refused": ("bad", "x", pgettext_lazy("delivery", "Refused")),
    "omitted": ("bad", "x", pgettext_lazy("delivery", "Not sent")),
    "primary": ("acc", "check", _("Primary")),
    "enabled": ("ok", "check", _("Enabled")),
    "disabled": ("", "pause", _("Disabled")),
    "declared": ("", "user", _("Declared")),
    "probed": ("", "probe", _("Probed")),
    "catalogue": ("", "book", _("From the catalogue")),
    "contested": ("warn", "warn", _("Contested")),
    "stored": ("ok", "check", _("Stored")),
    "error": ("bad", "stop", _("Error")),
    "warning": ("warn", "warn", _("Warning")),
    "call_answered": ("ok", "check", _("Answered")),
    "call_fallback": ("warn", "convert", _("Answered by fallback")),
    "call_refused": ("", "x", pgettext_lazy("call", "Refused")),
    "call_failed": ("bad", "stop", _("Failed")),
    "call_cancelled": ("", "x", _("Cancelled")),
    "skipped": ("", "right", _("Skipped")),
    "runtime": ("", "clock", _("Made at run time")),
    "working": ("ok", "check", _("Working")),
    "unused": ("", "info", _("Never used")),
    "ending": ("warn", "clock", _("Expires soon")),
    "revoked": ("bad", "x", _("Revoked")),
    "expired": ("warn", "clock", _("Expired")),
}
"""Tone, icon and label of each status. Pages always show icon and label, so that colour alone never indicates a status.
`ok` to `not_allowed` are states of a provider or its key, `call_…` are outcomes of a call, and `working` to `expired`
are states of agents' keys, tokens and links (`Validity`)."""

NOTE_ICONS: Mapping[str, str] = {"ok": "check", "info": "info", "warn": "warn", "bad": "stop", "": "info"}
"""Maps the tones of notes on pages to icons."""

SOURCES = (
    gettext_noop("patterns of model names, kept by hand from the vendors' model pages"),
    gettext_noop("vendors' announcements, kept by hand"),
)
"""Names of sources in our own catalogue data, repeated here so that `makemessages` finds them."""


def capability_label(name: str, side: str = "input") -> str:
    own = OUTPUT_LABELS.get(name) if side == "output" else None
    return str(own or CAPABILITY_LABELS.get(name, name))


def content_label(name: str) -> str:
    """Return a noun for what models with this capability can read, for use in a sentence: "images" for vision."""
    return str(CONTENTS.get(name) or capability_label(name))


def actor_label(name: str) -> str:
    """Return an actor's name. The names of the nightly probe and of users' tokens are translated."""
    owner, is_token, token = name.partition("'s token ")
    if is_token:
        return gettext("%(owner)s's token %(name)s") % {"owner": owner, "name": token}
    return str(ACTORS.get(name, name))


def role_label(role: str) -> str:
    return str(ROLES.get(role, role))


def label_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return a reason's facts for display, with labels instead of capability ids and kinds."""
    labelled = dict(facts)
    if "capability" in labelled:
        capability = str(labelled["capability"])
        label = capability_label(capability)
        values = {"label": label, "id": capability}
        labelled["capability"] = capability if label == capability else gettext("%(label)s (%(id)s)") % values
    if "kind" in labelled:
        labelled["kind"] = str(KINDS.get(str(labelled["kind"]), labelled["kind"]))
    return labelled
