"""Placeholder files of a given kind and size, without real content."""

from __future__ import annotations

import pytest

from capabilities.core.message import ConvertTo
from capabilities.core.vocabulary import Kind
from routing_admin.dispatch.simulation import TYPES, build_placeholder


@pytest.mark.parametrize("kind", list(Kind))
def test_placeholder_has_the_stated_size(kind: Kind) -> None:
    part = build_placeholder(kind, 200_000)
    assert (part.kind, part.mime_type, part.size) == (kind, TYPES[kind][0], 200_000)
    assert part.content is not None
    assert sum(map(len, part.content.blob().blocks())) == part.content.blob().size == 200_000


def test_only_text_and_document_placeholders_have_text() -> None:
    lengths = {}
    for kind in Kind:
        content = build_placeholder(kind, 2_000).content
        text = content.text() if content else None
        lengths[kind] = len(text.text) if text else None
    assert lengths == {
        Kind.TEXT: 2_000,
        Kind.DOCUMENT: 100,
        Kind.IMAGE: None,
        Kind.AUDIO: None,
        Kind.VIDEO: None,
        Kind.OTHER: None,
    }


def test_image_placeholder_is_converted_to_an_accepted_type() -> None:
    """Image placeholders are converted to the first accepted type within the size limit. Audio is not converted."""
    target = ConvertTo(("image/jpeg", "image/png"), max_bytes=5_000)
    content = build_placeholder(Kind.IMAGE, 9_000).content
    converted = content.convert(target) if content else None
    assert converted is not None
    assert (converted.mime_type, converted.blob.size) == ("image/jpeg", 5_000)
    sound = build_placeholder(Kind.AUDIO, 9_000).content
    assert sound is not None
    assert sound.convert(target) is None
