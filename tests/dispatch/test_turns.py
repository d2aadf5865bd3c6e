"""The reasoning that preceded tool calls is restored if a client did not send it back."""

from __future__ import annotations

from capabilities.core.message import ChatRequest, Message, Role, TextPart, ToolCall
from capabilities.core.thoughts import ReasoningBlock, ThoughtForm
from capabilities.core.wire import Answer, Delta, ToolCallDelta
from routing_admin.dispatch.reasoning_cache import AnsweredTurn, ReasoningCache, build_answered_turn

ORIGIN = "0123456789ab"
THOUGHT = ReasoningBlock(ThoughtForm.TEXT, "hm", "PROOF")


def answer_with_calls(*ids: str, **more: object) -> Answer:
    return Answer("", tuple(ToolCall(call_id, "look", "{}", "SIG") for call_id in ids), "hm", thoughts=(THOUGHT,))


def history(call_id: str = "c1", **more: object) -> ChatRequest:
    """Return the history that a client sends back if it does not know the reasoning fields."""
    bare = Message(Role.ASSISTANT, (), (ToolCall(call_id, "look", "{}"),), **more)  # type: ignore[arg-type]
    return ChatRequest((Message(Role.USER, (TextPart("hi"),)), bare))


def test_cached_reasoning_is_restored_by_tool_call_id() -> None:
    memory = ReasoningCache()
    memory.keep("ada", build_answered_turn(answer_with_calls("c1", "c2")), ORIGIN)
    completed = memory.complete("ada", history("c2")).messages[1]
    assert (completed.reasoning, [thought.proof for thought in completed.thoughts]) == ("hm", ["PROOF"])
    assert {thought.origin for thought in completed.thoughts} == {ORIGIN} == {completed.tool_calls[0].origin}
    assert completed.tool_calls[0].signature == "SIG"


def test_reasoning_sent_by_the_caller_is_not_replaced() -> None:
    memory = ReasoningCache()
    memory.keep("ada", build_answered_turn(answer_with_calls("c1")), ORIGIN)
    own = ReasoningBlock(ThoughtForm.TEXT, "mine", "OWN", origin=ORIGIN)
    completed = memory.complete("ada", history(reasoning="mine", thoughts=(own,))).messages[1]
    assert (completed.reasoning, completed.thoughts) == ("mine", (own,))


def test_reasoning_of_another_agent_is_never_restored() -> None:
    memory = ReasoningCache()
    memory.keep("ada", build_answered_turn(answer_with_calls("c1")), ORIGIN)
    for agent, call_id in (("bob", "c1"), ("ada", "c9")):
        chat = history(call_id)
        assert memory.complete(agent, chat) is chat


def test_reasoning_of_a_streamed_turn_is_cached() -> None:
    turn = AnsweredTurn()
    for delta in (
        Delta(reasoning="h"),
        Delta(reasoning="m"),
        Delta(thoughts=(THOUGHT,)),
        Delta(tool_calls=(ToolCallDelta(0, "c1", "look", "", "SIG"),)),
        Delta(tool_calls=(ToolCallDelta(0, arguments="{}"),)),
    ):
        turn.add(delta)
    memory = ReasoningCache()
    memory.keep("ada", turn, ORIGIN)
    assert memory.complete("ada", history()) == _whole_turn()


def _whole_turn() -> ChatRequest:
    memory = ReasoningCache()
    memory.keep("ada", build_answered_turn(answer_with_calls("c1")), ORIGIN)
    return memory.complete("ada", history())


def test_reasoning_of_an_answer_without_tool_calls_is_not_cached() -> None:
    """A cached turn can only be found by the ids of its tool calls."""
    memory = ReasoningCache()
    memory.keep("ada", build_answered_turn(Answer("yes", (), "hm", thoughts=(THOUGHT,))), ORIGIN)
    chat = history()
    assert memory.complete("ada", chat) is chat


def test_oldest_turns_are_evicted_from_the_reasoning_cache() -> None:
    """Both the number of cached turns and their total size are limited."""
    by_number, by_size = ReasoningCache(max_turns=2), ReasoningCache(max_characters=25)
    for memory in (by_number, by_size):
        for call_id in ("c1", "c2", "c3"):
            memory.keep("ada", build_answered_turn(answer_with_calls(call_id)), ORIGIN)
        assert memory.complete("ada", history("c1")).messages[1].reasoning is None
        assert memory.complete("ada", history("c3")).messages[1].reasoning == "hm"
