"""A page as a person finds things on it: by what they are and what they are called, not by tags and classes."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

EMPTY = frozenset({"area", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr", "path", "use"})
"""Elements without an end."""


@dataclass
class Control:
    """A heading, link, button, field or label: its tag, its attributes and its words, white space made single."""

    tag: str
    attributes: dict[str, str | None]
    words: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What it is called aloud: its own label where it has one, else its words."""
        return self.attributes.get("aria-label") or " ".join("".join(self.words).split())

    @property
    def is_off(self) -> bool:
        """Whether it cannot be used."""
        return "disabled" in self.attributes

    @property
    def is_on(self) -> bool:
        """Whether the switch is on, or the box ticked."""
        return "checked" in self.attributes

    @property
    def value(self) -> str:
        """What stands in the field."""
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
        if any(each.tag == tag for each in self.open):
            while self.open.pop().tag != tag:
                pass

    def handle_data(self, data: str) -> None:
        for each in self.open:
            each.words.append(data)


class Page:
    """The controls of an answer, each found by role and name; None where there is none of that name."""

    def __init__(self, answer: Any) -> None:
        reader = _Reader()
        reader.feed(answer if isinstance(answer, str) else answer.content.decode())
        self.controls = reader.controls

    @property
    def is_whole(self) -> bool:
        """Whether this is a page with its frame, not a fragment for a place in one."""
        return any(each.tag == "html" for each in self.controls)

    def button(self, name: str) -> Control | None:
        """The button of that name, a submitting field among them."""
        return self._named(name, "button", "summary")

    def link(self, name: str) -> Control | None:
        """The link of that name."""
        return self._named(name, "a")

    def heading(self, name: str) -> Control | None:
        """The heading of that name, of any level."""
        return self._named(name, "h1", "h2", "h3", "h4")

    def field(self, label: str) -> Control | None:
        """The field that a label of these words belongs to."""
        named = self._named(label, "label")
        target = named.attributes.get("for") if named else None
        return next((each for each in self.controls if target and each.attributes.get("id") == target), None)

    def switch(self, name: str) -> Control | None:
        """The switch of that name."""
        return next((each for each in self._of_role("switch") if each.name == name), None)

    @property
    def switches(self) -> list[Control]:
        """All switches, in their order."""
        return self._of_role("switch")

    def picture(self, name: str) -> Control | None:
        """The picture that is described so."""
        drawn = [each for each in self._of_role("img") if each.name == name]
        photos = [each for each in self.controls if each.tag == "img" and each.attributes.get("alt") == name]
        return next(iter([*drawn, *photos]), None)

    def quotation(self, words: str) -> Control | None:
        """Somebody else's words, as they were said."""
        return self._named(words, "q")

    def error(self, label: str) -> str:
        """What is wrong at the field of that label, as it is read out with it; empty where nothing is."""
        field = self.field(label)
        described = (field.attributes.get("aria-describedby") or "").split() if field else []
        named = [each for each in self.controls if each.attributes.get("id") in described]
        return " ".join(each.name for each in named) if field and "aria-invalid" in field.attributes else ""

    def hidden(self, name: str) -> str:
        """What a form sends along unseen under that name; empty where it sends none."""
        inputs = (each for each in self.controls if each.tag == "input" and each.attributes.get("type") == "hidden")
        return next((each.value for each in inputs if each.attributes.get("name") == name), "")

    def _of_role(self, role: str) -> list[Control]:
        return [each for each in self.controls if each.attributes.get("role") == role]

    def _named(self, name: str, *tags: str) -> Control | None:
        return next((each for each in self.controls if each.tag in tags and each.name == name), None)
