"""`sample_table.txt` lists each sample's expected type and how it is delivered to five models.

The models use the `openai` protocol without a content policy, as the demo's services do. test_sample_deliveries tests
get_artifact for the same files, and docs/files.md has the results for other policies.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from made_samples import expand_mime_type
from samples import SAMPLES, Sample
from stored_samples import READERS, store_sample

from artifacts.storage.files import FileStore
from capabilities.core.delivery.adaptation import CannotRead, text_style_for
from capabilities.core.delivery.model_endpoint import model_endpoint, prepare
from capabilities.core.message import ChatRequest, Message, Role
from capabilities.core.wire import Target

pytestmark = pytest.mark.smoke

# Each line describes one file. Types are abbreviated as in `made_samples`.
TABLE = Path(__file__).with_name("sample_table.txt").read_text("utf-8")


def rows() -> dict[str, tuple[str, ...]]:
    lines = [tuple(cell.strip() for cell in line.split("|")) for line in TABLE.strip().splitlines()]
    assert lines[0] == ("file", "kind", "encoding", *READERS, "type")
    return {name: tuple(cells) for name, *cells in lines[1:]}


EXPECTED = rows()


def test_every_sample_has_exactly_one_line() -> None:
    assert sorted(EXPECTED) == sorted(sample.name for sample in SAMPLES)
    assert len(TABLE.strip().splitlines()) - 1 == len(EXPECTED)


@pytest.mark.requirement("ABR-1.1", "ABR-2.1", "MCR-2.1")
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_sample_is_detected_and_delivered_as_in_the_table(sample: Sample, tmp_path: Path) -> None:
    artifact = store_sample(FileStore(tmp_path), sample)
    file, (kind, encoding, *outcomes, mime_type) = artifact.part(), EXPECTED[sample.name]
    assert (file.kind.value, artifact.encoding or "", file.mime_type) == (kind, encoding, expand_mime_type(mime_type))
    chat = ChatRequest((Message(Role.USER, (file,)),))
    target = Target("demo", "https://api.example.com/v1", "any")
    for (reader, capabilities), outcome in zip(READERS.items(), outcomes, strict=True):
        prepared = prepare(
            chat, model_endpoint("openai", target, capabilities), text_style_for(chat, "en", lambda _: ())
        )
        assert not isinstance(prepared, CannotRead)
        assert (reader, prepared.deliveries[0].delivery.outcome.value) == (reader, outcome)
