"""Every sample file from disk to three services: stored, detected, and handed out in the form each one can read."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path

import pytest
from samples import SAMPLES, Sample

from artifacts.core.artifact import StoredArtifact
from artifacts.core.delivery.content_router import ArtifactContentRouter
from artifacts.core.detection.encodings import decode_blocks
from artifacts.sniffer import detector
from artifacts.storage.files import FileStore
from capabilities.core.message import Blob, Converted, ConvertTo, Text
from capabilities.core.vocabulary import Capabilities, Kind

SERVICES = {
    "text-model": Capabilities(("text",)),
    "vision-model": Capabilities(("text", "vision")),
    "multimodal-model": Capabilities(("text", "vision", "audio", "video", "file")),
}
ROUTINGS = {
    Kind.TEXT: ("text", "text", "text"),
    Kind.IMAGE: ("text", "image_url", "image_url"),
    Kind.AUDIO: ("text", "text", "file"),
    Kind.VIDEO: ("text", "text", "file"),
    Kind.DOCUMENT: ("text", "text", "file"),
    Kind.OTHER: ("text", "text", "file"),
}
"""Kind → where it goes for the three services in their order (REQUIREMENTS, decision 1)."""


class ThreeServices:
    """The registry of the demo's services."""

    def get_capabilities(self, service_id: str) -> Capabilities | None:
        return SERVICES.get(service_id)


@dataclass(frozen=True)
class Kept:
    """Content in a file store."""

    store: FileStore
    sha256: str
    size: int
    encoding: str | None

    def blob(self) -> Blob:
        return Blob(self.size, lambda: self.store.open_blocks(self.sha256))

    def text(self) -> Text | None:
        if self.encoding is None:
            return None
        return Text("".join(decode_blocks(self.store.open_blocks(self.sha256), self.encoding)), self.encoding)

    def convert(self, target: ConvertTo) -> Converted | None:
        return None


def keep(store: FileStore, sample: Sample) -> StoredArtifact:
    """The sample as an artifact, as an upload makes it."""
    stored = store.put([sample.data])
    with store.reader(stored.sha256) as read_at:
        found = detector().detect(read_at(0, 65536), stored.size, None, sample.name, read_at=read_at)
    return StoredArtifact(
        id="sample1",
        mime_type=found.mime_type,
        kind=found.kind,
        is_binary=found.is_binary,
        size=stored.size,
        filename=sample.name,
        encoding=found.encoding,
        content=Kept(store, stored.sha256, stored.size, found.encoding),
    )


@pytest.mark.requirement("ABR-2.1", "ABR-2.2", "ABR-2.3", "ABR-3.1", "ABR-4.1", "ABR-5.1")
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_each_of_three_services_gets_a_sample_in_the_form_it_reads(sample: Sample, tmp_path: Path) -> None:
    """Its kind decides the slot; native data is the file's bytes, text its words, a description neither."""
    artifact, router = keep(FileStore(tmp_path), sample), ArtifactContentRouter(ThreeServices())
    encoded = base64.b64encode(sample.data).decode()
    for service, routing in zip(SERVICES, ROUTINGS[sample.kind], strict=True):
        result = router.route_content(artifact, service)
        assert (service, result.routing) == (service, routing)
        if routing == "image_url":
            assert result.image_url["image_url"]["url"] == f"data:{sample.mime};base64,{encoded}"
        elif routing == "file":
            assert result.file["file"] == {"filename": sample.name, "mimeType": sample.mime, "data": encoded}
        elif sample.kind is Kind.TEXT:
            assert result.content == sample.data.decode(sample.encoding)
        else:
            assert sample.name in result.content
            assert encoded[:24] not in result.content
