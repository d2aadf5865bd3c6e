"""Files that a model generates become the calling agent's artifacts."""

from __future__ import annotations

import base64

import pytest

from artifacts.models import Artifact
from capabilities.actors import Actor
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Media
from routing_admin.dispatch.generated_media import join_sounds, store_generated
from tests.gateway.plane import PNG

pytestmark = [pytest.mark.both_stores, pytest.mark.django_db(databases=["default", "logs"])]

ACTOR = Actor("agent", "text-agent")
IMAGE = Media(Kind.IMAGE, "image/png", base64.b64encode(PNG).decode())


def test_generated_image_is_stored_for_the_calling_agent() -> None:
    stored = store_generated(ACTOR, IMAGE, "echo/draws")
    row = Artifact.objects.get()
    assert (stored.artifact_id, stored.size) == (row.pk, len(PNG))
    assert (row.owner, row.mime_type, row.metadata["generatedBy"]) == ("text-agent", "image/png", "echo/draws")


@pytest.mark.parametrize(
    "media", [Media(Kind.VIDEO, "video/mp4", url="https://example.org/v"), Media(Kind.IMAGE, "", "?")]
)
def test_generated_media_without_readable_data_is_not_stored(media: Media) -> None:
    """Media that is only a URL or has invalid base64 is returned unchanged."""
    assert store_generated(ACTOR, media, "echo/draws") is media
    assert not Artifact.objects.exists()


def test_audio_in_one_chunk_is_not_encoded_again() -> None:
    media = Media(Kind.AUDIO, "audio/wav", "QQ==")
    (joined,) = join_sounds([media])
    assert joined is media
