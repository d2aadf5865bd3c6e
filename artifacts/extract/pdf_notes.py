"""Read the annotations of a PDF page: form values, link targets, and comments. Runs only in the extraction process."""

from __future__ import annotations

from collections.abc import Iterator
from ctypes import Array, c_char, c_float, c_int, create_string_buffer
from itertools import groupby
from operator import itemgetter
from typing import Any

import pypdfium2
from pypdfium2 import raw

MAX_NOTES, MAX_VALUE_BYTES, MAX_TARGET_BYTES, MAX_LINK_CHARS = 20_000, 64 * 1024, 2_000, 300
MAX_SEARCHED_CHARS = 20_000_000
"""Maximum number of characters whose positions are compared with the positions of links on a page."""

PASSWORD = 1 << 13
"""Flag of a password field in a form (ISO 32000-1, table 228)."""

HIDDEN = 1 << 1
NO_COMMENTS = frozenset(
    {raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP, raw.FPDF_ANNOT_WIDGET, raw.FPDF_ANNOT_SCREEN, raw.FPDF_ANNOT_MOVIE}
)
NO_TARGET = ("file:", "javascript:", "data:", "about:")
"""Prefixes of link addresses that are useless outside the document."""

SECTIONS = ("form", "links", "comments")


class NotesReader:
    """Reads annotations on the pages of a document. Annotations already read on an earlier page are not repeated."""

    def __init__(self, document: pypdfium2.PdfDocument) -> None:
        self._document, self._known, self._remaining = document, set[str](), MAX_NOTES

    def read(self, page: pypdfium2.PdfPage, text_page: pypdfium2.PdfTextPage) -> Iterator[str]:
        """Yield the page's form values, link texts with their addresses, and comments."""
        count = min(raw.FPDFPage_GetAnnotCount(page), self._remaining)
        self._remaining -= count
        found: dict[str, dict[str, None]] = {name: {} for name in SECTIONS}
        links = list(_page_links(page, count))
        found["links"] = dict.fromkeys(self._links(links, text_page))
        # Enumerating links directly is faster than finding them among all annotations, and most pages have no other
        # annotations.
        for index in range(count) if count > len(links) else ():
            if annotation := raw.FPDFPage_GetAnnot(page, index):
                try:
                    section, text = self._read_note(annotation)
                    found[section][text] = None
                finally:
                    raw.FPDFPage_CloseAnnot(annotation)
        found["comments"] = {text: None for text in found["comments"] if text not in self._known}
        self._known.update(found["comments"])
        for name, lines in found.items():
            if text := "\n".join(filter(None, lines)):
                yield f"[{name}]\n{text}"

    def _read_note(self, annotation: raw.FPDF_ANNOTATION) -> tuple[str, str]:
        kind = raw.FPDFAnnot_GetSubtype(annotation)
        if kind == raw.FPDF_ANNOT_WIDGET:
            return "form", _field(self._document.formenv, annotation)
        if kind in NO_COMMENTS or raw.FPDFAnnot_GetFlags(annotation) & HIDDEN:
            return "comments", ""
        text, author = _text(annotation, b"Contents"), _text(annotation, b"T")
        return "comments", f"{author}: {text}" if text and author else text

    def _links(self, links: list[raw.FPDF_LINK], text_page: pypdfium2.PdfTextPage) -> Iterator[str]:
        area, buffer = raw.FS_RECTF(), create_string_buffer(MAX_TARGET_BYTES)
        searches = MAX_SEARCHED_CHARS // max(text_page.count_chars(), 1)
        shown = list[tuple[str, str]]()
        for link in links:
            address = self._address(link, buffer)
            if address and address not in self._known and len(shown) < searches:
                raw.FPDFLink_GetAnnotRect(link, area)
                words = text_page.get_text_bounded(area.left, area.bottom, area.right, area.top)
                shown.append((address, words))
        self._known.update(address for address, _ in shown)
        for address, same in groupby(shown, key=itemgetter(0)):
            # A link that spans several lines consists of several annotations.
            text = " ".join("".join(f"{words} " for _, words in same).split())[:MAX_LINK_CHARS]
            if address.rstrip("/") not in text.replace(" ", ""):
                yield f"[{text or 'link'}]({address})"

    def _address(self, link: raw.FPDF_LINK, buffer: Array[c_char]) -> str:
        action = raw.FPDFLink_GetAction(link)
        if not action or raw.FPDFAction_GetType(action) != raw.PDFACTION_URI:
            return ""
        size = raw.FPDFAction_GetURIPath(self._document, action, buffer, MAX_TARGET_BYTES)
        address = buffer.value.decode("utf-8", "replace") if 1 < size <= MAX_TARGET_BYTES else ""
        return "" if address.startswith(NO_TARGET) else address


def _page_links(page: pypdfium2.PdfPage, count: int) -> Iterator[raw.FPDF_LINK]:
    place = c_int()
    for _ in range(count):
        link = raw.FPDF_LINK()
        if not raw.FPDFLink_Enumerate(page, place, link):
            return
        yield link


def _text(annotation: raw.FPDF_ANNOTATION, key: bytes) -> str:
    return _string(raw.FPDFAnnot_GetStringValue, annotation, key).strip()


def _field(form: pypdfium2.PdfFormEnv | None, annotation: raw.FPDF_ANNOTATION) -> str:
    if not form:
        # A page that was copied from another document can have form fields without a form, so read the values from the
        # annotations.
        flags = c_float()
        if raw.FPDFAnnot_GetNumberValue(annotation, b"Ff", flags) and int(flags.value) & PASSWORD:
            return ""
        name, value = _text(annotation, b"T"), _text(annotation, b"V")
        return f"{name}: {value}" if name and value else ""
    kind = raw.FPDFAnnot_GetFormFieldType(form, annotation)
    if raw.FPDFAnnot_GetFormFieldFlags(form, annotation) & PASSWORD and kind == raw.FPDF_FORMFIELD_TEXTFIELD:
        return ""
    name = _string(raw.FPDFAnnot_GetFormFieldAlternateName, form, annotation)
    name = name or _string(raw.FPDFAnnot_GetFormFieldName, form, annotation)
    if kind in (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON):
        choice = _string(raw.FPDFAnnot_GetFormFieldExportValue, form, annotation)
        label = f"{name}: {choice}" if kind == raw.FPDF_FORMFIELD_RADIOBUTTON and choice else name
        return f"{'[x]' if raw.FPDFAnnot_IsChecked(form, annotation) else '[ ]'} {label}"
    if kind in (raw.FPDF_FORMFIELD_TEXTFIELD, raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX):
        value = _string(raw.FPDFAnnot_GetFormFieldValue, form, annotation)
        return f"{name}: {value}" if value else ""
    return ""


def _string(read: Any, *of: object) -> str:
    size = min(read(*of, None, 0), MAX_VALUE_BYTES)
    buffer = (raw.FPDF_WCHAR * (size // 2 + 1))()
    read(*of, buffer, size)
    return bytes(buffer).decode("utf-16-le", "replace").partition("\0")[0].replace("\r\n", "\n").replace("\r", "\n")
