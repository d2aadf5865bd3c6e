"""Determine a service's slots from its protocol, model and provider, and from the administrator's limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from capabilities.core.delivery import limits
from capabilities.core.delivery.slots import Slots, ToolMedia
from capabilities.core.delivery.slots_json import with_limits
from capabilities.core.providers.quirks import quirk
from capabilities.core.vocabulary import Kind

MESSAGE_SLOTS = with_limits(Slots(name="messages"), limits.MESSAGES)
GET_ARTIFACT_SLOTS = with_limits(Slots(name="get_artifact"), limits.GET_ARTIFACT)


def slots_for(
    protocol: str,
    template: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    quirks: Mapping[str, Any] | None = None,
    model: str = "",
) -> Slots:
    """Return a protocol's slots, adjusted for the model, the provider's template and the administrator's overrides.

    `template` is the name of a preset or host. An unknown name changes nothing. An unknown protocol has no slots.
    `quirks` are the effective compatibility options. Slots that they do not support are removed, even if the template
    or the administrator defines them.
    """
    slots = with_limits(_default_slots(protocol, template, model), overrides or {})
    # Apply compatibility options last, because an override cannot make the provider accept an unsupported message part.
    return slots if quirks is None else restrict_slots(slots, quirks)


@lru_cache(maxsize=1000)
def _default_slots(protocol: str, template: str | None, model: str) -> Slots:
    slots = with_limits(Slots(name=protocol), limits.PROTOCOLS.get(protocol, {}))
    # Apply the provider's template after the model's limits: Bedrock and Vertex serve the same Claude models with lower
    # limits.
    for pattern, model_limits in limits.MODELS.get(protocol, ()):
        slots = with_limits(slots, model_limits) if pattern.search(model.lower()) else slots
    return with_limits(slots, limits.TEMPLATES.get(template or "", {}))


def restrict_slots(slots: Slots, quirks: Mapping[str, Any]) -> Slots:
    """Remove the slots that a provider's compatibility options exclude, and add a video slot if they allow videos."""
    tool_media = ToolMedia(quirk(quirks, "tool_media", slots.name))
    # Only OpenAI's protocol has message parts that differ between providers.
    if slots.name != "openai":
        return replace(slots, tool_media=tool_media if "tool_media" in quirks else slots.tool_media)
    start = slots if slots.get(Kind.VIDEO) else with_limits(slots, limits.VIDEO_URL)
    in_tool_result = tool_media is ToolMedia.NATIVE
    by_kind = {
        kind: replace(slot, takes_url=slot.takes_url and _accepts_urls(kind, quirks), in_tool_result=in_tool_result)
        for kind, slot in start.by_kind.items()
        if _can_write(kind, quirks)
    }
    return replace(slots, by_kind=MappingProxyType(by_kind), tool_media=tool_media)


_PART: Mapping[Kind, str] = MappingProxyType(
    {Kind.VIDEO: "video_part", Kind.DOCUMENT: "file_part", Kind.OTHER: "file_part"}
)
"""Maps kinds of files to the compatibility option for the form of their message part. Other kinds have none."""


def _can_write(kind: Kind, quirks: Mapping[str, Any]) -> bool:
    return not quirk(quirks, "string_content_only") and (kind not in _PART or quirk(quirks, _PART[kind]) != "none")


def _accepts_urls(kind: Kind, quirks: Mapping[str, Any]) -> bool:
    if kind is Kind.IMAGE:
        return not quirk(quirks, "no_remote_image_urls")
    if kind is Kind.AUDIO:
        return bool(quirk(quirks, "input_audio_shape") == "audio_url")
    # A video part always contains a URL, which may be a data URL.
    return kind is Kind.VIDEO or bool(quirk(quirks, "file_urls"))
