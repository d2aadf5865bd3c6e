"""All vendors' stop reasons and usage fields are translated to common ones, in complete answers and in streams."""

from __future__ import annotations

import pytest

from capabilities.core.message import ChatRequest, Message, Role, TextPart
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.wire import Answer, Failure, Fault, Usage
from tests.lab import Lab
from tests.lab.shapes import VENDORS
from tests.protocols.exchange import exchange

CHAT = ChatRequest((Message(Role.USER, (TextPart("hi"),)),))
WHOLE_AND_STREAMED = pytest.mark.parametrize("stream", [False, True])
EACH_PROTOCOL = pytest.mark.parametrize("protocol", list(VENDORS))


def play(lab: Lab, protocol: str, step: str, *, stream: bool) -> Answer | Failure:
    return exchange(protocol, lab.url(protocol), f"fault:{step}", CHAT, stream=stream)


def answer(lab: Lab, protocol: str, step: str, *, stream: bool) -> Answer:
    outcome = play(lab, protocol, step, stream=stream)
    assert isinstance(outcome, Answer), outcome
    return outcome


@WHOLE_AND_STREAMED
@EACH_PROTOCOL
@pytest.mark.parametrize("reason", ["OTHER", "vanished"])
def test_unknown_stop_reason_is_translated_to_length(lab: Lab, protocol: str, reason: str, stream: bool) -> None:
    reply = answer(lab, protocol, f"stops:reason={reason}", stream=stream)
    assert (reply.text, reply.finish_reason, reply.details.stop_reason) == ("So far.", "length", reason)


@WHOLE_AND_STREAMED
@EACH_PROTOCOL
def test_answer_without_text_and_with_an_unknown_stop_reason_is_a_failure(
    lab: Lab, protocol: str, stream: bool
) -> None:
    """An answer without text and with an unknown stop reason is a failure, so that the next candidate is called."""
    outcome = play(lab, protocol, "stops:reason=vanished,text=", stream=stream)
    assert isinstance(outcome, Failure)
    assert outcome.fault is Fault.EMPTY_CONTENT


@WHOLE_AND_STREAMED
@pytest.mark.parametrize(
    ("protocol", "reason", "expected"),
    [
        *(("gemini", reason, "content_filter") for reason in ("MODEL_ARMOR", "ESCALATION", "PUP_LIMITED_DISABLED")),
        ("gemini", "LANGUAGE", "content_filter"),
        ("gemini", "IMAGE_RECITATION", "content_filter"),
        ("gemini", "CONTINUATION", "length"),
        ("gemini", "NO_IMAGE", "length"),
        ("anthropic", "pause_turn", "length"),
        ("anthropic", "compaction", "length"),
        ("anthropic", "stop_sequence", "stop"),
        ("openai", "sensitive", "content_filter"),
    ],
)
def test_stop_reason_of_a_vendor_is_translated_to_openai(
    lab: Lab, protocol: str, reason: str, expected: str, stream: bool
) -> None:
    reply = answer(lab, protocol, f"stops:reason={reason}", stream=stream)
    assert (reply.text, reply.finish_reason, reply.details.stop_reason) == ("So far.", expected, reason)


@WHOLE_AND_STREAMED
@pytest.mark.parametrize("reason", ["MALFORMED_RESPONSE", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE"])
def test_gemini_failed_generation_is_reported_as_a_failure(lab: Lab, reason: str, stream: bool) -> None:
    """The failure's code is Gemini's finish reason."""
    outcome = play(lab, "gemini", f"failed_generation:reason={reason}", stream=stream)
    assert isinstance(outcome, Failure)
    assert (outcome.fault, outcome.code) == (Fault.GENERATION_FAILED, reason)


@pytest.mark.parametrize("reason", ["MALFORMED_RESPONSE", "MALFORMED_FUNCTION_CALL"])
def test_gemini_generation_failing_after_content_is_a_broken_stream(lab: Lab, reason: str) -> None:
    outcome = play(lab, "gemini", f"stops:reason={reason}", stream=True)
    assert isinstance(outcome, Failure)
    assert outcome.fault is Fault.STREAM_BROKEN


@WHOLE_AND_STREAMED
def test_anthropic_refusal_explanation_becomes_the_refusal_text(lab: Lab, stream: bool) -> None:
    reply = answer(lab, "anthropic", "recorded:name=refused", stream=stream)
    assert (reply.text, reply.refusal, reply.finish_reason) == ("First", "This could do harm.", "content_filter")
    assert reply.details.stop_details == {"type": "refusal", "category": "bio", "explanation": "This could do harm."}


COUNTED = {
    "openai-responses": Usage(140, 30, 170, cached_tokens=20, cache_write_tokens=100, reasoning_tokens=7),
    "openai": Usage(
        140,
        30,
        170,
        cached_tokens=20,
        cache_write_tokens=100,
        prompt_audio_tokens=5,
        prompt_image_tokens=6,
        reasoning_tokens=7,
        completion_audio_tokens=8,
        prompt_text_tokens=129,
        completion_text_tokens=15,
        accepted_prediction_tokens=2,
        rejected_prediction_tokens=3,
    ),
    "anthropic": Usage(
        140,
        30,
        170,
        cached_tokens=20,
        cache_write_tokens=100,
        cache_write_5m_tokens=60,
        cache_write_1h_tokens=40,
        reasoning_tokens=7,
        web_search_requests=2,
        web_fetch_requests=1,
    ),
    "gemini": Usage(
        140,
        30,
        170,
        cached_tokens=20,
        tool_tokens=20,
        prompt_audio_tokens=5,
        prompt_image_tokens=6,
        reasoning_tokens=7,
        completion_audio_tokens=8,
        prompt_text_tokens=109,
    ),
}


@WHOLE_AND_STREAMED
@EACH_PROTOCOL
def test_every_token_type_is_counted(lab: Lab, protocol: str, stream: bool) -> None:
    """Prompt tokens include those that Anthropic wrote to its cache and those that Gemini's own tools added."""
    reply = answer(lab, protocol, "recorded:name=counts", stream=stream)
    assert (reply.text, reply.usage) == ("Counted.", COUNTED[protocol])


@pytest.mark.parametrize(
    ("usage", "cached", "prompt"),
    [
        ('{"prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 6, "completion_tokens": 1}', 64, 70),
        ('{"prompt_tokens": 70, "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 6}', 64, 70),
        ('{"prompt_tokens": 70, "cached_tokens": 64}', 64, 70),
        ('{"prompt_tokens": 70, "prompt_tokens_details": null}', None, 70),
        ('{"prompt_tokens": "70", "prompt_tokens_details": [1]}', None, None),
    ],
)
def test_host_specific_usage_fields_are_read(usage: str, cached: int | None, prompt: int | None) -> None:
    """DeepSeek reports cache hits and misses, and Kimi uses its own field. Invalid values are ignored."""
    body = '{"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "usage": ' + usage + "}"
    reply = PROTOCOLS["openai"].decode(200, {}, body.encode())
    assert isinstance(reply, Answer)
    assert (reply.usage.cached_tokens, reply.usage.prompt_tokens) == (cached, prompt)


@WHOLE_AND_STREAMED
def test_service_tier_and_system_fingerprint_of_an_answer_are_kept(lab: Lab, stream: bool) -> None:
    """Anthropic's service tier `standard` is reported as `default`, OpenAI's name for it."""
    openai, anthropic = (
        answer(lab, protocol, "recorded:name=counts", stream=stream) for protocol in ("openai", "anthropic")
    )
    assert (openai.details.service_tier, openai.details.system_fingerprint) == ("priority", "fp_lab")
    assert (anthropic.details.service_tier, anthropic.details.system_fingerprint) == ("default", None)
