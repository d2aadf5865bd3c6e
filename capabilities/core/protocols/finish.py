"""Why a model stopped: what a vendor's word comes to in OpenAI's, and what it means for an answer without words.

No word that a table does not know means that an answer is complete. It comes to `length`: of the words that OpenAI's
clients accept it alone says that something may be missing. A fifth word makes strict clients refuse an answer that was
paid for, `content_filter` blames somebody, and `stop` would be the lie. The vendor's own word goes along as
`native_finish_reason` and stands in the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Ending(NamedTuple):
    """OpenAI's word for a reason to stop, and whether it makes an answer of no words an answer."""

    word: str
    explains_silence: bool = False


WHOLE = Ending("stop")
CALLS = Ending("tool_calls")
"""To announce tool calls and make none is no reason for silence."""
CUT = Ending("length", explains_silence=True)
FILTERED = Ending("content_filter", explains_silence=True)
UNFINISHED = Ending("length")
"""Not known to be complete, for no reason that a caller could know; without a word it is no answer."""


def ending_of(endings: Mapping[str, Ending], reason: Any, *, has_calls: bool) -> Ending:
    """The ending that a vendor's table has for its word; none at all, in a whole answer, means that it is whole."""
    if reason is None or reason == "":
        ending = WHOLE
    else:
        ending = endings.get(reason, UNFINISHED) if isinstance(reason, str) else UNFINISHED
    return CALLS if has_calls and ending is WHOLE else ending


def own_word(reason: Any, ending: Ending) -> str | None:
    """The vendor's word, where it says it otherwise than we do; None where it does not."""
    if not reason or not isinstance(reason, str) or reason.lower() == ending.word:
        return None
    return reason[:WORD_CHARS]


WORD_CHARS = 100
"""The most that is kept of a vendor's word."""
