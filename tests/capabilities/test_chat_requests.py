"""Which tools a chat request has, and how many characters of message text a vendor-specific item repeats."""

from __future__ import annotations

import pytest

from capabilities.core.message import CITATIONS, ChatRequest, Message, Role, TextPart, Tool, VendorItem


def test_has_tool_finds_only_tools_listed_in_the_request() -> None:
    chat = ChatRequest((Message(Role.USER, (TextPart("hi"),)),), tools=(Tool("look"), Tool("read")))
    assert [chat.has_tool(name) for name in ("look", "read", "write")] == [True, True, False]
    assert not ChatRequest(chat.messages).has_tool("look")


@pytest.mark.parametrize(
    ("name", "value", "covered"),
    [
        (CITATIONS, {"type": "text", "text": "four"}, 4),
        (CITATIONS, {"type": "document"}, 0),
        ("server_tool_use", {"type": "text", "text": "four"}, 0),
    ],
)
def test_vendor_item_covers_only_text_with_citations(name: str, value: object, covered: int) -> None:
    assert VendorItem("anthropic", name, value).covered == covered
