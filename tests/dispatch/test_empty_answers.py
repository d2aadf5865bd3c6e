"""An answer without text counts as complete only if Claude ended its turn after a tool result."""

from __future__ import annotations

import pytest

from capabilities.core.message import ChatRequest, Message, Role, TextPart
from capabilities.core.wire import Answer, Failure, Fault, Usage
from routing_admin.dispatch.send import END_OF_TURN, find_empty_answer

QUESTION = Message(Role.USER, (TextPart("hi"),))
RESULT = Message(Role.TOOL, (TextPart("42"),), tool_call_id="c1")


@pytest.mark.parametrize(
    ("messages", "fault", "code", "is_answer"),
    [
        ((QUESTION, RESULT), Fault.EMPTY_CONTENT, END_OF_TURN, True),
        ((RESULT, QUESTION), Fault.EMPTY_CONTENT, END_OF_TURN, False),
        ((QUESTION, RESULT), Fault.EMPTY_CONTENT, "max_tokens", False),
        ((QUESTION, RESULT), Fault.HTTP_500, END_OF_TURN, False),
        ((), Fault.EMPTY_CONTENT, END_OF_TURN, False),
    ],
)
def test_empty_answer_after_a_tool_result_is_an_answer(
    messages: tuple[Message, ...], fault: Fault, code: str, is_answer: bool
) -> None:
    failure = Failure(fault, code=code, usage=Usage(5, 0))
    assert find_empty_answer(failure, ChatRequest(messages)) == (Answer(usage=Usage(5, 0)) if is_answer else None)
