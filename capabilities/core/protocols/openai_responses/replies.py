"""Decode complete responses of OpenAI's Responses API, item by item."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from capabilities.core.message import ToolCall, VendorItem
from capabilities.core.protocols import answer_fields
from capabilities.core.protocols.answer_fields import (
    CUT,
    FILTERED,
    WHOLE,
    Ending,
    list_tokens,
    map_ending,
    non_empty_text,
    read_counts,
    vendor_reason,
)
from capabilities.core.protocols.errors import bad_shape, parse_inner_failure, parse_object
from capabilities.core.protocols.media import parse_base64_media
from capabilities.core.protocols.tool_calls import arguments_text
from capabilities.core.protocols.vendor_tools import block_tool_name
from capabilities.core.thoughts import ReasoningBlock, ThoughtForm
from capabilities.core.translatable import translatable
from capabilities.core.wire import NO_DETAILS, Annotation, Answer, AnswerDetails, Failure, Fault, Media, Usage

IMAGE = "image_generation_call"
# The assumed image format if the item does not specify one (OpenAI: image generation tool).
DEFAULT_FORMAT = "png"


def parse_media(item: Mapping[str, Any]) -> tuple[Media, ...]:
    """Return the image in an item, or an empty tuple if it contains none."""
    if item.get("type") != IMAGE:
        return ()
    form = non_empty_text(item.get("output_format")) or DEFAULT_FORMAT
    image = parse_base64_media(f"image/{'svg+xml' if form == 'svg' else form}", item.get("result"), f"image/{form}")
    return (image,) if image is not None else ()


def parse_annotation(value: Any) -> Annotation | None:
    """Return an annotation in the format of Chat Completions, in which the fields are nested."""
    kind = non_empty_text(value.get("type")) if isinstance(value, dict) else None
    if kind is None:
        return None
    flat = {name: field_value for name, field_value in value.items() if name != "type"}
    return answer_fields.parse_annotation({"type": kind, kind: flat})


def parse_annotations(part: Mapping[str, Any]) -> tuple[Annotation, ...]:
    items = part.get("annotations")
    annotations = (parse_annotation(item) for item in (items if isinstance(items, list) else []))
    return tuple(annotation for annotation in annotations if annotation is not None)


# Maps the reason why a response is incomplete, or else its status, to an ending. The Responses API has
# no separate reason for tool calls.

ENDINGS: Mapping[str, Ending] = {
    "completed": WHOLE,
    "max_output_tokens": CUT,
    "content_filter": FILTERED,
}
# Maps the `status` of a response without an answer to an HTTP status.
FAILURES: Mapping[str, int] = {"failed": 500, "cancelled": 503, "in_progress": 502, "queued": 502}


def ending_reason(response: Mapping[str, Any]) -> Any:
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    return reason or response.get("status")


# Maps names of token counts, in a `usage` object and its nested objects, to fields of `Usage`.

TOTALS: Mapping[str, str] = {
    "input_tokens": "prompt_tokens",
    "output_tokens": "completion_tokens",
    "total_tokens": "total_tokens",
}
DETAILS: Mapping[str, Mapping[str, str]] = {
    "input_tokens_details": {"cached_tokens": "cached_tokens", "cache_write_tokens": "cache_write_tokens"},
    "output_tokens_details": {"reasoning_tokens": "reasoning_tokens"},
}
# Maps names in `cache_write_tokens_details` to fields of `Usage`. There is one count for each cache lifetime.
WRITTEN: Mapping[str, str] = {"ttl_30m_tokens": "cache_write_30m_tokens", "ttl_12h_tokens": "cache_write_12h_tokens"}


def parse_usage(value: Any) -> Usage:
    if not isinstance(value, dict):
        return Usage()
    counts: dict[str, int] = {}
    read_counts(value, TOTALS, counts)
    for name, names in DETAILS.items():
        read_counts(value.get(name), names, counts)
    read = value.get("input_tokens_details")
    read_counts(read.get("cache_write_tokens_details") if isinstance(read, dict) else None, WRITTEN, counts)
    return Usage(**counts)


# OpenRouter's name for the reasoning format of the Responses API.
DIALECT = "openai-responses-v1"
# Maps types of items that call one of the caller's tools to the field that contains the arguments.
CALLS: Mapping[str, str] = {"function_call": "arguments", "custom_tool_call": "input"}
Item = Mapping[str, Any]


def decode(status: int, headers: Mapping[str, str], body: bytes, now: float | None = None) -> Answer | Failure:
    value = parse_object(status, headers, body, now)
    if isinstance(value, Failure):
        return value
    if value.get("error") or non_empty_text(value.get("status")) in FAILURES:
        return parse_status_failure(value)
    if not isinstance(value.get("output"), list):
        return bad_shape(translatable("the answer has no output items"))
    return parse_answer(value)


def parse_status_failure(response: Mapping[str, Any]) -> Failure:
    """Return the failure, with its usage, for a response that failed, was cancelled or has not ended."""
    return _parse_status_failure(response).counted(parse_usage(response.get("usage")))


def _parse_status_failure(response: Mapping[str, Any]) -> Failure:
    if response.get("error"):
        return parse_inner_failure(response)
    state = str(response.get("status"))
    sentence = translatable("the response ended as %(state)s", state=state)
    return parse_inner_failure({"error": {"message": sentence, "code": FAILURES.get(state, 500)}})


def parse_answer(response: Mapping[str, Any]) -> Answer | Failure:
    items = list_items(response)
    parts = [part for item in items if item.get("type") == "message" for part in list_parts(item)]
    text = "".join(part_text(part, "output_text", "text") for part in parts)
    refusal = "".join(part_text(part, "refusal", "refusal") for part in parts)
    reasoning = "\n\n".join(filter(None, (parse_reasoning(item) for item in items)))
    calls = tuple(parse_call(item, at) for at, item in enumerate(filter(is_call, items)))
    media = tuple(media_item for item in items for media_item in parse_media(item))
    thoughts, vendor, reason = tuple(_thoughts(items)), tuple(_vendor_items(items)), ending_reason(response)
    ending = map_ending(ENDINGS, reason, has_calls=bool(calls))
    if not (text or calls or reasoning or refusal or thoughts or media or vendor or ending.explains_silence):
        failure = Failure(Fault.EMPTY_CONTENT, translatable("the model returned nothing"), 200)
        return failure.counted(parse_usage(response.get("usage")))
    usage, model, identity = (
        parse_usage(response.get("usage")),
        non_empty_text(response.get("model")),
        non_empty_text(response.get("id")),
    )
    contents = (text, calls, reasoning or None, refusal or None, ending.finish_reason, usage, model, identity)
    further_fields = (
        join_logprobs(parts),
        media,
        tuple(annotation for part in parts for annotation in parse_annotations(part)),
    )
    return Answer(*contents, build_details(response, ending), thoughts, *further_fields, vendor)


def list_items(response: Mapping[str, Any]) -> list[Item]:
    output = response.get("output")
    return [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []


def list_parts(item: Item, name: str = "content") -> list[Mapping[str, Any]]:
    parts = item.get(name)
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def part_text(part: Mapping[str, Any], kind: str, name: str) -> str:
    text = part.get(name)
    return text if part.get("type") == kind and isinstance(text, str) else ""


def item_text(item: Item) -> str:
    return "".join(part_text(part, "output_text", "text") for part in list_parts(item))


def build_details(response: Mapping[str, Any], ending: Ending) -> AnswerDetails:
    reason = ending_reason(response)
    # The status `completed` adds nothing to the finish reason.
    stop_reason = None if reason == "completed" else vendor_reason(reason, ending)
    tier = non_empty_text(response.get("service_tier"))
    return AnswerDetails(stop_reason, None, tier) if stop_reason or tier else NO_DETAILS


def parse_reasoning(item: Item) -> str:
    """Return the readable reasoning in an item: its text if the host returns it, otherwise the summary."""
    if item.get("type") != "reasoning":
        return ""
    full = "".join(part_text(part, "reasoning_text", "text") for part in list_parts(item))
    return full or "\n\n".join(part_text(part, "summary_text", "text") for part in list_parts(item, "summary"))


def parse_thoughts(item: Item, offset: int, calls: int) -> Iterator[ReasoningBlock]:
    """Yield the reasoning that must be sent back to the model: the summary of an item, then its encrypted part."""
    identity, proof = non_empty_text(item.get("id")), non_empty_text(item.get("encrypted_content"))
    if item.get("type") != "reasoning" or proof is None:
        return
    for part in list_parts(item, "summary"):
        if text := part_text(part, "summary_text", "text"):
            yield ReasoningBlock(ThoughtForm.SUMMARY, text, None, offset, calls, identity, DIALECT)
    yield ReasoningBlock(ThoughtForm.ENCRYPTED, "", proof, offset, calls, identity, DIALECT)


# Items that exist in some form in all vendors' APIs. All other items exist only in OpenAI's API.
STANDARD_ITEMS = ("message", "reasoning", "image_generation_call", *CALLS)


def is_own(item: Item) -> bool:
    kind = non_empty_text(item.get("type"))
    return kind is not None and kind not in STANDARD_ITEMS


def vendor_item(item: Item, value: Mapping[str, Any] | None = None, *position: int) -> VendorItem:
    """Return an item of OpenAI's own tools, or a stream event of such an item, for clients of the Responses API."""
    return VendorItem("openai-responses", block_tool_name(item), item if value is None else value, "", *position)


def _vendor_items(items: Iterable[Item]) -> Iterator[VendorItem]:
    offset = calls = thoughts = 0
    for item in items:
        if is_own(item):
            yield vendor_item(item, None, offset, calls, thoughts)
        thoughts += len(list(parse_thoughts(item, offset, calls)))
        offset += len(item_text(item))
        calls += is_call(item)


def _thoughts(items: Iterable[Item]) -> Iterator[ReasoningBlock]:
    offset = calls = 0
    for item in items:
        yield from parse_thoughts(item, offset, calls)
        offset += len(item_text(item))
        calls += is_call(item)


def is_call(item: Item) -> bool:
    return non_empty_text(item.get("type")) in CALLS and isinstance(item.get("name"), str)


def parse_call(item: Item, at: int) -> ToolCall:
    kind = str(item["type"])
    identity = non_empty_text(item.get("call_id")) or non_empty_text(item.get("id")) or f"call_{at}"
    return ToolCall(identity, item["name"], arguments_text(item.get(CALLS[kind])), custom=kind == "custom_tool_call")


def join_logprobs(parts: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    logprobs = [part["logprobs"] for part in parts if isinstance(part.get("logprobs"), list)]
    tokens = [token for token_list in logprobs for token in list_tokens(token_list)]
    return {"content": tokens, "refusal": None} if tokens else None
