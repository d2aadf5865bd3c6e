"""Find a page's elements by role and accessible name, not by tags and classes.

All finders also work within an element, such as `Page(answer).region("Keys").row("deploy")`. A finder returns None if
the element is absent. Only `region`, `row`, `fact`, `disclosure` and `chip`, in which a test searches further, raise
LookupError with the names that exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any, TypeVar

VOID_ELEMENTS = frozenset({"area", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr", "path", "use"})
"""Elements without an end tag."""

INVISIBLE = frozenset({"head", "script", "style", "template"})
"""Elements whose text is not shown. A dialog's text counts as shown, since a button opens it."""

FIELDS = ("input", "select", "textarea")
REGIONS = frozenset({"section", "aside", "nav", "form", "fieldset", "dialog", "ul", "ol"})
"""Tags of elements that are regions if they have an accessible name."""

Found = TypeVar("Found")


class Part:
    """Finders for elements within a whole page or within one of its elements."""

    children: list[Control | str]

    @cached_property
    def controls(self) -> list[Control]:
        """All elements within this one in document order, except those in templates that scripts fill."""
        return [
            control
            for child in self.children
            if isinstance(child, Control) and child.tag != "template"
            for control in (child, *child.controls)
        ]

    @cached_property
    def text(self) -> str:
        """The visible text, with collapsed white space."""
        return " ".join("".join(self.words()).split())

    def words(self) -> Iterator[str]:
        for child in self.children:
            if isinstance(child, str):
                yield child
            elif child.is_visible:
                yield from child.words()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.text!r}>"

    def button(self, name: str) -> Control | None:
        return self._named(name, "button", "summary")

    def link(self, name: str) -> Control | None:
        return self._named(name, "a")

    @property
    def link_urls(self) -> list[str]:
        """The URLs of all links, in page order."""
        return [control.attributes.get("href") or "" for control in self.controls if control.tag == "a"]

    def heading(self, name: str) -> Control | None:
        return self._named(name, "h1", "h2", "h3", "h4")

    @property
    def disclosures(self) -> list[Control]:
        return [control for control in self.controls if control.tag == "details"]

    def disclosure(self, name: str) -> Control:
        """Return the `details` element whose summary begins with this text."""
        named = {control.summary: control for control in reversed(self.disclosures)}
        return _required(next((summary for summary in named if f"{summary} ".startswith(f"{name} ")), name), named)

    def chip(self, words: str) -> Control:
        """Return the chip or badge with this text."""
        chips = [
            control
            for control in self.controls
            if {"chip", "badge"} & set((control.attributes.get("class") or "").split())
        ]
        return _required(words, {chip.text: chip for chip in chips})

    def code(self, text: str) -> Control | None:
        return self._named(text, "code")

    def quotation(self, text: str) -> Control | None:
        return self._named(text, "q")

    def field(self, label: str) -> Control | None:
        """Return the field with this label or `aria-label`."""
        named = self._named(label, "label")
        if named is None:
            return self._named(label, *FIELDS)
        target = named.attributes.get("for")
        return (
            self.control(target)
            if target
            else next((control for control in named.controls if control.tag in FIELDS), None)
        )

    def control(self, element_id: str) -> Control | None:
        return next((control for control in self.controls if control.attributes.get("id") == element_id), None)

    def switch(self, name: str) -> Control | None:
        return next((control for control in self._with_role("switch") if control.name == name), None)

    @property
    def switches(self) -> list[Control]:
        return self._with_role("switch")

    def image(self, name: str) -> Control | None:
        icons = [control for control in self._with_role("img") if control.name == name]
        photos = [
            control for control in self.controls if control.tag == "img" and control.attributes.get("alt") == name
        ]
        return next(iter([*icons, *photos]), None)

    def error(self, label: str) -> str:
        """Return the error message that a screen reader reads with the field, or an empty string."""
        field = self.field(label)
        described = (field.attributes.get("aria-describedby") or "").split() if field else []
        descriptions = [control for control in self.controls if control.attributes.get("id") in described]
        return (
            " ".join(description.name for description in descriptions)
            if field and "aria-invalid" in field.attributes
            else ""
        )

    def hidden(self, name: str) -> str:
        """Return the value of the hidden input with this name, or an empty string."""
        inputs = (
            control
            for control in self.controls
            if control.tag == "input" and control.attributes.get("type") == "hidden"
        )
        return next((input_.value for input_ in inputs if input_.attributes.get("name") == name), "")

    def form(self, action: str) -> Control | None:
        """Return the form with this action URL."""
        forms = (control for control in self.controls if control.tag == "form")
        return next((form for form in forms if form.attributes.get("action") == action), None)

    def loading(self, url: str) -> Control | None:
        """Return the element whose content is loaded by htmx from this URL."""
        return next((control for control in self.controls if control.attributes.get("hx-get") == url), None)

    @property
    def polled_urls(self) -> list[str]:
        """The URLs that the page polls."""
        triggered = [control for control in self.controls if "every " in (control.attributes.get("hx-trigger") or "")]
        return [control.attributes.get("hx-get") or "" for control in triggered]

    @property
    def alert(self) -> str:
        """The text that a screen reader announces immediately."""
        return " ".join(control.text for control in self._with_role("alert") if control.text)

    @property
    def status(self) -> str:
        """The text that a screen reader announces when it is idle, such as a toast's text."""
        return " ".join(control.text for control in self._with_role("status") if control.text)

    def region(self, name: str) -> Control:
        """Return the section, form, group, list or dialog with this name."""
        labels = {control.attributes["id"]: control.name for control in self.controls if "id" in control.attributes}
        regions = {}
        for control in reversed(self.controls):
            if control.tag in REGIONS or control.attributes.get("role") in {"region", "group"}:
                legend = next((child.name for child in control.controls if child.tag == "legend"), "")
                label = (
                    legend if control.tag == "fieldset" else labels.get(control.attributes.get("aria-labelledby"), "")
                )
                regions[control.attributes.get("aria-label") or label] = control
        regions.pop("", None)
        return _required(name, regions)

    @property
    def columns(self) -> list[str]:
        """The headings of all table columns."""
        heads = [control for control in self.controls if control.tag == "thead"]
        return [cell.text for head in heads for cell in head.controls if cell.tag == "th"]

    @property
    def rows(self) -> list[str]:
        """The names of all table rows except heading rows."""
        return [row.row_name for row in self.table_rows]

    def row(self, name: str) -> Control:
        """Return the row with this name, such as the text of the link in its heading."""
        return _required(name, {row.row_name: row for row in reversed(self.table_rows)})

    def column(self, heading: str) -> list[str]:
        """Return the text of each row's cell in the column with this heading. This element must have only one table."""
        position = _required(heading, {name: position for position, name in enumerate(self.columns)})
        rows = ([cell for cell in row.controls if cell.tag in {"th", "td"}] for row in self.table_rows)
        return [cells[position].text for cells in rows]

    def fact(self, term: str) -> Control:
        """Return the description beside this term of a description list."""
        pairs = [control for control in self.controls if control.tag in {"dt", "dd"}]
        return _required(term, {title.name: fact for title, fact in pairwise(pairs) if title.tag == "dt"})

    @property
    def items(self) -> list[Control]:
        return [control for control in self.controls if control.tag == "li"]

    def shows(self, words: str) -> Control | None:
        """Return the innermost visible element that contains this text, possibly this one."""
        for child in self.children:
            if isinstance(child, Control) and child.is_visible and words in child.text:
                return child.shows(words)
        return self if isinstance(self, Control) and words in self.text else None

    @property
    def table_rows(self) -> list[Control]:
        """All table rows except heading rows."""
        heads = {id(row) for head in self.controls if head.tag == "thead" for row in head.controls}
        return [control for control in self.controls if control.tag == "tr" and id(control) not in heads]

    def _with_role(self, role: str) -> list[Control]:
        return [control for control in self.controls if control.attributes.get("role") == role]

    def _named(self, name: str, *tags: str) -> Control | None:
        return next((control for control in self.controls if control.tag in tags and control.name == name), None)


def _required(name: str, found: dict[str, Found]) -> Found:
    if name not in found:
        raise LookupError(f"There is no {name!r} among {list(found)}")
    return found[name]


def _is_no_heading(child: Control | str) -> bool:
    return isinstance(child, str) or child.tag != "th"


@dataclass(eq=False, repr=False)
class Control(Part):
    """An element, such as a heading, link, button, field or row, with its tag, attributes and children."""

    tag: str
    attributes: dict[str, str | None]
    children: list[Control | str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The accessible name: `aria-label` if present, else the text."""
        return self.attributes.get("aria-label") or self.text

    @property
    def row_name(self) -> str:
        """The text of the first child that has any.

        Row headings take precedence, and the contents of cells and blocks are searched.
        """
        for child in sorted(self.children, key=_is_no_heading):
            if isinstance(child, str):
                words = child
            elif child.tag in {"th", "td", "div"}:
                words = child.row_name
            else:
                words = child.text if child.is_visible else ""
            if words.strip():
                return " ".join(words.split())
        return ""

    @property
    def tone(self) -> str:
        """The tone of a chip or badge: `ok`, `warn` or `bad`, or an empty string for grey."""
        return " ".join(set((self.attributes.get("class") or "").split()) - {"chip", "badge"})

    @property
    def is_visible(self) -> bool:
        return self.tag not in INVISIBLE and "hidden" not in self.attributes

    @property
    def summary(self) -> str:
        """The name of a `details` element."""
        return next((control.name for control in self.controls if control.tag == "summary"), "")

    @property
    def is_open(self) -> bool:
        return "open" in self.attributes

    @property
    def is_disabled(self) -> bool:
        return "disabled" in self.attributes

    @property
    def is_checked(self) -> bool:
        return "checked" in self.attributes

    @property
    def value(self) -> str:
        return self.attributes.get("value") or self.text


class Page(Part):
    """A page, built from a response or from its text."""

    def __init__(self, answer: Any) -> None:
        reader = _Reader()
        reader.feed(answer if isinstance(answer, str) else answer.content.decode())
        self.children = reader.root.children

    @property
    def is_document(self) -> bool:
        return any(control.tag == "html" for control in self.controls)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Control("", {})
        self.open = [self.root]

    def updatepos(self, _start: int, end: int) -> int:
        # Line and column positions are not tracked, because no test needs them and they take a tenth of the time.
        return end

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        control = Control(tag, dict(attrs))
        self.open[-1].children.append(control)
        if tag not in VOID_ELEMENTS:
            self.open.append(control)

    def handle_endtag(self, tag: str) -> None:
        if any(element.tag == tag for element in self.open):
            while self.open.pop().tag != tag:
                pass

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)
