"""Decode complete responses of Gemini's generateContent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from capabilities.core.message import METADATA, ToolCall, VendorItem
from capabilities.core.protocols.answer_fields import (
    CUT,
    FILTERED,
    UNFINISHED,
    WHOLE,
    Ending,
    map_ending,
    non_empty_text,
    read_counts,
    sum_counts,
    vendor_reason,
)
from capabilities.core.protocols.errors import bad_shape, parse_inner_failure, parse_object
from capabilities.core.protocols.gemini.supplements import SOURCES, keep_readable, parse_annotations, parse_media
from capabilities.core.protocols.vendor_tools import field_tool_name
from capabilities.core.providers.redaction import summarize
from capabilities.core.thoughts import ReasoningBlock, ThoughtForm
from capabilities.core.translatable import translatable
from capabilities.core.wire import Answer, AnswerDetails, Failure, Fault, Usage

ENDINGS: Mapping[str, Ending] = {
    "STOP": WHOLE,
    "MAX_TOKENS": CUT,
    "CONTINUATION": CUT,
    **dict.fromkeys(
        (
            *("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"),
            *("MODEL_ARMOR", "ESCALATION", "PUP_LIMITED_DISABLED"),
            *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
        ),
        FILTERED,
    ),
    **dict.fromkeys(("OTHER", "IMAGE_OTHER", "NO_IMAGE", "FINISH_REASON_UNSPECIFIED"), UNFINISHED),
}
# Finish reasons which mean that the response is a failure and not an answer.
FAILURES: Mapping[str, Fault] = {
    # If the request is retried, the model may write a valid function call.
    "MALFORMED_FUNCTION_CALL": Fault.BAD_JSON,
    "UNEXPECTED_TOOL_CALL": Fault.BAD_JSON,
    "MALFORMED_RESPONSE": Fault.GENERATION_FAILED,
    "TOO_MANY_TOOL_CALLS": Fault.GENERATION_FAILED,
    "MISSING_THOUGHT_SIGNATURE": Fault.GENERATION_FAILED,
}


# Maps names in `usageMetadata` (for `DETAILS`, modalities in its lists) to fields of `Usage`. Gemini's text token
# count excludes reasoning, and its prompt token count excludes the results of its own tools.
TOTALS: Mapping[str, str] = {
    "promptTokenCount": "prompt_tokens",
    "candidatesTokenCount": "completion_tokens",
    "totalTokenCount": "total_tokens",
    "cachedContentTokenCount": "cached_tokens",
    "thoughtsTokenCount": "reasoning_tokens",
    "toolUsePromptTokenCount": "tool_tokens",
}
DETAILS: Mapping[str, Mapping[str, str]] = {
    "promptTokensDetails": {
        "TEXT": "prompt_text_tokens",
        "AUDIO": "prompt_audio_tokens",
        "IMAGE": "prompt_image_tokens",
    },
    "candidatesTokensDetails": {
        "TEXT": "completion_text_tokens",
        "AUDIO": "completion_audio_tokens",
        "IMAGE": "completion_image_tokens",
    },
}
# Fields that are ignored because `Usage` has no field for them, with their meaning.
IGNORED_COUNTS: Mapping[str, str] = {
    "cacheTokensDetails": "of what sort the cached part was",
    "toolUsePromptTokensDetails": "of what sort the tools' part was",
    "trafficType": "no count",
}
IGNORED_MODALITIES = frozenset({"MODALITY_UNSPECIFIED", "VIDEO", "DOCUMENT"})


def parse_usage(value: Any) -> Usage:
    """Return the token counts. Completion tokens include reasoning, and prompt tokens include tool results."""
    if not isinstance(value, dict):
        return Usage()
    counts: dict[str, int] = {}
    read_counts(value, TOTALS, counts)
    for name, names in DETAILS.items():
        if name in value:
            read_counts(_by_modality(value[name]), names, counts)
    for part, whole in (("reasoning_tokens", "completion_tokens"), ("tool_tokens", "prompt_tokens")):
        if part in counts:
            counts[whole] = sum_counts(counts.get(whole), counts[part]) or 0
    return Usage(**counts)


def _by_modality(value: Any) -> dict[str, Any]:
    items = [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
    return {non_empty_text(item.get("modality")) or "": item.get("tokenCount") for item in items}


# OpenRouter's name for Gemini's reasoning format.
DIALECT = "google-gemini-v1"
PROTOCOL = "gemini"
# Parts that only Gemini's own tools write and read. Such a part may have a signature.
OWN_PARTS = ("executableCode", "codeExecutionResult", "toolCall", "toolResponse")
# Fields of a candidate that state the sources of its text.
SOURCE_FIELDS = (*sorted(SOURCES), "urlContextMetadata")


def decode(status: int, headers: Mapping[str, str], body: bytes, now: float | None = None) -> Answer | Failure:
    value = parse_object(status, headers, body, now, _unwrap)
    if isinstance(value, Failure):
        return value
    if value.get("error"):
        return parse_inner_failure(value)
    outcome = _answer(value)
    return outcome.counted(parse_usage(value.get("usageMetadata"))) if isinstance(outcome, Failure) else outcome


def _unwrap(value: Any) -> Any:
    # Gemini sometimes wraps an error in a list with one element.
    wrapped = isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) and "error" in value[0]
    return value[0] if wrapped else value


def _answer(value: dict[str, Any]) -> Answer | Failure:
    if blocked := blocked_prompt(value):
        return blocked
    if "candidates" not in value and "usageMetadata" not in value:
        return bad_shape(translatable("the answer has no candidates"))
    candidates = value.get("candidates")
    if not candidates:
        return Failure(Fault.EMPTY_CHOICES, translatable("the answer has no candidate"), 200)
    if not isinstance(candidates, list) or not isinstance(candidates[0], dict):
        return bad_shape(translatable("%(name)s is not a list of objects", name="candidates"))
    candidate = candidates[0]
    if failed := failed_generation(candidate):
        return failed
    parts = list_parts(candidate)
    text, thoughts = text_in(parts, thought=False), text_in(parts, thought=True)
    calls = tuple(parse_call(part, index, value) for index, part in enumerate(with_calls(parts)))
    ending = map_ending(ENDINGS, candidate.get("finishReason"), has_calls=bool(calls))
    media, vendor_parts = parse_media(parts), tuple(own_parts(parts, 0, 0))
    if not (text or thoughts or calls or media or vendor_parts or ending.explains_silence):
        return Failure(Fault.EMPTY_CONTENT, translatable("the model returned nothing"), 200)
    usage = parse_usage(value.get("usageMetadata"))
    model, identity = non_empty_text(value.get("modelVersion")), non_empty_text(value.get("responseId"))
    details = AnswerDetails(vendor_reason(candidate.get("finishReason"), ending))
    signed, _ = signatures_in(parts, 0, 0)
    answer_fields, citations = (text, calls, thoughts or None, None), parse_annotations(candidate, text)
    vendor_parts += parse_metadata(candidate)
    return Answer(
        *answer_fields,
        ending.finish_reason,
        usage,
        model,
        identity,
        details,
        signed,
        None,
        media,
        citations,
        vendor_parts,
    )


def blocked_prompt(value: Mapping[str, Any]) -> Failure | None:
    feedback = value.get("promptFeedback")
    reason = feedback.get("blockReason") if isinstance(feedback, Mapping) else None
    if not reason or value.get("candidates"):
        return None
    return Failure(
        Fault.CONTENT_POLICY,
        translatable("the prompt was blocked: %(reason)s", reason=summarize(str(reason))),
        200,
        str(reason),
    )


def failed_generation(candidate: Mapping[str, Any]) -> Failure | None:
    """Return the failure for a candidate whose finish reason is in `FAILURES`, otherwise None."""
    reason = candidate.get("finishReason")
    fault = FAILURES.get(reason) if isinstance(reason, str) else None
    if fault is None:
        return None
    finish_message = candidate.get("finishMessage")
    default_message = translatable("the model stopped with %(reason)s", reason=str(reason))
    return Failure(
        fault,
        summarize(finish_message) if isinstance(finish_message, str) and finish_message else default_message,
        200,
        str(reason),
    )


def list_parts(candidate: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, Mapping) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def text_in(parts: list[dict[str, Any]], *, thought: bool) -> str:
    """Return the text of all reasoning parts if `thought` is True, otherwise the text of all other parts."""
    texts = (part.get("text") for part in parts if bool(part.get("thought")) is thought)
    return "".join(text for text in texts if isinstance(text, str))


def own_kind(part: Mapping[str, Any]) -> str | None:
    return next((name for name in OWN_PARTS if isinstance(part.get(name), Mapping) and part[name]), None)


def part_tool_name(part: Mapping[str, Any], kind: str) -> str:
    """Return the `vendorTools` name of the Gemini tool to which this part belongs. `kind` is one of `OWN_PARTS`."""
    # The `toolType` of a tool call or response contains the tool's name.
    held = part[kind] if isinstance(part[kind], Mapping) else {}
    return field_tool_name(non_empty_text(held.get("toolType") or held.get("tool_type")) or kind)


def own_parts(parts: list[dict[str, Any]], offset: int, calls: int) -> Iterator[VendorItem]:
    """Yield the parts of Gemini's own tools, with their positions in the answer, for clients of Gemini's API."""
    thoughts = 0
    for part in parts:
        if kind := own_kind(part):
            yield VendorItem(PROTOCOL, part_tool_name(part, kind), _own_fields(part, kind), "", offset, calls, thoughts)
        elif part.get("functionCall"):
            calls += 1
        else:
            offset += len(text_in([part], thought=False))
            thoughts += non_empty_text(part.get("thoughtSignature")) is not None


def _own_fields(part: Mapping[str, Any], kind: str) -> dict[str, Any]:
    proof = non_empty_text(part.get("thoughtSignature"))
    return {**keep_readable({kind: part[kind]}), **({"thoughtSignature": proof} if proof else {})}


def parse_metadata(candidate: Mapping[str, Any]) -> tuple[VendorItem, ...]:
    """Return the fields that state a candidate's sources, for clients of Gemini's API."""
    metadata = keep_readable({name: candidate[name] for name in SOURCE_FIELDS if candidate.get(name)})
    return (VendorItem(PROTOCOL, METADATA, metadata),) if metadata else ()


def signatures_in(parts: list[dict[str, Any]], offset: int, calls: int) -> tuple[tuple[ReasoningBlock, ...], int]:
    """Return the signatures of all parts except calls, with their positions, and the offset at the end of the text."""
    blocks: list[ReasoningBlock] = []
    for part in parts:
        if own_kind(part):
            continue
        if part.get("functionCall"):
            calls += 1
            continue
        if not part.get("thought") and isinstance(part.get("text"), str):
            offset += len(part["text"])
        # In a streamed answer, the last signature may be in a separate part without text.
        if proof := non_empty_text(part.get("thoughtSignature")):
            blocks.append(ReasoningBlock(ThoughtForm.ENCRYPTED, "", proof, offset, calls, dialect=DIALECT))
    return tuple(blocks), offset


def with_calls(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    calls = (part.get("functionCall") for part in parts)
    return [part for part, call in zip(parts, calls, strict=True) if isinstance(call, dict) and call.get("name")]


def parse_call(part: Mapping[str, Any], index: int, value: Mapping[str, Any]) -> ToolCall:
    call = part["functionCall"]
    # If a call has no id, give it one that includes the response's id, so that ids from different answers differ.
    identity = non_empty_text(call.get("id")) or f"call_{non_empty_text(value.get('responseId')) or 'gemini'}_{index}"
    arguments = json.dumps(call.get("args") or {}, ensure_ascii=False)
    return ToolCall(identity, str(call["name"]), arguments, non_empty_text(part.get("thoughtSignature")))
