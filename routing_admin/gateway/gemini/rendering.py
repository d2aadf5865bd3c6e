"""Render answers and errors in the format of Gemini's generateContent."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from artifacts.core.artifact import REF_PREFIX
from capabilities.core.message import METADATA, ChatRequest, VendorItem
from capabilities.core.protocols.gemini.replies import DIALECT, ENDINGS, PROTOCOL
from capabilities.core.protocols.gemini.supplements import SOURCES
from capabilities.core.protocols.tool_calls import parse_arguments
from capabilities.core.thoughts import ReasoningBlock, ThoughtForm
from capabilities.core.values import value_class
from capabilities.core.wire import Annotation, Answer, AnswerDetails, Media, Usage
from routing_admin.gateway.chat_api import ChatCall
from routing_admin.gateway.errors import GatewayError
from routing_admin.gateway.gemini.fields import decode_text, is_base64
from routing_admin.gateway.reasoning_signatures import label_signature, pack_thoughts, read_signature, unpack_thoughts
from routing_admin.platform.server.answers import google_error
from routing_admin.platform.server.request_id import new_id

# Reasoning that must be sent back to its model is sent in a part's `thoughtSignature`, which Gemini's clients do not
# interpret. Our signature combines the signature of the part's own call with the preceding reasoning, from any vendor's
# model. Both are labelled with their origin, the model that produced them.

FORMAT = "routing-1"
"""First line of our signatures. The call's signature and the packed reasoning blocks follow, each on its own line."""


@value_class
class PartSignature:
    """A parsed signature from a caller: reasoning blocks, and the call's own signature (`proof`) with its origin."""

    thoughts: tuple[ReasoningBlock, ...] = ()
    proof: str | None = None
    origin: str = ""


def write_signature(thoughts: Sequence[ReasoningBlock], proof: str | None, origin: str) -> dict[str, str]:
    """Return the field `thoughtSignature` with our signature, or no field if there is nothing to sign."""
    if not thoughts and not proof:
        return {}
    lines = (FORMAT, label_signature(proof, origin) or "", pack_thoughts(thoughts, origin) if thoughts else "")
    return {"thoughtSignature": base64.b64encode("\n".join(lines).encode("utf-8", "replace")).decode()}


def read_part_signature(text: str | None, offset: int, calls: int, *, of_call: bool) -> PartSignature:
    """Parse our signature or Gemini's own; the signature follows `offset` characters of text and `calls` calls."""
    if not text:
        return PartSignature()
    format_, _, rest = decode_text(text).partition("\n")
    if format_ == FORMAT:
        labelled, _, packed = rest.partition("\n")
        proof, origin = read_signature(labelled or None)
        return PartSignature(unpack_thoughts(packed), proof, origin)
    if of_call:
        return PartSignature(proof=text)
    return PartSignature((ReasoningBlock(ThoughtForm.ENCRYPTED, "", text, offset, calls, dialect=DIALECT),))


FINISHES: Mapping[str, str] = MappingProxyType(
    {"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}
)
"""Maps canonical finish reasons to Gemini's finish reasons; any other reason becomes `OTHER`."""
PARTS_OF_USAGE: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
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
)
"""Maps each list in `usageMetadata` to its modalities and the corresponding fields of `Usage`."""


def shows_thoughts(chat: ChatRequest) -> bool:
    """Return whether an answer may contain thoughts; like Gemini, send none unless `includeThoughts` is set."""
    return chat.extra.get("reasoning_summary") is not None


def response_json(answer: Answer, call: ChatCall, model: str, origin: str) -> dict[str, Any]:
    """Return a complete answer as JSON; its signature is in the first call, or else in the last text part."""
    parts: list[dict[str, Any]] = []
    if answer.reasoning and shows_thoughts(call.chat):
        parts.append({"text": answer.reasoning, "thought": True})
    thoughts, offset, called = answer.thoughts, 0, 0
    items = [item for item in answer.vendor if item.protocol == PROTOCOL]
    calls: list[dict[str, Any]] = []
    for tool_call in answer.tool_calls:
        calls.append(call_part(tool_call.id, tool_call.name, tool_call.arguments, custom=tool_call.custom))
        calls[-1] |= write_signature(thoughts, tool_call.signature, origin)
        thoughts = ()
    text_parts: list[dict[str, Any]] = []
    for item in items:
        if item.name == METADATA:
            continue
        text_parts += [
            *_text_parts(answer.text[offset : item.offset]),
            *calls[called : item.calls],
            own_part(item, origin),
        ]
        offset, called = max(offset, item.offset), max(called, item.calls)
    text_parts += [*_text_parts(answer.text[offset:]), *_text_parts(answer.refusal or "")]
    if thoughts and text_parts and "text" in text_parts[-1]:
        text_parts[-1] |= write_signature(thoughts, None, origin)
        thoughts = ()
    parts += [*text_parts, *(part for item in answer.media for part in media_parts(item)), *calls[called:]]
    if thoughts:
        parts.append({"text": "", **write_signature(thoughts, None, origin)})
    metadata = metadata_json(items)
    candidate = {
        "content": {"parts": parts, "role": "model"},
        "finishReason": finish_reason(answer.finish_reason, answer.details),
        "index": 0,
        **({} if has_sources(metadata) else grounding_json(answer.annotations, answer.text)),
        **metadata,
        **logprobs_json(answer.logprobs),
    }
    return {"candidates": [candidate], **usage_json(answer.usage), "modelVersion": model, "responseId": response_id()}


def _text_parts(text: str) -> list[dict[str, Any]]:
    return [{"text": text}] if text else []


def own_part(item: VendorItem, origin: str) -> dict[str, Any]:
    """Return a part produced by one of Google's own tools; its signature is labelled with the model (`origin`)."""
    part = dict(item.value)
    return part | write_signature((), part.pop("thoughtSignature", None), origin)


def has_sources(metadata: Mapping[str, Any]) -> bool:
    """Return whether Gemini's own metadata contains sources. If so, we do not add ours."""
    return not SOURCES.isdisjoint(metadata)


def metadata_json(items: Iterable[VendorItem]) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for item in items:
        metadata |= item.value if item.name == METADATA else {}
    return metadata


def merge_responses(bodies: Sequence[dict[str, Any]], usage: Usage) -> dict[str, Any]:
    """Return the first of several answers to one request, with the candidates of all answers and their summed usage."""
    candidates = [{**body["candidates"][0], "index": index} for index, body in enumerate(bodies)]
    return {**bodies[0], "candidates": candidates, **usage_json(usage)}


def response_id() -> str:
    return new_id("resp_")


def finish_reason(reason: str, details: AnswerDetails) -> str:
    """Return Gemini's finish reason; a reason that Gemini itself reported is passed on."""
    vendor_reason = details.stop_reason or ""
    return vendor_reason if vendor_reason in ENDINGS else FINISHES.get(reason, "OTHER")


def call_part(identity: str, name: str, arguments: str, *, custom: bool = False) -> dict[str, Any]:
    """Return a function call; the free text of a custom tool becomes the argument `input`."""
    args = {"input": arguments} if custom else parse_arguments(arguments)
    return {"functionCall": {**({"id": identity} if identity else {}), "name": name, "args": args}}


def media_parts(media: Media) -> list[dict[str, Any]]:
    """Return parts for generated media: inline data with its artifact, or a URI."""
    stored = f"{REF_PREFIX}{media.artifact_id}" if media.artifact_id else ""
    if media.data and (stored or is_base64(media.data)):
        metadata = {"partMetadata": {"artifact": stored}} if stored else {}
        return [{"inlineData": {"mimeType": media.mime_type, "data": media.data}, **metadata}]
    uri = stored or media.url
    return [{"fileData": {"mimeType": media.mime_type, "fileUri": uri}}] if uri else []


def usage_json(usage: Usage) -> dict[str, Any]:
    """Return the provider's token counts in Gemini's format, or {} if it reported none."""
    if not usage.is_counted and usage.total_tokens is None:
        return {}
    prompt, completion = usage.prompt_tokens or 0, usage.completion_tokens or 0
    total = usage.total_tokens if usage.total_tokens is not None else prompt + completion
    fields: dict[str, Any] = {
        # Gemini counts thoughts separately from the candidates, and tool prompts separately from the prompt.
        "promptTokenCount": max(prompt - (usage.tool_tokens or 0), 0),
        "candidatesTokenCount": max(completion - (usage.reasoning_tokens or 0), 0),
        "totalTokenCount": total,
        "cachedContentTokenCount": usage.cached_tokens,
        "thoughtsTokenCount": usage.reasoning_tokens,
        "toolUsePromptTokenCount": usage.tool_tokens,
    }
    for name, parts in PARTS_OF_USAGE.items():
        counted = {modality: getattr(usage, part) for modality, part in parts.items()}
        listed = [{"modality": key, "tokenCount": count} for key, count in counted.items() if count is not None]
        fields[name] = listed or None
    return {"usageMetadata": {name: value for name, value in fields.items() if value is not None}}


def grounding_json(annotations: Sequence[Annotation], text: str) -> dict[str, Any]:
    """Return Gemini's grounding metadata for the web sources of the text."""
    chunks: list[dict[str, Any]] = []
    supports: list[dict[str, Any]] = []
    for annotation in annotations:
        source = annotation.get(str(annotation.get("type")))
        if not isinstance(source, Mapping) or not isinstance(source.get("url"), str):
            continue
        title = source.get("title")
        chunks.append({"web": {"uri": source["url"], "title": title if isinstance(title, str) else ""}})
        start, end = (source.get(name) for name in ("start_index", "end_index"))
        if isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= len(text):
            # Gemini counts offsets in bytes; our annotations count characters.
            segment = {
                "startIndex": _count_bytes(text[:start]),
                "endIndex": _count_bytes(text[:end]),
                "text": text[start:end],
            }
            supports.append({"segment": segment, "groundingChunkIndices": [len(chunks) - 1]})
    if not chunks:
        return {}
    return {"groundingMetadata": {"groundingChunks": chunks, **({"groundingSupports": supports} if supports else {})}}


def _count_bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def logprobs_json(logprobs: Mapping[str, Any] | None) -> dict[str, Any]:
    listed = logprobs.get("content") if logprobs else None
    tokens = [token for token in listed if isinstance(token, Mapping)] if isinstance(listed, list) else []
    chosen = [pair for token in tokens if (pair := _logprob_json(token))]
    if not chosen:
        return {}
    result: dict[str, Any] = {"chosenCandidates": chosen}
    alternatives = [token.get("top_logprobs") for token in tokens]
    if any(alternatives):
        groups = (
            [_logprob_json(token) for token in top if isinstance(token, Mapping)]
            for top in alternatives
            if isinstance(top, list)
        )
        result["topCandidates"] = [{"candidates": [candidate for candidate in group if candidate]} for group in groups]
    average = sum(entry["logProbability"] for entry in chosen) / len(chosen)
    return {"logprobsResult": result, "avgLogprobs": average}


def _logprob_json(token: Mapping[str, Any]) -> dict[str, Any]:
    text, value = token.get("token"), token.get("logprob")
    if not isinstance(text, str) or isinstance(value, bool) or not isinstance(value, int | float):
        return {}
    return {"token": text, "logProbability": value}


BLOCKS = ("BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY", "MODEL_ARMOR", "JAILBREAK", "SAFETY")
"""Gemini's reasons for blocking a prompt; any other reason becomes `OTHER`."""


def blocked_json(error: GatewayError) -> dict[str, Any]:
    """Return a response without candidates, as Gemini does if a policy blocks the prompt."""
    reason = next((name for name in BLOCKS if name in error.message), "OTHER")
    feedback = {"blockReason": reason, "blockReasonMessage": error.message}
    return {"promptFeedback": feedback, "responseId": response_id()}


def error_json(error: GatewayError, request_id: str) -> dict[str, Any]:
    """Return the error in Google's format; `details` contains the field, the retry delay and the attempts."""
    details: list[dict[str, Any]] = []
    if error.param:
        violation = {"field": error.param, "description": error.message}
        details.append({"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [violation]})
    if error.retry_after is not None:
        delay = f"{max(error.retry_after, 0):g}s"
        details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay})
    if error.attempts:
        attempts = {"attempts": [attempt.as_json() for attempt in error.attempts]}
        details.append({"@type": "type.googleapis.com/google.protobuf.Struct", "value": attempts})
    return google_error(error.status, error.code, error.message, request_id, details)
