"""A token count is requested with every field of the call that the vendor's counting endpoint accepts."""

from __future__ import annotations

from typing import get_type_hints

import pytest
from anthropic.types import MessageCountTokensParams
from openai.types.responses import InputTokenCountParams

from capabilities.core.protocols.counters import COUNTERS
from capabilities.core.wire import UpstreamRequest

STATEFUL = {"conversation", "previous_response_id"}
"""Fields that refer to conversations stored by the vendor. Requests through this gateway never use them."""
UNUSED = {"personality", "cache_control", "speed", "user_profile_id", "workspace_id"}
"""Fields that the counting endpoints accept but the gateway does not send."""


@pytest.mark.parametrize(
    ("protocol", "url", "params"),
    [
        ("openai-responses", "https://api.openai.com/v1/responses", InputTokenCountParams),
        ("anthropic", "https://api.anthropic.com/v1/messages", MessageCountTokensParams),
    ],
)
def test_count_request_has_the_fields_that_the_sdk_declares(protocol: str, url: str, params: type) -> None:
    accepted = set(get_type_hints(params))
    payload = dict.fromkeys(accepted | {"stream", "max_tokens", "max_output_tokens", "store"}, "x")
    request = COUNTERS[protocol].question(UpstreamRequest(url, {}, payload))
    assert set(request.payload) == accepted - STATEFUL - UNUSED
    assert request.url in {f"{url}/input_tokens", f"{url}/count_tokens"}
