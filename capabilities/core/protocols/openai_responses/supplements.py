"""What a response holds beside words: images as items of their own, and what its words rest on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capabilities.core.protocols import answer_fields
from capabilities.core.protocols.answer_media import media_of_base64
from capabilities.core.protocols.fields import filled
from capabilities.core.wire import Annotation, Media

IMAGE = "image_generation_call"
DEFAULT_FORMAT = "png"
"""The form of an image that does not say its own (OpenAI: image generation tool)."""


def media_of(item: Mapping[str, Any]) -> tuple[Media, ...]:
    """The image of an item that made one; none for any other."""
    if item.get("type") != IMAGE:
        return ()
    form = filled(item.get("output_format")) or DEFAULT_FORMAT
    image = media_of_base64(f"image/{'svg+xml' if form == 'svg' else form}", item.get("result"), f"image/{form}")
    return (image,) if image is not None else ()


def annotation_of(value: Any) -> Annotation | None:
    """Where words come from, as chat completions write it: what is flat here stands in an object of its kind there."""
    kind = filled(value.get("type")) if isinstance(value, dict) else None
    if kind is None:
        return None
    flat = {name: each for name, each in value.items() if name != "type"}
    return answer_fields.annotation_of({"type": kind, kind: flat})


def annotations_of(part: Mapping[str, Any]) -> tuple[Annotation, ...]:
    """What the words of a part rest on."""
    listed = part.get("annotations")
    read = (annotation_of(each) for each in (listed if isinstance(listed, list) else []))
    return tuple(each for each in read if each is not None)
