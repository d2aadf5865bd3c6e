"""What models thought before they called tools, kept for callers that do not send it back.

Most clients of OpenAI's interface drop what they do not know, and DeepSeek, Kimi, Claude and Gemini refuse, or answer
worse, without it. A turn is found again by the agent and the id of one of its calls. It is this process's memory: a
restart, or another worker, knows nothing of it, and the turn goes as its caller sent it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from capabilities.core.message import ChatRequest, Message, ToolCall
from capabilities.core.thoughts import ReasoningBlock, mark_thoughts
from capabilities.core.wire import Answer, Delta
from capabilities.runtime import owned

MAX_TURNS = 10_000
MAX_CHARACTERS = 32 * 1024 * 1024
"""The most that is kept; the oldest turns make room."""


@dataclass(slots=True)
class AnsweredTurn:
    """What an answer said beside its words, as far as its next turn may need it."""

    reasoning: list[str] = field(default_factory=list)
    thoughts: list[ReasoningBlock] = field(default_factory=list)
    signatures: dict[str, str | None] = field(default_factory=dict)

    def add(self, delta: Delta) -> None:
        """A piece of a streamed answer."""
        if delta.reasoning:
            self.reasoning.append(delta.reasoning)
        self.thoughts += delta.thoughts
        for call in delta.tool_calls:
            if call.id is not None:
                self.signatures[call.id] = call.signature

    @property
    def worth_keeping(self) -> bool:
        """Whether it called tools, and has something that wants to come back."""
        signed = any(self.signatures.values())
        return bool(self.signatures and (self.reasoning or self.thoughts or signed))


def turn_of(answer: Answer) -> AnsweredTurn:
    """What a whole answer said beside its words."""
    reasoning = [answer.reasoning] if answer.reasoning else []
    return AnsweredTurn(reasoning, list(answer.thoughts), {call.id: call.signature for call in answer.tool_calls})


@dataclass(frozen=True, slots=True)
class KeptTurn:
    """A turn as it is kept; `signatures` by the id of their call."""

    reasoning: str | None
    thoughts: tuple[ReasoningBlock, ...]
    signatures: Mapping[str, str | None]
    origin: str

    @property
    def characters(self) -> int:
        """How much it holds."""
        proofs = sum(len(each.text) + len(each.proof or "") for each in self.thoughts)
        return len(self.reasoning or "") + proofs + sum(len(each or "") for each in self.signatures.values())


class ReasoningCache:
    """The newest turns, by agent and call id; every thread may ask."""

    def __init__(self, most_turns: int = MAX_TURNS, most_characters: int = MAX_CHARACTERS) -> None:
        self._most_turns, self._most_characters = most_turns, most_characters
        self._turns: OrderedDict[tuple[str, str], KeptTurn] = OrderedDict()
        self._characters = 0
        self._lock = threading.Lock()

    def keep(self, agent: str, turn: AnsweredTurn, origin: str) -> None:
        """Remembers what a model of that origin said to an agent; nothing where it called no tool."""
        if not turn.worth_keeping:
            return
        kept = KeptTurn(
            "".join(turn.reasoning) or None, mark_thoughts(turn.thoughts, origin), dict(turn.signatures), origin
        )
        with self._lock:
            for call_id in kept.signatures:
                self._forget((agent, call_id))
                self._turns[agent, call_id] = kept
                self._characters += kept.characters
            while len(self._turns) > self._most_turns or self._characters > self._most_characters:
                self._forget(next(iter(self._turns)))

    def _forget(self, key: tuple[str, str]) -> None:
        old = self._turns.pop(key, None)
        self._characters -= old.characters if old else 0

    def complete(self, agent: str, chat: ChatRequest) -> ChatRequest:
        """The request, each turn that called tools with what its caller left out of it, where it is still known."""
        if not self._turns or not any(message.tool_calls for message in chat.messages):
            return chat
        messages = tuple(self._complete(agent, message) for message in chat.messages)
        return chat if messages == chat.messages else replace(chat, messages=messages)

    def _complete(self, agent: str, message: Message) -> Message:
        with self._lock:
            kept = next(
                (self._turns[agent, call.id] for call in message.tool_calls if (agent, call.id) in self._turns), None
            )
        if kept is None:
            return message
        return replace(
            message,
            reasoning=message.reasoning or kept.reasoning,
            thoughts=message.thoughts or kept.thoughts,
            tool_calls=tuple(_complete_call(call, kept) for call in message.tool_calls),
        )


def _complete_call(call: ToolCall, turn: KeptTurn) -> ToolCall:
    signature = turn.signatures.get(call.id)
    return replace(call, signature=signature, origin=turn.origin) if signature and not call.signature else call


reasoning_cache = owned(ReasoningCache)
