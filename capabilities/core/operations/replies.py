"""Find failures, token counts and files in an operation's complete response. The response is passed on unchanged."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from capabilities.core.json_codec import write_json
from capabilities.core.operations.table import AnswerShape, Operation
from capabilities.core.protocols.answer_fields import non_empty_text, read_counts
from capabilities.core.protocols.errors import bad_shape, parse_failure, parse_inner_failure, parse_object
from capabilities.core.protocols.media import ANY_IMAGE, parse_base64_media, parse_url_media
from capabilities.core.protocols.openai.replies import is_error
from capabilities.core.providers.redaction import summarize
from capabilities.core.translatable import translatable
from capabilities.core.values import value_class
from capabilities.core.wire import Answer, Failure, Fault, Media, Usage

# Maps names of token counts, in a `usage` object and its nested objects, to fields of `Usage`. OpenAI uses two sets of
# names, and hosts of reranking models use others.

TOTALS: Mapping[str, str] = {
    "prompt_tokens": "prompt_tokens",
    "input_tokens": "prompt_tokens",
    "completion_tokens": "completion_tokens",
    "output_tokens": "completion_tokens",
    "total_tokens": "total_tokens",
}
INPUT: Mapping[str, str] = {
    "audio_tokens": "prompt_audio_tokens",
    "image_tokens": "prompt_image_tokens",
    "text_tokens": "prompt_text_tokens",
    "cached_tokens": "cached_tokens",
    "cache_write_tokens": "cache_write_tokens",
}
OUTPUT: Mapping[str, str] = {
    "audio_tokens": "completion_audio_tokens",
    "image_tokens": "completion_image_tokens",
    "text_tokens": "completion_text_tokens",
    "reasoning_tokens": "reasoning_tokens",
    "accepted_prediction_tokens": "accepted_prediction_tokens",
    "rejected_prediction_tokens": "rejected_prediction_tokens",
}
DETAILS: Mapping[str, Mapping[str, str]] = {
    "input_tokens_details": INPUT,
    "input_token_details": INPUT,  # Transcriptions use this name.
    "prompt_tokens_details": INPUT,
    "output_tokens_details": OUTPUT,
    "completion_tokens_details": OUTPUT,
}
# Known fields of `usage` that are ignored, with the reason.
IGNORED_COUNTS: Mapping[str, str] = {
    "seconds": "a length and no count of tokens",
    "type": "says whether tokens or seconds are counted",
}


def parse_usage(value: Mapping[str, Any]) -> Usage:
    """Return the token counts in a response, or in the last event of a stream."""
    # Cohere and hosts with the same API return the counts in `meta`.
    meta = value.get("meta")
    counts_value = value.get("usage") or (meta.get("tokens") if isinstance(meta, dict) else None)
    if not isinstance(counts_value, dict):
        return Usage()
    counts: dict[str, int] = {}
    read_counts(counts_value, TOTALS, counts)
    for name, names in DETAILS.items():
        read_counts(counts_value.get(name), names, counts)
    usage = Usage(**counts)
    if usage.prompt_tokens is None and usage.completion_tokens is None:  # Jina and Voyage report only the total.
        return replace(usage, prompt_tokens=usage.total_tokens)
    return usage


JSON_TYPE = "application/json"
# Transcript formats other than JSON.
PLAIN_FORMATS = frozenset({"text", "srt", "vtt"})
# Maps requested values of `response_format` to MIME types of audio. OpenAI's default is mp3.
SOUND_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "mp3": "audio/mpeg",
        "opus": "audio/ogg",
        "aac": "audio/aac",
        "flac": "audio/flac",
        "wav": "audio/wav",
        "pcm": "audio/pcm",
    }
)
TYPE_CHARS = 150
# Generic content types for bytes and for text. They replace unexpected types, which callers' programs might interpret.
ANY_TYPE, PLAIN_TYPE = "application/octet-stream", "text/plain; charset=utf-8"
# Content types of plain-text transcripts that are passed on. All others are replaced with `PLAIN_TYPE`.
PLAIN_TYPES = ("text/plain", "text/vtt", "application/x-subrip")


@value_class
class PassthroughAnswer(Answer):
    """A response that is passed on unchanged: its `body`, and its parsed `value` if it is a JSON object."""

    body: bytes = field(default=b"", repr=False)
    content_type: str = JSON_TYPE
    value: Mapping[str, Any] | None = field(default=None, repr=False)

    def body_for(self, model: str) -> bytes:
        """Return the bytes to pass on, with the caller's name for the model instead of the provider's."""
        if self.value is None or not isinstance(self.value.get("model"), str) or self.value["model"] == model:
            return self.body
        return write_json({**self.value, "model": model}, lambda: _refuse)


def _refuse(value: Any) -> Any:
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationReply:
    """A provider's response to an operation. `answer_format` is the `response_format` that the caller requested."""

    operation: Operation
    answer_format: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    now: float | None = None

    @property
    def content_type(self) -> str:
        content_type = next((value for name, value in self.headers.items() if name.lower() == "content-type"), "")
        # Ignore a content type that is too long, or has characters that are not allowed in a header.
        return (
            content_type
            if content_type.isascii() and content_type.isprintable() and len(content_type) <= TYPE_CHARS
            else ""
        )


def decode(reply: OperationReply) -> PassthroughAnswer | Failure:
    if not 200 <= reply.status < 300:
        return parse_failure(reply.status, reply.headers, reply.body, reply.now)
    return READERS[reply.operation.answer](reply)


def _read_object(reply: OperationReply) -> PassthroughAnswer | Failure:
    value = parse_object(reply.status, reply.headers, reply.body, reply.now)
    if isinstance(value, Failure):
        return value
    if is_error(value):
        return parse_inner_failure(value)
    names = reply.operation.results
    result = next((value[name] for name in names if name in value), None)
    if not isinstance(result, str if reply.operation.answer is AnswerShape.TRANSCRIPT else list):
        return bad_shape(translatable("the answer has no %(names)s", names=" or ".join(names)))
    if isinstance(result, list) and not result and not reply.operation.may_be_empty:
        return Failure(Fault.EMPTY_CHOICES, translatable("the answer has no candidate"), 200)
    return PassthroughAnswer(
        result if isinstance(result, str) else answer_text(value),
        finish_reason="",
        usage=parse_usage(value),
        model=non_empty_text(value.get("model")),
        media=tuple(parse_images(value)),
        body=reply.body,
        value=value,
    )


def _read_transcript(reply: OperationReply) -> PassthroughAnswer | Failure:
    if reply.answer_format not in PLAIN_FORMATS or "json" in reply.content_type:
        return _read_object(reply)
    if "html" in reply.content_type:
        return _other_type(reply)
    text = reply.body.decode("utf-8", "replace")
    kind = reply.content_type if reply.content_type.startswith(PLAIN_TYPES) else PLAIN_TYPE
    return PassthroughAnswer(text, finish_reason="", body=reply.body, content_type=kind)


def _read_sound(reply: OperationReply) -> PassthroughAnswer | Failure:
    expected_type = SOUND_TYPES.get(reply.answer_format or "mp3", "audio/mpeg")
    content_type = reply.content_type or expected_type
    if "json" in content_type:
        value = parse_object(reply.status, reply.headers, reply.body, reply.now)
        if isinstance(value, Failure):
            return value
        return parse_inner_failure(value) if is_error(value) else bad_shape(translatable("audio was expected"))
    if content_type.startswith("text/"):
        return _other_type(reply)
    if not reply.body:
        return Failure(Fault.EMPTY_CONTENT, translatable("the model returned nothing"), 200)
    is_sound = content_type.startswith("audio/")
    sound = parse_base64_media(content_type if is_sound else expected_type, base64.b64encode(reply.body).decode())
    kind = content_type if is_sound else ANY_TYPE
    return PassthroughAnswer(finish_reason="", media=(sound,) if sound else (), body=reply.body, content_type=kind)


def _other_type(reply: OperationReply) -> Failure:
    message = translatable(
        "expected %(due)s, got %(type)s", type=summarize(reply.content_type), due=reply.operation.answer
    )
    return Failure(Fault.BAD_CONTENT_TYPE, message, 200)


READERS: Mapping[AnswerShape, Callable[[OperationReply], PassthroughAnswer | Failure]] = MappingProxyType(
    {AnswerShape.JSON: _read_object, AnswerShape.TRANSCRIPT: _read_transcript, AnswerShape.SOUND: _read_sound}
)


def answer_text(value: Mapping[str, Any]) -> str:
    """Return the text of all choices in a completion or chunk, or "" for any other response."""
    choices = value.get("choices")
    texts = (choice.get("text") for choice in choices if isinstance(choice, dict)) if isinstance(choices, list) else ()
    return "".join(text for text in texts if isinstance(text, str))


def parse_images(value: Mapping[str, Any]) -> Iterator[Media]:
    mime_type = f"image/{non_empty_text(value.get('output_format')) or 'png'}"
    items = value.get("data")
    for item in items if isinstance(items, list) else []:
        if isinstance(item, dict):
            image = parse_base64_media(mime_type, item.get("b64_json")) or parse_url_media(item.get("url"), ANY_IMAGE)
            if image is not None:
                yield image
