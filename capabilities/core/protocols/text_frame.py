"""What stands around the words of an event: nearly every event of a stream differs from the one before by those alone.

Reading the words between a known beginning and a known end gives what reading the whole event would give: between the
two quotation marks JSON is one text, or an error that the whole reading then tells.
"""

from __future__ import annotations

from typing import Any

from capabilities.core.json_codec import read_json

TRIES = 8
"""So often a frame is looked for in one stream; who pads each event with something random has none."""
PROBE = "words of no model"
"""What is put in the place of an event's words, to see that they stand nowhere else."""


class TextFrame:
    """The beginning and the end of the events of one stream, once one was seen."""

    __slots__ = ("_after", "_around", "_before", "_tries")

    def __init__(self) -> None:
        self._before, self._after, self._around = "", "", 0
        self._tries = TRIES

    def words_in(self, data: str) -> str:
        """The words of an event that is otherwise the one learned from; empty where it is another one, or has none."""
        before, after = self._before, self._after
        if not (before and data.startswith(before) and data.endswith(after)) or len(data) <= self._around:
            return ""
        try:
            words: str = read_json(data[len(before) - 1 : 1 - len(after)])
        except (ValueError, RecursionError):
            return ""
        return words

    def learn(self, data: str, value: dict[str, Any], holder: dict[str, Any], name: str) -> None:
        """Looks for the frame of an event, read as `value`, the words of which are those of that name in its `holder`.

        The words are changed there: whoever needs them has read them before.
        """
        if not (self._tries and holder[name]):
            return
        self._tries -= 1
        before, mark, rest = data.partition(f'"{holder[name]}"')
        holder[name] = PROBE
        try:
            same = bool(mark) and read_json(f'{before}"{PROBE}"{rest}') == value
        except (ValueError, RecursionError):
            same = False
        if same:
            self._before, self._after = f'{before}"', f'"{rest}'
            self._around = len(self._before) + len(self._after)
