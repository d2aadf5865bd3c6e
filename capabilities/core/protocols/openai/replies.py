"""Decode complete responses of Chat Completions, from OpenAI and compatible hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from capabilities.core.message import ToolCall
from capabilities.core.protocols.answer_fields import (
    CALLS,
    CUT,
    FILTERED,
    WHOLE,
    Ending,
    count_at,
    map_ending,
    non_empty_text,
    parse_annotations,
    parse_count,
    parse_logprobs,
    read_counts,
    sum_counts,
    vendor_reason,
)
from capabilities.core.protocols.errors import bad_shape, parse_inner_failure, parse_object
from capabilities.core.protocols.media import ANY_IMAGE, RAW_SOUND, parse_base64_media, parse_url_media
from capabilities.core.protocols.thought_fields import message_thoughts, parse_signature
from capabilities.core.protocols.tool_calls import arguments_text, parse_call_item
from capabilities.core.translatable import translatable
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import NO_DETAILS, Answer, AnswerDetails, Failure, Fault, Media, Supplement, Usage

# Message fields that hold content other than text: images (OpenRouter), audio (OpenAI) and citations. If `content` is a
# list, it can also contain images.
MEDIA_FIELDS = frozenset({"images", "audio", "annotations"})


def parse_supplement(message: Mapping[str, Any]) -> Supplement:
    images, audio, content = message.get("images"), message.get("audio"), message.get("content")
    media: tuple[Media, ...] = ()
    if images or audio or isinstance(content, list):
        media = (*_images(images), *_images(content), *_sounds(audio))
    return Supplement(media, parse_annotations(message.get("annotations")))


def _images(value: Any) -> Iterator[Media]:
    for part in value if isinstance(value, list) else []:
        image = part.get("image_url") if isinstance(part, dict) else None
        # An image without a type is treated as PNG.
        image_media = parse_url_media(image.get("url") if isinstance(image, dict) else image, ANY_IMAGE)
        if image_media is not None:
            yield image_media


def _sounds(value: Any) -> Iterator[Media]:
    if not isinstance(value, dict):
        return
    # A streamed chunk of audio may contain only a transcript.
    sound = parse_base64_media(None, value.get("data"), RAW_SOUND) or Media(Kind.AUDIO, RAW_SOUND)
    transcript, expires_at = non_empty_text(value.get("transcript")), count_at(value, "expires_at")
    yield replace(sound, id=non_empty_text(value.get("id")), transcript=transcript or "", expires_at=expires_at)


ENDINGS: Mapping[str, Ending] = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "stop_sequence", "STOP", "COMPLETE"), WHOLE),
    **dict.fromkeys(("tool_calls", "function_call", "tool_use"), CALLS),
    **dict.fromkeys(("length", "max_tokens", "MAX_TOKENS", "model_length", "repetition_truncation"), CUT),
    "model_context_window_exceeded": CUT,
    **dict.fromkeys(("content_filter", "sensitive"), FILTERED),
}
# Maps finish reasons which mean that the provider failed to HTTP statuses.
BROKEN: Mapping[str, int] = {"error": 500, "network_error": 502, "insufficient_system_resource": 503, "abort": 503}


# Maps names of token counts, in a `usage` object and its nested objects, to fields of `Usage`.

TOTALS: Mapping[str, str] = {
    "prompt_tokens": "prompt_tokens",
    "completion_tokens": "completion_tokens",
    "total_tokens": "total_tokens",
    "cached_tokens": "cached_tokens",  # Kimi uses this name.
    "prompt_cache_hit_tokens": "cached_tokens",  # DeepSeek uses this name.
}
PROMPT: Mapping[str, str] = {
    "cached_tokens": "cached_tokens",
    "cache_write_tokens": "cache_write_tokens",
    "audio_tokens": "prompt_audio_tokens",
    "image_tokens": "prompt_image_tokens",
    "text_tokens": "prompt_text_tokens",
}
COMPLETION: Mapping[str, str] = {
    "reasoning_tokens": "reasoning_tokens",
    "audio_tokens": "completion_audio_tokens",
    "image_tokens": "completion_image_tokens",
    "text_tokens": "completion_text_tokens",
    "accepted_prediction_tokens": "accepted_prediction_tokens",
    "rejected_prediction_tokens": "rejected_prediction_tokens",
}
DETAILS: Mapping[str, Mapping[str, str]] = {
    "prompt_tokens_details": PROMPT,
    "completion_tokens_details": COMPLETION,
}


def parse_usage(value: Any) -> Usage:
    if not isinstance(value, dict):
        return Usage()
    counts: dict[str, int] = {}
    read_counts(value, TOTALS, counts)
    for name, names in DETAILS.items():
        read_counts(value.get(name), names, counts)
    # DeepSeek counts cache hits and cache misses separately.
    if "prompt_tokens" not in counts and "prompt_cache_miss_tokens" in value:
        hit, miss = counts.get("cached_tokens"), parse_count(value["prompt_cache_miss_tokens"])
        return Usage(sum_counts(hit, miss), **counts)
    return Usage(**counts)


def decode(status: int, headers: Mapping[str, str], body: bytes, now: float | None = None) -> Answer | Failure:
    value = parse_object(status, headers, body, now)
    if isinstance(value, Failure):
        return value
    if is_error(value):
        return parse_inner_failure(value)
    if "choices" not in value:
        return bad_shape(translatable("the answer has no choices"))
    outcome = _outcome(value, value["choices"])
    return outcome.counted(parse_usage(value.get("usage"))) if isinstance(outcome, Failure) else outcome


def _outcome(value: dict[str, Any], choices: Any) -> Answer | Failure:
    if not choices:
        return Failure(Fault.EMPTY_CHOICES, translatable("the answer has no candidate"), 200)
    if not isinstance(choices, list) or not isinstance(choices[0], dict):
        return bad_shape(translatable("%(name)s is not a list of objects", name="choices"))
    return _answer(value, choices[0])


def is_error(value: Mapping[str, Any]) -> bool:
    """Return whether a 200 response contains an error, such as OpenRouter's `error` or MiniMax's `base_resp`."""
    base = value.get("base_resp")
    if isinstance(base, Mapping) and base.get("status_code"):
        return True
    return not value.get("choices") and bool(value.get("error") or value.get("object") == "error")


def _answer(value: dict[str, Any], choice: dict[str, Any]) -> Answer | Failure:
    reason = choice.get("finish_reason")
    if isinstance(reason, str) and reason in BROKEN:
        return broken_off(choice, reason)
    message = choice.get("message")
    if not isinstance(message, dict):
        return bad_shape(translatable("the candidate has no message"))
    calls = _calls(message.get("tool_calls"))
    text, thought = text_and_thoughts(message.get("content"))
    reasoning = parse_reasoning(message) or thought or None
    refusal = message.get("refusal") if isinstance(message.get("refusal"), str) else None
    ending = map_ending(ENDINGS, reason, has_calls=bool(calls))
    thoughts, supplement = message_thoughts(message), parse_supplement(message)
    if not (text or calls or reasoning or refusal or thoughts or supplement.media or ending.explains_silence):
        return Failure(Fault.EMPTY_CONTENT, translatable("the model returned nothing"), 200)
    usage, model, identity = (
        parse_usage(value.get("usage")),
        non_empty_text(value.get("model")),
        non_empty_text(value.get("id")),
    )
    details = build_details(value, choice, ending)
    answer_fields = (text, calls, reasoning, refusal, ending.finish_reason, usage, model, identity, details)
    return Answer(*answer_fields, thoughts, parse_logprobs(choice.get("logprobs")), *supplement)


def build_details(value: Mapping[str, Any], choice: Mapping[str, Any], ending: Ending) -> AnswerDetails:
    """Return the details of a complete answer, or of the last chunk of a streamed answer."""
    # OpenRouter also returns the vendor's own reason.
    reason = vendor_reason(choice.get("native_finish_reason") or choice.get("finish_reason"), ending)
    tier, fingerprint = non_empty_text(value.get("service_tier")), non_empty_text(value.get("system_fingerprint"))
    # vLLM and SGLang return the stop sequence in these fields. A number is the id of a stop token.
    sequence = non_empty_text(choice.get("stop_reason")) or non_empty_text(choice.get("matched_stop"))
    if not (reason or tier or fingerprint or sequence):
        return NO_DETAILS
    return AnswerDetails(reason, None, tier, fingerprint, sequence)


def broken_off(choice: Mapping[str, Any], reason: str) -> Failure:
    """Return the failure for a choice whose finish reason is in `BROKEN`."""
    if isinstance(choice.get("error"), Mapping):
        return parse_inner_failure(choice)
    sentence = translatable("the model stopped with %(reason)s", reason=reason)
    return parse_inner_failure({"error": {"message": sentence, "code": BROKEN[reason]}})


def _calls(value: Any) -> tuple[ToolCall, ...]:
    calls = []
    for index, item in enumerate(value if isinstance(value, list) else []):
        function, text, custom = parse_call_item(item) if isinstance(item, dict) else ({}, None, False)
        name = function.get("name")
        if isinstance(name, str):
            identity = non_empty_text(item.get("id")) or f"call_{index}"
            calls.append(ToolCall(identity, name, arguments_text(text), parse_signature(item), custom))
    return tuple(calls)


def text_and_thoughts(content: Any) -> tuple[str, str]:
    """Return the text and the reasoning in a message's content.

    The content is a string or, in Mistral's API, a list of chunks.
    """
    if isinstance(content, str):
        return content, ""
    text, thoughts = "", ""
    for chunk in content if isinstance(content, list) else []:
        if not isinstance(chunk, dict):
            continue
        if isinstance(chunk.get("text"), str):
            text += chunk["text"]
        elif chunk.get("type") == "thinking":
            thoughts += text_and_thoughts(chunk.get("thinking"))[0]
    return text, thoughts


def parse_reasoning(message: Mapping[str, Any]) -> str:
    # Different hosts use different names for the reasoning field.
    for name in ("reasoning_content", "reasoning"):
        if isinstance(message.get(name), str) and message[name]:
            return str(message[name])
    return ""
