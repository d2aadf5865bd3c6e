"""A page whose elements are found by role and accessible name, not by tags and classes."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

EMPTY = frozenset({"area", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr", "path", "use"})
"""Elements without an end tag."""


@dataclass
class Control:
    """A heading, link, button, field or label: its tag, attributes and text with collapsed white space."""

    tag: str
    attributes: dict[str, str | None]
    words: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The accessible name: `aria-label` if present, else the text."""
        return self.attributes.get("aria-label") or " ".join("".join(self.words).split())

    @property
    def is_off(self) -> bool:
        return "disabled" in self.attributes

    @property
    def is_on(self) -> bool:
        return "checked" in self.attributes

    @property
    def value(self) -> str:
        return self.attributes.get("value") or " ".join("".join(self.words).split())


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[Control] = []
        self.controls: list[Control] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        control = Control(tag, dict(attrs))
        self.controls.append(control)
        if tag not in EMPTY:
            self.open.append(control)

    def handle_endtag(self, tag: str) -> None:
        if any(element.tag == tag for element in self.open):
            while self.open.pop().tag != tag:
                pass

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.words.append(data)


class Page:
    """The controls of a response, found by role and name. The result is None if there is no such control."""

    def __init__(self, answer: Any) -> None:
        reader = _Reader()
        reader.feed(answer if isinstance(answer, str) else answer.content.decode())
        self.controls = reader.controls

    @property
    def is_whole(self) -> bool:
        return any(control.tag == "html" for control in self.controls)

    def button(self, name: str) -> Control | None:
        return self._named(name, "button", "summary")

    def link(self, name: str) -> Control | None:
        return self._named(name, "a")

    def heading(self, name: str) -> Control | None:
        return self._named(name, "h1", "h2", "h3", "h4")

    def field(self, label: str) -> Control | None:
        named = self._named(label, "label")
        target = named.attributes.get("for") if named else None
        return self.control(target) if target else None

    def control(self, element_id: str) -> Control | None:
        return next((control for control in self.controls if control.attributes.get("id") == element_id), None)

    def switch(self, name: str) -> Control | None:
        return next((control for control in self._of_role("switch") if control.name == name), None)

    @property
    def switches(self) -> list[Control]:
        return self._of_role("switch")

    def picture(self, name: str) -> Control | None:
        icons = [control for control in self._of_role("img") if control.name == name]
        photos = [
            control for control in self.controls if control.tag == "img" and control.attributes.get("alt") == name
        ]
        return next(iter([*icons, *photos]), None)

    def quotation(self, text: str) -> Control | None:
        return self._named(text, "q")

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
        """Return the value of the hidden input of that name, or an empty string."""
        inputs = (
            control
            for control in self.controls
            if control.tag == "input" and control.attributes.get("type") == "hidden"
        )
        return next((input_.value for input_ in inputs if input_.attributes.get("name") == name), "")

    def _of_role(self, role: str) -> list[Control]:
        return [control for control in self.controls if control.attributes.get("role") == role]

    def _named(self, name: str, *tags: str) -> Control | None:
        return next((control for control in self.controls if control.tag in tags and control.name == name), None)
