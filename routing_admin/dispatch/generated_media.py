"""Store media that models generate as artifacts of the agent or user who asked."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby

import pybase64

from artifacts.core.detection.extensions import EXTENSIONS_OF_MIME
from artifacts.library import store_blocks
from capabilities.acts import Actor
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Media
from capabilities.json_bodies import upload_limit

log = logging.getLogger(__name__)

KeepMedia = Callable[[Media, str], Media]
"""Called with generated media and the candidate's name; returns the media with an artifact id, or unchanged."""


def store_generated(actor: Actor, media: Media, maker: str) -> Media:
    """Return the media with its artifact id and size, or unchanged if it cannot be stored."""
    if not media.data:
        return media
    try:
        data = pybase64.b64decode(media.data, validate=True)
        row = store_blocks(
            actor,
            (data,),
            once=True,
            max_bytes=upload_limit(),
            owner=actor.name if actor.kind == "agent" else "",
            uploaded_by="" if actor.kind == "agent" else actor.name,
            filename=_filename(media),
            declared=media.mime_type,
            metadata={"generatedBy": maker},
        )
    # Whatever the store raises, the answer is complete and already paid for, so it is delivered.
    except Exception as error:
        log.warning("what %s made could not be stored: %s", maker, type(error).__name__)
        return media
    return replace(media, artifact_id=row.pk, size=len(data))


def without_data(media: Iterable[Media]) -> tuple[Media, ...]:
    return tuple(replace(item, data="", transcript="", size=_size(item)) for item in media)


def _size(media: Media) -> int | None:
    # Base64 encodes three bytes in four characters.
    return media.size if media.size is not None else len(media.data) * 3 // 4 or None


def join_sounds(media: Iterable[Media]) -> tuple[Media, ...]:
    """Return the media with consecutive audio pieces of one type joined."""
    runs = [[*group] for _, group in groupby(media, lambda item: item.mime_type if item.kind is Kind.AUDIO else None)]
    return tuple(item for run in runs for item in ([_join(run)] if run[0].kind is Kind.AUDIO else run))


def _join(pieces: Sequence[Media]) -> Media:
    if len(pieces) == 1:
        return pieces[0]
    try:
        # Each piece is base64 with padding of its own, so decode the pieces before joining them.
        data = pybase64.b64encode(b"".join(pybase64.b64decode(piece.data, validate=True) for piece in pieces)).decode()
    except ValueError:
        data = "".join(piece.data for piece in pieces)
    return replace(
        pieces[0],
        data=data,
        id=next((piece.id for piece in pieces if piece.id), None),
        transcript="".join(piece.transcript for piece in pieces),
        expires_at=next((piece.expires_at for piece in pieces if piece.expires_at), None),
    )


def _filename(media: Media) -> str:
    extension = EXTENSIONS_OF_MIME.get(media.mime_type.partition(";")[0].lower(), "").partition(" ")[0]
    return f"{media.kind.value}.{extension}" if extension else media.kind.value
