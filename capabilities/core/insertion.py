"""Facts in a sentence, spaced as Chinese is set: one space beside Latin words and digits, none beside Chinese.

A translator cannot know whether `%(file)s` becomes 图片 or report.pdf, so the space is decided here, where both are
known. Sentences in Latin letters have no Chinese beside their holes, and stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_HAN = "[\u3400-\u9fff]"
_WIDE = "[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]"
_HOLE = re.compile(rf"(?P<before>(?<={_HAN}) ?)?%\((?P<name>\w+)\)s(?P<after> ?(?={_HAN}))?|%%")


def insert_facts(sentence: str, facts: Mapping[str, object]) -> str:
    """The sentence with its facts in it. Raises `KeyError` for a fact that is missing."""
    return _HOLE.sub(lambda hole: _fill_hole(hole, facts), sentence)


def _fill_hole(hole: re.Match[str], facts: Mapping[str, object]) -> str:
    if hole[0] == "%%":
        return "%"
    text = str(facts[hole["name"]])
    before = hole["before"] if hole["before"] is None else _space(text[:1], hole["before"])
    after = hole["after"] if hole["after"] is None else _space(text[-1:], hole["after"])
    return f"{before or ''}{text}{after or ''}"


def _space(edge: str, space: str) -> str:
    """What stands between a Chinese word and a text with this edge; as it is `space` beside signs."""
    if re.match(_WIDE, edge):
        return ""
    return " " if edge.isalnum() else space
