"""What OpenAI and its like answer beside words: images (OpenRouter), sounds (OpenAI), citations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from capabilities.core.protocols.answer_fields import annotations_of
from capabilities.core.protocols.answer_media import ANY_IMAGE, RAW_SOUND, media_of_base64, media_of_url
from capabilities.core.protocols.fields import count, filled
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Media, Supplement

PLACES = frozenset({"images", "audio", "annotations"})
"""Where something stands beside the words; a content that is a list may hold it, too."""


def supplement_of(message: Mapping[str, Any]) -> Supplement:
    """What stands beside the words of a message or of a delta."""
    images, audio, content = message.get("images"), message.get("audio"), message.get("content")
    media: tuple[Media, ...] = ()
    if images or audio or isinstance(content, list):
        media = (*_images(images), *_images(content), *_sounds(audio))
    return Supplement(media, annotations_of(message.get("annotations")))


def _images(value: Any) -> Iterator[Media]:
    """The images of a list of parts; one without a type of its own is a PNG."""
    for part in value if isinstance(value, list) else []:
        image = part.get("image_url") if isinstance(part, dict) else None
        found = media_of_url(image.get("url") if isinstance(image, dict) else image, ANY_IMAGE)
        if found is not None:
            yield found


def _sounds(value: Any) -> Iterator[Media]:
    """A sound, or a piece of one, which may hold nothing but words."""
    if not isinstance(value, dict):
        return
    sound = media_of_base64(None, value.get("data"), RAW_SOUND) or Media(Kind.AUDIO, RAW_SOUND)
    words, expires_at = filled(value.get("transcript")), count(value, "expires_at")
    yield replace(sound, id=filled(value.get("id")), transcript=words or "", expires_at=expires_at)
