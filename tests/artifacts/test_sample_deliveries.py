"""Every sample file is stored, detected and routed to five services in a form that each of them can read."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from samples import SAMPLES, Sample
from stored_samples import READERS, store_sample

from artifacts.core.delivery.content_router import ArtifactContentRouter
from artifacts.storage.files import FileStore
from capabilities.core.vocabulary import Capabilities, Kind

# Maps each kind to the routing for the five services, in the order of `READERS`.
ROUTINGS = {
    Kind.TEXT: ("text", "text", "text", "text", "text"),
    Kind.IMAGE: ("text", "image_url", "image_url", "text", "image_url"),
    Kind.AUDIO: ("text", "text", "file", "file", "file"),
    Kind.VIDEO: ("text", "text", "file", "file", "file"),
    Kind.DOCUMENT: ("text", "text", "file", "text", "file"),
    Kind.OTHER: ("text", "text", "file", "text", "file"),
}


class FiveServices:
    def get_capabilities(self, service_id: str) -> Capabilities | None:
        return READERS.get(service_id)


@pytest.mark.requirement("ABR-2.1", "ABR-2.2", "ABR-2.3", "ABR-3.1", "ABR-4.1", "ABR-5.1")
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_every_service_gets_a_sample_in_a_readable_form(sample: Sample, tmp_path: Path) -> None:
    artifact, router = store_sample(FileStore(tmp_path), sample), ArtifactContentRouter(FiveServices())
    encoded = base64.b64encode(sample.data).decode()
    for service, routing in zip(READERS, ROUTINGS[sample.kind], strict=True):
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
