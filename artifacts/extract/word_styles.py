"""Read the styles and lists of a Word package."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from artifacts.extract.numbering import ListLevel, parse_level, parse_start
from artifacts.extract.office import Attributes, attribute

MAX_STYLES = 10_000
MAX_ANCESTORS = 20
OFF = frozenset({"0", "false", "off"})


@dataclass(frozen=True, slots=True)
class Style:
    """The heading level (0 for body text), the list and the list level of a style or paragraph.

    Each is None if not specified.
    """

    heading: int | None = None
    list: str | None = None
    level: int | None = None
    parent: str = ""

    def with_defaults(self, other: Style) -> Style:
        """Return this style, with the other style's properties wherever this one specifies none."""
        return replace(
            self,
            heading=other.heading if self.heading is None else self.heading,
            list=other.list if self.list is None else self.list,
            level=other.level if self.level is None else self.level,
        )


@dataclass(frozen=True, slots=True)
class NumberedList:
    """A list in Word: its counter, which other lists may share, its levels, and the start numbers after a restart."""

    counter: str
    levels: Mapping[int, ListLevel]
    restarts: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class WordStyles:
    """A document's styles and lists, by id."""

    styles: Mapping[str, Style] = field(default_factory=dict)
    lists: Mapping[str, NumberedList] = field(default_factory=dict)


def heading_level(outline: str) -> int:
    """Return the heading level (from 1) for an outline level in Word (from 0), or 0 for body text."""
    return int(outline) + 1 if outline in set("012345") else 0


class StyleReader:
    """Reads styles. A heading is recognised by its outline level or style name, which is always in English."""

    def __init__(self) -> None:
        self._styles: dict[str, Style] = {}
        self._id = ""

    def start(self, name: str, attributes: Attributes) -> None:
        value = attribute(attributes, "val")
        if name == "style":
            self._id = attribute(attributes, "styleId") if len(self._styles) < MAX_STYLES else ""
        if not self._id:
            return
        style = self._styles.setdefault(self._id, Style())
        if name == "name":
            level = 1 if value.lower() == "title" else 0
            level = int(value[-1]) if re.fullmatch(r"heading [1-6]", value.lower()) else level
            style = replace(style, heading=level or None)
        elif name == "outlineLvl":
            style = replace(style, heading=heading_level(value))
        elif name == "numId":
            style = replace(style, list=value)
        elif name == "ilvl":
            style = replace(style, level=parse_level(value))
        elif name == "basedOn":
            style = replace(style, parent=value)
        self._styles[self._id] = style

    def styles(self) -> dict[str, Style]:
        return {name: self._inherited(style) for name, style in self._styles.items()}

    def _inherited(self, style: Style) -> Style:
        parent = style.parent
        for _ in range(MAX_ANCESTORS):
            if not (above := self._styles.get(parent)):
                break
            style = style.with_defaults(above)
            parent = above.parent
        return style


class ListReader:
    CHANGES: Mapping[str, Callable[[str], dict[str, object]]] = {
        "numFmt": lambda value: {"kind": value},
        "lvlText": lambda value: {"pattern": value},
        "start": lambda value: {"start": parse_start(value)},
        "isLgl": lambda value: {"plain": value not in OFF},
    }

    def __init__(self) -> None:
        self._levels = dict[str, dict[int, ListLevel]]()
        self._restarts, self._parents = dict[str, dict[int, int]](), dict[str, str]()
        # Maps each list to the levels that it overrides and does not share with other lists.
        self._own = dict[str, dict[int, ListLevel]]()
        # Maps each style to the id of the level definition that lists with this style share.
        self._shared_by = dict[str, str]()
        # Maps the id of each empty level definition to the style whose level definition is used instead.
        self._linked = dict[str, str]()
        self._of, self._number, self._level, self._size = "", "", 0, 0

    def start(self, name: str, attributes: Attributes) -> None:
        value = attribute(attributes, "val")
        if name == "abstractNum":
            self._of, self._number = attribute(attributes, "abstractNumId"), ""
        elif name == "num":
            self._number = attribute(attributes, "numId")
        elif name == "abstractNumId" and len(self._parents) < MAX_STYLES:
            self._parents[self._number] = value
        elif name in ("lvl", "lvlOverride"):
            self._level = parse_level(attribute(attributes, "ilvl"))
            self._size += 1
        elif name in self.CHANGES and self._size <= MAX_STYLES:
            self._change(**self.CHANGES[name](value))
        elif name == "startOverride" and self._size <= MAX_STYLES:
            self._restarts.setdefault(self._number, {})[self._level] = parse_start(value)
        elif name == "styleLink" and len(self._shared_by) < MAX_STYLES:
            self._shared_by[value] = self._of
        elif name == "numStyleLink" and len(self._linked) < MAX_STYLES:
            self._linked[self._of] = value

    def _change(self, **values: object) -> None:
        known, key = (self._own, self._number) if self._number else (self._levels, self._of)
        levels = known.setdefault(key, {})
        levels[self._level] = replace(levels.get(self._level, ListLevel()), **values)  # type: ignore[arg-type]

    def lists(self) -> dict[str, NumberedList]:
        found = dict[str, NumberedList]()
        for number, parent in self._parents.items():
            counter = self._shared_by.get(self._linked.get(parent, ""), parent)
            levels, own = self._levels.get(counter, {}), self._own.get(number)
            found[number] = NumberedList(counter, {**levels, **own} if own else levels, self._restarts.get(number, {}))
        return found
