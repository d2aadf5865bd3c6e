"""Group messages into turns of the user and the model, as Anthropic and Gemini require."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from capabilities.core.message import Message, Role


@dataclass(slots=True)
class Turn:
    """A turn of one speaker. Within a turn, tool results precede other content."""

    speaker: str
    results: list[Any] = field(default_factory=list)
    blocks: list[Any] = field(default_factory=list)

    @property
    def content(self) -> list[Any]:
        return [*self.results, *self.blocks]


class Conversation:
    """Collects turns, and merges consecutive turns of the same speaker."""

    def __init__(self, user: str, model: str) -> None:
        self._user, self._model = user, model
        self._turns: list[Turn] = []
        self._waiting: list[Any] = []

    def model(self, blocks: Sequence[Any]) -> None:
        if blocks:
            self._release()
            self._turn(self._model).blocks.extend(blocks)

    def user(self, blocks: Sequence[Any]) -> None:
        if blocks:
            self._turn(self._user).blocks.extend([*self._take_waiting(), *blocks])

    def result(self, block: Any) -> None:
        # Tool results are part of the user's turn.
        self._turn(self._user).results.append(block)

    def postpone(self, blocks: Sequence[Any]) -> None:
        """Add blocks to the beginning of the next user turn."""
        self._waiting.extend(blocks)

    def turns(self, opening: Any) -> list[Turn]:
        """Return all turns.

        If the first turn is not the user's, insert a user turn with `opening` before it.
        """
        self._release()
        if not self._turns or self._turns[0].speaker != self._user:
            return [Turn(self._user, blocks=[opening]), *self._turns]
        return self._turns

    def _take_waiting(self) -> list[Any]:
        waiting, self._waiting = self._waiting, []
        return waiting

    def _release(self) -> None:
        if self._waiting:
            self._turn(self._user).blocks.extend(self._take_waiting())

    def _turn(self, speaker: str) -> Turn:
        if not self._turns or self._turns[-1].speaker != speaker:
            self._turns.append(Turn(speaker))
        return self._turns[-1]


def leading_system(messages: Sequence[Message]) -> tuple[list[str], Sequence[Message]]:
    """Return the text of each system message at the beginning of the conversation, and all other messages."""
    texts: list[str] = []
    for index, message in enumerate(messages):
        if message.role is not Role.SYSTEM:
            return texts, messages[index:]
        if message.text:
            texts.append(message.text)
    return texts, ()
