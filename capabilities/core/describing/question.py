"""The question with which a file came: a description that knows it says what matters."""

from __future__ import annotations

from capabilities.core.message import ChatRequest, Role

MAX_HEAD, MAX_TAIL = 1_500, 500
"""Characters of a long question: people paste, and ask before or behind what they pasted."""


def question_for(chat: ChatRequest, message_index: int) -> str | None:
    """The words of the user's message that brought the file of this message; None where it has none.

    A file in a tool's result was brought by the last user's message before it. What comes later does not count, so that
    the answer is the same in every later turn.
    """
    brought = next((each for each in reversed(chat.messages[: message_index + 1]) if each.role is Role.USER), None)
    words = brought.text.strip() if brought else ""
    if len(words) > MAX_HEAD + MAX_TAIL:
        words = f"{words[:MAX_HEAD]}\n…\n{words[-MAX_TAIL:]}"
    return words or None
