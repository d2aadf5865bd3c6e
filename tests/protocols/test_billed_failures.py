"""A failure includes the token usage that the provider reported, since the provider bills it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from capabilities.core.protocols import PROTOCOLS
from capabilities.core.wire import Failure, Usage

HEADERS = {"content-type": "application/json"}
SILENT: dict[str, dict[str, Any]] = {
    "openai": {
        "choices": [{"message": {"content": ""}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    },
    "openai-responses": {"status": "completed", "output": [], "usage": {"input_tokens": 7, "output_tokens": 3}},
    "anthropic": {"content": [], "stop_reason": "end_turn", "usage": {"input_tokens": 7, "output_tokens": 3}},
    "gemini": {
        "candidates": [{"content": {"parts": []}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3},
    },
}
"""An empty answer that reports usage, in the format of each protocol."""
CUT: dict[str, list[dict[str, Any]]] = {
    "openai": [
        {"choices": [{"delta": {"content": "one"}}], "usage": {"prompt_tokens": 7, "completion_tokens": 1}},
        {"choices": [{"delta": {"content": " two"}}], "usage": {"prompt_tokens": 7, "completion_tokens": 3}},
    ],
    "anthropic": [
        {"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 3}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "one"}},
    ],
    "gemini": [
        {
            "candidates": [{"content": {"parts": [{"text": "one"}]}}],
            "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3},
        }
    ],
}
"""The beginning of a stream that reports usage early, in the format of each protocol."""


@pytest.mark.parametrize("name", SILENT)
def test_failure_for_a_complete_response_without_text_has_the_reported_usage(name: str):
    failed = PROTOCOLS[name].decode(200, HEADERS, json.dumps(SILENT[name]).encode())
    assert isinstance(failed, Failure)
    assert failed.usage is not None
    assert (failed.usage.prompt_tokens, failed.usage.completion_tokens) == (7, 3)


@pytest.mark.parametrize("name", CUT)
def test_failure_for_a_broken_stream_has_the_usage_reported_so_far(name: str):
    """The provider bills at least the usage that it reported before the stream broke."""
    decoder = PROTOCOLS[name].decoder()
    for event in CUT[name]:
        decoder.feed(f"data: {json.dumps(event)}\n\n".encode())
    failed = decoder.close()[-1]
    assert isinstance(failed, Failure)
    assert failed.usage is not None
    assert (failed.usage.prompt_tokens, failed.usage.completion_tokens) == (7, 3)


def test_failed_openai_response_has_the_reported_usage():
    """OpenAI's Responses API reports usage together with the status `failed`."""
    body = {"status": "failed", "error": {"message": "down"}, "usage": {"input_tokens": 7, "output_tokens": 3}}
    failed = PROTOCOLS["openai-responses"].decode(200, HEADERS, json.dumps(body).encode())
    assert isinstance(failed, Failure)
    assert failed.usage == Usage(7, 3)


def test_failure_without_reported_usage_has_no_usage():
    """Usage that was not reported is None and not zero."""
    failed = PROTOCOLS["openai"].decode(200, HEADERS, b'{"choices": []}')
    assert isinstance(failed, Failure)
    assert failed.usage is None
