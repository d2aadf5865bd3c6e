"""What each of the sample files is and how five readers get it, written down: read `sample_table.txt`, then the law.

The readers speak the `openai` protocol without a policy, as the demo's services do. What get_artifact answers for the
same files stands in test_sample_deliveries, what other policies make of them in docs/files.md.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from made_samples import long_name
from samples import SAMPLES, Sample
from stored_samples import READERS, keep

from artifacts.storage.files import FileStore
from capabilities.core.delivery.adaptation import CannotRead, text_style_for
from capabilities.core.delivery.model_endpoint import model_endpoint, prepare
from capabilities.core.message import ChatRequest, Message, Role
from capabilities.core.wire import Target

pytestmark = pytest.mark.smoke

TABLE = Path(__file__).with_name("sample_table.txt").read_text("utf-8")
"""One line a file; types are written as in `made_samples`."""


def rows() -> dict[str, tuple[str, ...]]:
    """File → kind, encoding, type, the five outcomes."""
    lines = [tuple(cell.strip() for cell in line.split("|")) for line in TABLE.strip().splitlines()]
    assert lines[0] == ("file", "kind", "encoding", *READERS, "type")
    return {name: tuple(cells) for name, *cells in lines[1:]}


EXPECTED = rows()


def test_every_sample_has_its_line_and_no_line_stands_twice() -> None:
    """No file is without an expectation, no expectation without a file."""
    assert sorted(EXPECTED) == sorted(sample.name for sample in SAMPLES)
    assert len(TABLE.strip().splitlines()) - 1 == len(EXPECTED)


@pytest.mark.requirement("ABR-1.1", "ABR-2.1", "MCR-2.1")
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_sample_is_taken_for_what_it_is_and_sent_as_the_table_says(sample: Sample, tmp_path: Path) -> None:
    """Stored and detected without a declaration, then prepared for each reader as a request would be."""
    artifact = keep(FileStore(tmp_path), sample)
    file, (kind, encoding, *outcomes, mime_type) = artifact.part(), EXPECTED[sample.name]
    assert (file.kind.value, artifact.encoding or "", file.mime_type) == (kind, encoding, long_name(mime_type))
    chat = ChatRequest((Message(Role.USER, (file,)),))
    target = Target("demo", "https://api.example.com/v1", "any")
    for (reader, capabilities), outcome in zip(READERS.items(), outcomes, strict=True):
        sent = prepare(chat, model_endpoint("openai", target, capabilities), text_style_for(chat, "en", lambda _: ()))
        assert not isinstance(sent, CannotRead)
        assert (reader, sent.deliveries[0].delivery.outcome.value) == (reader, outcome)
