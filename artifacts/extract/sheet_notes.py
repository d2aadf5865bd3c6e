"""Read links and comments of an XLSX workbook's sheets, which the reader of cells leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import BinaryIO
from xml.parsers.expat import ExpatError

from artifacts.extract.office import addresses, attribute, ignore, targets
from artifacts.extract.words import TextCollector, entry_blocks, open_zip, read_xml

WORKBOOK = "xl/workbook.xml"
MAX_NOTES = 10_000


class SheetNotes:
    """Finds each sheet's file, and reads the comments and links in it."""

    def __init__(self, source: BinaryIO) -> None:
        source.seek(0)
        self._package = open_zip(source)
        self._parts = dict[str, str]()
        if WORKBOOK in self._package.NameToInfo:
            files = targets(self._package, WORKBOOK, "worksheet")

            def collect(name: str, attributes: Mapping[str, str]) -> None:
                if name == "sheet" and (part := files.get(attribute(attributes, "id"))):
                    self._parts[attributes.get("name", "")] = part

            with suppress(ExpatError):
                read_xml(entry_blocks(self._package, WORKBOOK), collect, ignore, ignore)

    def add(self, sheet: str, output: TextCollector) -> None:
        """Add a line for each link and comment: its cell, then the address, or the words."""
        part = self._parts.get(sheet, "")
        lines = list[str]()
        # The cells are worth having without a damaged comment.
        with suppress(ExpatError):
            lines = [*self._links(part), *self._comments(part)] if part else []
        for line in lines[:MAX_NOTES]:
            output.add(f"{line}\n")

    def _links(self, part: str) -> list[str]:
        # A sheet without addresses is not read once more.
        links, found = addresses(self._package, part), list[str]()

        def collect(name: str, attributes: Mapping[str, str]) -> None:
            if name == "hyperlink" and (address := links.get(attribute(attributes, "id"))):
                found.append(f"[link at {attributes.get('ref', '')}: {address}]")

        if links:
            read_xml(entry_blocks(self._package, part), collect, ignore, ignore)
        return found

    def _comments(self, part: str) -> list[str]:
        found, words, at = list[str](), list[str](), [""]

        def start(name: str, attributes: Mapping[str, str]) -> None:
            if name == "comment":
                at[0] = attributes.get("ref", "")
                words.clear()

        def end(name: str) -> None:
            if name == "author":
                words.clear()
            elif name == "comment":
                found.append(f"[comment at {at[0]}: {' '.join(''.join(words).split())}]")

        for comments in dict.fromkeys(targets(self._package, part, "comments").values()):
            read_xml(entry_blocks(self._package, comments), start, end, words.append)
        return found
