"""Answers of a kind that the lab's own words do not have, in each vendor's shape: whole, and as the events of a stream.

The shapes are those of the vendors' documents and SDKs; what is said in them is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Recording:
    """One vendor's answer, whole and streamed."""

    whole: Json
    events: list[Json]


def openai_answer(
    message: Json, deltas: list[Json], *, finish: str = "stop", choice: Json | None = None, **more: Json | str
) -> Recording:
    """A completion, and its chunks; `choice` stands beside the reason to stop, `more` beside the choices."""
    head: Json = {"id": "chatcmpl-lab2", "created": 1_790_000_000, "model": "lab-model"}
    usage, beside = more.pop("usage", None), more
    ending = {"finish_reason": finish, **(choice or {})}
    whole = {"index": 0, "message": {"role": "assistant", "content": None, **message}, "logprobs": None, **ending}
    chunk = {**head, "object": "chat.completion.chunk", **beside}
    return Recording(
        {**head, "object": "chat.completion", "choices": [whole], "usage": usage, **beside},
        [
            *({**chunk, "choices": [{"index": 0, "delta": each, "finish_reason": None}]} for each in deltas),
            {**chunk, "choices": [{"index": 0, "delta": {}, **ending}]},
            {**chunk, "choices": [], "usage": usage},
        ],
    )


def anthropic_answer(
    blocks: list[tuple[Json, list[Json]]], *, end: Json, start_usage: Json, end_usage: Json
) -> Recording:
    """A message of blocks, each with the deltas it streams in; a stream counts at its start and again at its end."""
    head: Json = {"id": "msg_lab2", "type": "message", "role": "assistant", "model": "lab-model"}
    whole = {**head, "content": [block for block, _ in blocks], **end, "usage": start_usage | end_usage}
    start = {**head, "content": [], "stop_reason": None, "usage": start_usage | {"output_tokens": 1}}
    events: list[Json] = [{"type": "message_start", "message": start}]
    for index, (block, deltas) in enumerate(blocks):
        opened = {**block, "text": ""} if "text" in block else block
        opened = {**opened, "citations": []} if block.get("citations") else opened
        events.append({"type": "content_block_start", "index": index, "content_block": opened})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events += [{"type": "message_delta", "delta": end, "usage": end_usage}, {"type": "message_stop"}]
    return Recording(whole, events)


def gemini_answer(parts: list[Json], *, usage: Json, reason: str = "STOP", **candidate: Any) -> Recording:
    """A response, and one chunk for each part; what the candidate says beside its parts comes with the last chunk."""
    head: Json = {"modelVersion": "lab-model", "responseId": "lab2"}

    def response(some: list[Json], **more: Any) -> Json:
        return {"candidates": [{"content": {"role": "model", "parts": some}, "index": 0, **more}]}

    last = {"finishReason": reason, **candidate}
    return Recording(
        {**response(parts, **last), "usageMetadata": usage, **head},
        [
            *({**response([part]), "usageMetadata": {"promptTokenCount": 9}, **head} for part in parts),
            {**response([{"text": ""}], **last), "usageMetadata": usage, **head},
        ],
    )


def text_deltas(*texts: str) -> list[Json]:
    """Words as Anthropic streams them."""
    return [{"type": "text_delta", "text": text} for text in texts]


COUNTS = {
    "openai": openai_answer(
        {"content": "Counted."},
        [{"role": "assistant", "content": ""}, {"content": "Counted."}],
        usage={
            "prompt_tokens": 140,
            "completion_tokens": 30,
            "total_tokens": 170,
            "prompt_tokens_details": {
                "cached_tokens": 20,
                "cache_write_tokens": 100,
                "audio_tokens": 5,
                "image_tokens": 6,
                "text_tokens": 129,
            },
            "completion_tokens_details": {"reasoning_tokens": 7, "audio_tokens": 8, "rejected_prediction_tokens": 0},
        },
        service_tier="priority",
        system_fingerprint="fp_lab",
    ),
    "anthropic": anthropic_answer(
        [({"type": "text", "text": "Counted."}, text_deltas("Coun", "ted."))],
        end={"stop_reason": "end_turn", "stop_sequence": None},
        start_usage={
            "input_tokens": 20,
            "cache_read_input_tokens": 20,
            "cache_creation_input_tokens": 100,
            "cache_creation": {"ephemeral_5m_input_tokens": 60, "ephemeral_1h_input_tokens": 40},
            "service_tier": "standard",
        },
        end_usage={"input_tokens": 20, "output_tokens": 30, "output_tokens_details": {"thinking_tokens": 7}},
    ),
    "gemini": gemini_answer(
        [{"text": "Coun"}, {"text": "ted."}],
        usage={
            "promptTokenCount": 120,
            "candidatesTokenCount": 23,
            "thoughtsTokenCount": 7,
            "toolUsePromptTokenCount": 20,
            "cachedContentTokenCount": 20,
            "totalTokenCount": 170,
            "promptTokensDetails": [
                {"modality": "TEXT", "tokenCount": 109},
                {"modality": "AUDIO", "tokenCount": 5},
                {"modality": "IMAGE", "tokenCount": 6},
            ],
            "candidatesTokensDetails": [{"modality": "AUDIO", "tokenCount": 8}],
        },
    ),
}
"""Every sort of tokens that each vendor counts, 140 in and 30 out."""

REFUSED = {
    "openai": openai_answer({"refusal": "No."}, [{"refusal": "No."}], finish="content_filter"),
    "anthropic": anthropic_answer(
        [({"type": "text", "text": "First"}, text_deltas("First"))],
        end={
            "stop_reason": "refusal",
            "stop_details": {"type": "refusal", "category": "bio", "explanation": "This could do harm."},
        },
        start_usage={"input_tokens": 5},
        end_usage={"output_tokens": 1},
    ),
    "gemini": gemini_answer([{"text": "First"}], usage={"promptTokenCount": 5}, reason="MODEL_ARMOR"),
}

RECORDINGS = {"counts": COUNTS, "refused": REFUSED}
