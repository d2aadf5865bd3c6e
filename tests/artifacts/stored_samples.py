"""Sample files in a store, and five sets of model capabilities with which the files are read."""

from __future__ import annotations

from dataclasses import dataclass

from artifacts.core.artifact import StoredArtifact
from artifacts.core.detection.encodings import decode_blocks
from artifacts.sniffer import detector
from artifacts.storage.files import FileStore
from capabilities.core.message import Blob, Converted, ConvertTo, Text
from capabilities.core.vocabulary import Capabilities
from tests.artifacts.samples import Sample

READERS = {
    "text": Capabilities(("text",)),
    "vision": Capabilities(("text", "vision")),
    "vision+file": Capabilities(("text", "vision", "file")),
    "audio+video": Capabilities(("text", "audio", "video")),
    "everything": Capabilities(("text", "vision", "audio", "video", "file")),
}


@dataclass(frozen=True)
class FileContent:
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


def store_sample(store: FileStore, sample: Sample) -> StoredArtifact:
    stored = store.put([sample.data])
    with store.reader(stored.sha256) as read_at:
        detected = detector().detect(read_at(0, 65536), stored.size, None, sample.name, read_at=read_at)
    return StoredArtifact(
        id="sample1",
        mime_type=detected.mime_type,
        kind=detected.kind,
        is_binary=detected.is_binary,
        size=stored.size,
        filename=sample.name,
        encoding=detected.encoding,
        content=FileContent(store, stored.sha256, stored.size, detected.encoding),
    )
