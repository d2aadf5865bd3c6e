"""What a model made, as OpenAI's clients read it: images as OpenRouter writes them, a sound as OpenAI does.

Each has `artifact` beside its data, the reference under which its caller can have it again, where it could be
stored. What is neither image nor sound stands under `files`, as a file of a request does.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

from artifacts.core.artifact import REF_PREFIX
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Media
from routing_admin.platform.server.process_mark import new_id


def whole_media_json(media: Sequence[Media]) -> dict[str, Any]:
    """The fields of a message that holds these; of several sounds the first is the message's, as it can have one."""
    sounds = [each for each in media if each.kind is Kind.AUDIO]
    fields = media_json([each for each in media if each not in sounds[:1]])
    return fields | ({"audio": _sound_json(sounds[0])} if sounds else {})


def media_json(media: Iterable[Media]) -> dict[str, list[dict[str, Any]]]:
    """The fields for images and files, the images numbered."""
    images: list[dict[str, Any]] = []
    files: list[dict[str, Any]] = []
    for each in media:
        url = each.url or f"data:{each.mime_type};base64,{each.data}"
        if each.kind is Kind.IMAGE:
            place = {"index": len(images)}
            images.append({"type": "image_url", "image_url": {"url": url}, **place, **_reference(each)})
        else:
            files.append({"type": "file", "file": {"file_data": url}, **_reference(each)})
    return {name: found for name, found in (("images", images), ("files", files)) if found}


def _sound_json(sound: Media) -> dict[str, Any]:
    """All four fields, which OpenAI's clients ask for; one that its maker does not keep is forgotten at once."""
    return {
        "id": sound.id or new_id("audio_"),
        "data": sound.data,
        "transcript": sound.transcript,
        "expires_at": sound.expires_at or int(time.time()),
        **_reference(sound),
    }


def sound_piece_json(sound: Media, reference: bool) -> dict[str, Any]:
    """What a piece of a sound brings, or where the whole of it can be had."""
    if reference:
        return {**({"id": sound.id} if sound.id else {}), **_reference(sound)}
    known = {"id": sound.id, "data": sound.data, "transcript": sound.transcript, "expires_at": sound.expires_at}
    return {name: value for name, value in known.items() if value}


def _reference(media: Media) -> dict[str, str]:
    return {"artifact": f"{REF_PREFIX}{media.artifact_id}"} if media.artifact_id else {}
