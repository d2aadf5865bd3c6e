"""What a chat request says about itself."""

from __future__ import annotations

from capabilities.core.message import ChatRequest, Message, Role, TextPart, Tool


def test_a_request_has_only_the_tools_that_it_names() -> None:
    chat = ChatRequest((Message(Role.USER, (TextPart("hi"),)),), tools=(Tool("look"), Tool("read")))
    assert [chat.has_tool(name) for name in ("look", "read", "write")] == [True, True, False]
    assert not ChatRequest(chat.messages).has_tool("look")
