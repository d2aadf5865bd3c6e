"""Cache models' reasoning before tool calls, for callers that do not send it back.

Most clients of OpenAI's API drop unknown fields. Without their reasoning, DeepSeek, Kimi, Claude and Gemini refuse the
next turn or answer worse. A turn is found by the agent and the id of one of its tool calls. Each process has its own
cache: after a restart, or in another process, a turn is sent as its caller wrote it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from capabilities.core.message import ChatRequest, Message, ToolCall
from capabilities.core.thoughts import ReasoningBlock, set_origin
from capabilities.core.wire import Answer, Delta
from capabilities.runtime import owned

MAX_TURNS = 10_000
MAX_CHARACTERS = 32 * 1024 * 1024
"""Limits of the cache. If one of them is exceeded, the oldest turns are evicted."""


@dataclass(slots=True)
class AnsweredTurn:
    """Reasoning and signatures in an answer, which the next request must send back."""

    reasoning: list[str] = field(default_factory=list)
    thoughts: list[ReasoningBlock] = field(default_factory=list)
    signatures: dict[str, str | None] = field(default_factory=dict)

    def add(self, delta: Delta) -> None:
        if delta.reasoning:
            self.reasoning.append(delta.reasoning)
        self.thoughts += delta.thoughts
        for call in delta.tool_calls:
            if call.id is not None:
                self.signatures[call.id] = call.signature

    @property
    def has_reasoning(self) -> bool:
        """Whether the turn called tools and has reasoning or a signature that must be sent back."""
        signed = any(self.signatures.values())
        return bool(self.signatures and (self.reasoning or self.thoughts or signed))


def build_answered_turn(answer: Answer) -> AnsweredTurn:
    reasoning = [answer.reasoning] if answer.reasoning else []
    return AnsweredTurn(reasoning, list(answer.thoughts), {call.id: call.signature for call in answer.tool_calls})


@dataclass(frozen=True, slots=True)
class KeptTurn:
    """A cached turn; `signatures` maps tool call ids to signatures."""

    reasoning: str | None
    thoughts: tuple[ReasoningBlock, ...]
    signatures: Mapping[str, str | None]
    origin: str

    @property
    def characters(self) -> int:
        proofs = sum(len(thought.text) + len(thought.proof or "") for thought in self.thoughts)
        return len(self.reasoning or "") + proofs + sum(len(signature or "") for signature in self.signatures.values())


class ReasoningCache:
    """Thread-safe cache of the newest turns, by agent and tool call id."""

    def __init__(self, max_turns: int = MAX_TURNS, max_characters: int = MAX_CHARACTERS) -> None:
        self._max_turns, self._max_characters = max_turns, max_characters
        self._turns: OrderedDict[tuple[str, str], KeptTurn] = OrderedDict()
        self._characters = 0
        self._lock = threading.Lock()

    def keep(self, agent: str, turn: AnsweredTurn, origin: str) -> None:
        """Cache a turn in which tools were called; `origin` identifies the model that answered."""
        if not turn.has_reasoning:
            return
        cached = KeptTurn(
            "".join(turn.reasoning) or None, set_origin(turn.thoughts, origin), dict(turn.signatures), origin
        )
        with self._lock:
            for call_id in cached.signatures:
                # First remove an older version of the turn, so that its characters are not counted twice.
                self._forget((agent, call_id))
                self._turns[agent, call_id] = cached
                self._characters += cached.characters
            while len(self._turns) > self._max_turns or self._characters > self._max_characters:
                self._forget(next(iter(self._turns)))

    def _forget(self, key: tuple[str, str]) -> None:
        old = self._turns.pop(key, None)
        self._characters -= old.characters if old else 0

    def complete(self, agent: str, chat: ChatRequest) -> ChatRequest:
        """Return the request with the missing reasoning restored in turns that called tools."""
        if not self._turns or not any(message.tool_calls for message in chat.messages):
            return chat
        messages = tuple(self._complete(agent, message) for message in chat.messages)
        return chat if messages == chat.messages else replace(chat, messages=messages)

    def _complete(self, agent: str, message: Message) -> Message:
        with self._lock:
            cached = next(
                (self._turns[agent, call.id] for call in message.tool_calls if (agent, call.id) in self._turns), None
            )
        if cached is None:
            return message
        return replace(
            message,
            reasoning=message.reasoning or cached.reasoning,
            thoughts=message.thoughts or cached.thoughts,
            tool_calls=tuple(_complete_call(call, cached) for call in message.tool_calls),
        )


def _complete_call(call: ToolCall, turn: KeptTurn) -> ToolCall:
    signature = turn.signatures.get(call.id)
    return replace(call, signature=signature, origin=turn.origin) if signature and not call.signature else call


reasoning_cache = owned(ReasoningCache)
