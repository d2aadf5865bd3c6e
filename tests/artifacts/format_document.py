"""Generate the table in docs/files.md from the product's tables.

`python -m tests.artifacts.format_document` writes it. For every format that has a file extension and every content
policy, the table shows what `decide` returns for three models in each protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from artifacts.core.detection.extensions import EXTENSIONS_OF_MIME
from artifacts.core.detection.kinds import mime_kind
from artifacts.extract import can_extract
from capabilities.core.delivery.decision import PAGED, Outcome, decide
from capabilities.core.delivery.model_endpoint import model_endpoint
from capabilities.core.delivery.reader import FACTUAL_WORDS, Reader
from capabilities.core.message import Blob, Converted, ConvertTo, FilePart, Text, make_blob
from capabilities.core.protocols.parameters import put_between
from capabilities.core.vocabulary import Capabilities, Kind
from capabilities.core.wire import Target

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "files.md"
BEGIN = "<!-- written by tests.artifacts.format_document -->\n"
END = "<!-- end of what is written -->\n"

PROTOCOLS = ("openai", "openai-responses", "anthropic", "gemini")
# Three models: one reads only text, one reads text and images, and one reads files of every kind.
MODELS = (
    Capabilities(("text",)),
    Capabilities(("text", "vision")),
    Capabilities(("text", "vision", "audio", "video", "file")),
)

TITLES = {
    Kind.IMAGE: "images",
    Kind.AUDIO: "audio",
    Kind.VIDEO: "video",
    Kind.DOCUMENT: "documents",
    Kind.TEXT: "text",
    Kind.OTHER: "other",
}
# Maps a delivery outcome to the word for it in a table cell.
OUTCOME_LABELS = {
    Outcome.NATIVE: "file",
    Outcome.INLINED: "text",
    Outcome.EXTRACTED: "words",
    Outcome.CONVERTED: "image",
    Outcome.DESCRIBED: "–",
    Outcome.REFUSED: "skipped",
}

Cells = tuple[str, ...]


class PlaceholderContent:
    """A placeholder for an existing file's content."""

    def blob(self) -> Blob:
        return make_blob(b"0")

    def text(self) -> Text | None:
        return None

    def convert(self, _: ConvertTo) -> Converted | None:
        return None


@cache
def reader(protocol: str, model: Capabilities, policy: str) -> Reader:
    target = Target("provider", "https://api.example.com/v1", "model")
    return model_endpoint(protocol, target, model, content={"policy": policy}).reader


def outcome_label(mime_type: str, protocol: str, model: Capabilities, policy: str) -> str:
    """Return the table's word for how a model receives a small, intact file of this type."""
    file = FilePart(
        mime_kind(mime_type), mime_type, "file", 1, pages=1, width=9, height=9, content=PlaceholderContent()
    )
    delivered = decide(file, reader(protocol, model, policy)).outcome
    if delivered is Outcome.EXTRACTED and not can_extract(mime_type):
        delivered = Outcome.DESCRIBED
    return "pages" if delivered is Outcome.CONVERTED and mime_type in PAGED else OUTCOME_LABELS[delivered]


def cells(mime_type: str, protocol: str) -> Cells:
    """Return what the three models receive under each policy, or a single word if they always receive the same."""
    words_by_policy = (
        [outcome_label(mime_type, protocol, model, policy) for model in MODELS] for policy in FACTUAL_WORDS
    )
    return tuple(words[0] if len(set(words)) == 1 else " / ".join(words) for words in words_by_policy)


def group_formats() -> dict[tuple[Kind, tuple[Cells, ...]], list[str]]:
    """Map each pair of a kind and its table cells to the usual extensions of the formats to which they apply."""
    formats: dict[tuple[Kind, tuple[Cells, ...]], list[str]] = {}
    for mime_type, extensions in EXTENSIONS_OF_MIME.items():
        key = (mime_kind(mime_type), tuple(cells(mime_type, protocol) for protocol in PROTOCOLS))
        formats.setdefault(key, []).append(extensions.split()[0])
    return formats


def table_lines() -> Iterator[str]:
    formats_by_cells = group_formats()
    for kind, title in TITLES.items():
        for (kind_found, by_protocol), formats in formats_by_cells.items():
            for treatment in dict.fromkeys(by_protocol) if kind_found is kind else ():
                alike = [
                    name
                    for name, protocol_cells in zip(PROTOCOLS, by_protocol, strict=True)
                    if protocol_cells == treatment
                ]
                protocol_names = "all" if len(alike) == len(PROTOCOLS) else ", ".join(alike)
                yield f"| {title} | {' '.join(formats)} | {protocol_names} | {' | '.join(treatment)} |\n"


@cache
def table() -> str:
    head = f"| kind | formats | protocol | {' | '.join(f'`{word}`' for word in FACTUAL_WORDS)} |\n"
    return head + "|---" * (3 + len(FACTUAL_WORDS)) + "|\n" + "".join(table_lines())


def insert_table(text: str) -> str:
    """Return the document with its table replaced.

    Raise `ValueError` if one of the two markers is missing.
    """
    return put_between(text, BEGIN, END, table())


if __name__ == "__main__":
    DOCUMENT.write_text(insert_table(DOCUMENT.read_text("utf-8")), "utf-8")
