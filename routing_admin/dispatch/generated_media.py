"""What a model made, stored as artifacts of whoever asked; where that fails, the answer goes out all the same."""

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
"""Stores one thing that the candidate of that name made; gives it with the artifact, or as it was."""


def store_generated(actor: Actor, media: Media, maker: str) -> Media:
    """The same with its artifact and size; without an artifact where it is elsewhere or cannot be stored."""
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
    except Exception as problem:  # whatever the store trips over: the answer is paid for, and it is whole
        log.warning("what %s made could not be stored: %s", maker, type(problem).__name__)
        return media
    return replace(media, artifact_id=row.pk, size=len(data))


def without_data(media: Iterable[Media]) -> tuple[Media, ...]:
    """What is known of them, with their sizes and without their bytes: what the log may keep."""
    return tuple(replace(each, data="", transcript="", size=_size(each)) for each in media)


def _size(media: Media) -> int | None:
    """Bytes, as stored or as so much base64 holds."""
    return media.size if media.size is not None else len(media.data) * 3 // 4 or None


def join_sounds(media: Iterable[Media]) -> tuple[Media, ...]:
    """The same with the pieces of a sound put together, those of one type after one another."""
    runs = [[*some] for _, some in groupby(media, lambda each: each.mime_type if each.kind is Kind.AUDIO else None)]
    return tuple(each for run in runs for each in ([_join(run)] if run[0].kind is Kind.AUDIO else run))


def _join(pieces: Sequence[Media]) -> Media:
    """One sound of its pieces, each of which is base64 of its own."""
    if len(pieces) == 1:
        return pieces[0]
    try:
        data = pybase64.b64encode(b"".join(pybase64.b64decode(each.data, validate=True) for each in pieces)).decode()
    except ValueError:
        data = "".join(each.data for each in pieces)
    return replace(
        pieces[0],
        data=data,
        id=next((each.id for each in pieces if each.id), None),
        transcript="".join(each.transcript for each in pieces),
        expires_at=next((each.expires_at for each in pieces if each.expires_at), None),
    )


def _filename(media: Media) -> str:
    """A name by what it is, with the usual extension of its type."""
    extension = EXTENSIONS_OF_MIME.get(media.mime_type.partition(";")[0].lower(), "").partition(" ")[0]
    return f"{media.kind.value}.{extension}" if extension else media.kind.value
