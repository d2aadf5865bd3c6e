"""Responses as ASGI messages: header values contain no control characters."""

from __future__ import annotations

from typing import Any

import pytest

from routing_admin.platform.server.answers import send_whole


@pytest.mark.parametrize("value", ["a\r\nset-cookie: b", "a\x00b", "a\x7f"])
async def test_header_value_with_a_control_character_is_rejected(value: str) -> None:
    """Otherwise, a provider could inject a header into the response."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    with pytest.raises(ValueError, match="control character"):
        await send_whole(200, {"x-model": value}, b"", send)
    assert sent == []
