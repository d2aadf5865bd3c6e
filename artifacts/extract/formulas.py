"""Convert MathML formulas to one line of text: `(a+1)/(b)`, `x^(2)`, `√(n)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

BEFORE: Mapping[tuple[str, int], str] = {
    ("mfrac", 0): "(",
    ("mfrac", 1): "/(",
    ("msup", 1): "^(",
    ("msub", 1): "_(",
    ("msubsup", 1): "_(",
    ("msubsup", 2): "^(",
    ("munder", 1): "_(",
    ("mover", 1): "^(",
    ("munderover", 1): "_(",
    ("munderover", 2): "^(",
    ("mroot", 0): "(",
    ("mroot", 1): "^(1/",
}
"""Maps a parent element and a child's index (from 0) to the text that is written before this child. An opening
parenthesis in this text is closed after the child."""

ROWS = {"mtd": " ", "mtr": "; "}
OTHER_FORMS = frozenset({"annotation", "annotation-xml"})
"""Elements that repeat the same formula in another notation."""

INVISIBLE = str.maketrans("", "", "\u2061\u2062\u2063\u2064")


@dataclass(slots=True)
class Element:
    name: str
    after: str
    children: int = 0


class FormulaWriter:
    """Converts one formula. Its elements must be closed in nesting order."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write, self._open, self._other_form = write, list[Element](), 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._other_form += name in OTHER_FORMS
        before = after = ""
        if self._open:
            before = BEFORE.get((self._open[-1].name, self._open[-1].children), "")
            after = ")" if before else ""
            self._open[-1].children += 1
        if name == "msqrt":
            before, after = f"{before}√(", f"){after}"
        elif name == "mfenced":
            before, after = before + attributes.get("open", "(")[:1], attributes.get("close", ")")[:1] + after
        self._open.append(Element(name, ROWS.get(name, "") + after))
        self._add(before)

    def end(self, name: str) -> None:
        if self._open:
            self._add(self._open.pop().after)
        self._other_form -= name in OTHER_FORMS

    @property
    def is_whole(self) -> bool:
        return not self._open

    def text(self, text: str) -> None:
        words = text.translate(INVISIBLE).split()
        is_name = self._open and self._open[-1].name in ("mi", "mtext") and len("".join(words)) > 1
        self._add(" ".join(words) + " " * bool(is_name))

    def _add(self, text: str) -> None:
        if text and not self._other_form:
            self._write(text)
