"""Answers that contain more than plain text, in each vendor's format, complete and as stream events.

The formats follow the vendors' documentation and SDKs. The contents are invented.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Recording:
    """An answer in a vendor's format, both complete and as stream events."""

    whole: Json
    events: list[Json]


def openai_answer(
    message: Json, deltas: list[Json], *, finish: str = "stop", choice: Json | None = None, **more: Json | str
) -> Recording:
    """Return a completion and its chunks. `choice` adds fields to the last choice, and `more` adds fields to the
    response.
    """
    head: Json = {"id": "chatcmpl-lab2", "created": 1_790_000_000, "model": "lab-model"}
    usage, fields = more.pop("usage", None), more
    ending = {"finish_reason": finish, **(choice or {})}
    whole = {"index": 0, "message": {"role": "assistant", "content": None, **message}, "logprobs": None, **ending}
    chunk = {**head, "object": "chat.completion.chunk", **fields}
    return Recording(
        {**head, "object": "chat.completion", "choices": [whole], "usage": usage, **fields},
        [
            *({**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas),
            {**chunk, "choices": [{"index": 0, "delta": {}, **ending}]},
            {**chunk, "choices": [], "usage": usage},
        ],
    )


def anthropic_answer(
    blocks: list[tuple[Json, list[Json]]], *, end: Json, start_usage: Json, end_usage: Json
) -> Recording:
    """Return a message made of content blocks, each given with its deltas. The stream reports usage at its start and
    end.
    """
    head: Json = {"id": "msg_lab2", "type": "message", "role": "assistant", "model": "lab-model"}
    whole = {**head, "content": [block for block, _ in blocks], **end, "usage": start_usage | end_usage}
    start = {**head, "content": [], "stop_reason": None, "usage": start_usage | {"output_tokens": 1}}
    events: list[Json] = [{"type": "message_start", "message": start}]
    for index, (block, deltas) in enumerate(blocks):
        opened = block | {name: "" for name in ("text", "thinking") if name in block}
        opened = {**opened, "citations": []} if block.get("citations") else opened
        events.append({"type": "content_block_start", "index": index, "content_block": opened})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events += [{"type": "message_delta", "delta": end, "usage": end_usage}, {"type": "message_stop"}]
    return Recording(whole, events)


def gemini_answer(parts: list[Json], *, usage: Json, reason: str = "STOP", **candidate: Any) -> Recording:
    """Return a response, and its stream with one chunk per part. `candidate` adds fields to the last chunk's
    candidate.
    """
    head: Json = {"modelVersion": "lab-model", "responseId": "lab2"}

    def response(contents: list[Json], **more: Any) -> Json:
        return {"candidates": [{"content": {"role": "model", "parts": contents}, "index": 0, **more}]}

    last = {"finishReason": reason, **candidate}
    return Recording(
        {**response(parts, **last), "usageMetadata": usage, **head},
        [
            *({**response([part]), "usageMetadata": {"promptTokenCount": 9}, **head} for part in parts),
            {**response([{"text": ""}], **last), "usageMetadata": usage, **head},
        ],
    )


def text_deltas(*texts: str) -> list[Json]:
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
            "completion_tokens_details": {
                "reasoning_tokens": 7,
                "audio_tokens": 8,
                "text_tokens": 15,
                "accepted_prediction_tokens": 2,
                "rejected_prediction_tokens": 3,
            },
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
        end_usage={
            "input_tokens": 20,
            "output_tokens": 30,
            "output_tokens_details": {"thinking_tokens": 7},
            "server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 1},
        },
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
"""All kinds of token counts that each vendor reports. They add up to 140 input tokens and 30 output tokens."""

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

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""A PNG image of a single pixel."""
SOUND = bytes(range(256)) * 3
"""Raw audio, which has no recognizable header."""


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def image_part(data: bytes = PICTURE) -> Json:
    return {"type": "image_url", "index": 0, "image_url": {"url": f"data:image/png;base64,{b64(data)}"}}


def inline(mime_type: str, data: bytes) -> Json:
    return {"inlineData": {"mimeType": mime_type, "data": b64(data)}}


COUNT = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
IMAGE = {
    "openai": openai_answer(
        {"content": "", "images": [image_part()]},
        [{"role": "assistant", "content": "", "images": [image_part()]}],
        usage=COUNT,
    ),
    "anthropic": COUNTS["anthropic"],
    "gemini": gemini_answer([inline("image/png", PICTURE)], usage={"promptTokenCount": 3, "candidatesTokenCount": 4}),
}
"""Answers that consist of an image. Anthropic's models do not generate images."""

PHOTO = PICTURE + bytes(range(256)) * 12 * 1024
"""The PNG image followed by 3 MiB, so that a line of the stream exceeds 1 MiB."""
LARGE = {
    "openai": openai_answer({"images": [image_part(PHOTO)]}, [{"images": [image_part(PHOTO)]}]),
    "anthropic": COUNTS["anthropic"],
    "gemini": gemini_answer([inline("image/png", PHOTO)], usage={"promptTokenCount": 3}),
}

TALK = {"id": "audio_lab", "expires_at": 1_790_003_600}
RAW = "audio/L16;codec=pcm;rate=24000"
SPEECH = {
    "openai": openai_answer(
        {"audio": {**TALK, "data": b64(SOUND), "transcript": "Good day."}},
        [
            {"role": "assistant", "audio": {"id": "audio_lab", "transcript": "Good "}},
            {"audio": {"id": "audio_lab", "data": b64(SOUND[:100])}},
            {"audio": {"id": "audio_lab", "transcript": "day.", "data": b64(SOUND[100:])}},
            {"audio": {"id": "audio_lab", "expires_at": TALK["expires_at"]}},
        ],
        usage=COUNT,
    ),
    "anthropic": COUNTS["anthropic"],
    "gemini": gemini_answer(
        [inline(RAW, SOUND[:100]), inline(RAW, SOUND[100:])],
        usage={"promptTokenCount": 3, "candidatesTokenCount": 4},
    ),
}
"""Answers that contain audio, which is streamed in chunks. Anthropic's models do not generate audio."""

PAGE = {"url": "https://example.org/wien", "title": "Wien"}
WHERE = {"type": "web_search_result_location", "cited_text": "Wien ist schön.", "encrypted_index": "x", **PAGE}
FILE = {"type": "char_location", "cited_text": "Wien", "document_index": 0, "document_title": "notes.txt"}
URL_CITATION = {"type": "url_citation", "url_citation": {**PAGE, "start_index": 4, "end_index": 16}}
CITED = {
    "openai": openai_answer(
        {"content": "So: Wien, schön.", "annotations": [URL_CITATION]},
        [{"role": "assistant", "content": "So: Wien, schön."}, {"annotations": [URL_CITATION]}],
        usage=COUNT,
    ),
    "anthropic": anthropic_answer(
        [
            ({"type": "text", "text": "So: "}, text_deltas("So: ")),
            (
                {"type": "text", "text": "Wien, schön.", "citations": [WHERE, FILE]},
                [
                    {"type": "citations_delta", "citation": WHERE},
                    *text_deltas("Wien, ", "schön."),
                    {"type": "citations_delta", "citation": FILE},
                ],
            ),
        ],
        end={"stop_reason": "end_turn"},
        start_usage={"input_tokens": 3},
        end_usage={"output_tokens": 4},
    ),
    "gemini": gemini_answer(
        [{"text": "So: Wien"}, {"text": ", schön."}],
        usage={"promptTokenCount": 3, "candidatesTokenCount": 4},
        groundingMetadata={
            "groundingChunks": [{"web": {"uri": PAGE["url"], "title": PAGE["title"]}}, {"web": {"title": "nowhere"}}],
            "groundingSupports": [{"segment": {"startIndex": 4, "endIndex": 17}, "groundingChunkIndices": [0, 1, 7]}],
        },
    ),
}
"""The text `So: Wien, schön.` with a citation that covers everything after the colon."""

BROKEN_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,n0 base64!"}}
BROKEN_MESSAGE: Json = {"content": "Look:", "images": [BROKEN_PART]}
BROKEN = {
    **COUNTS,
    "openai": openai_answer(
        {"content": "Look:", "images": [BROKEN_PART]}, [{"content": "Look:", "images": [BROKEN_PART]}]
    ),
}
"""Answers that contain an image with invalid base64 data."""

HALF_CALL: Json = {
    "id": "call\ud83d",
    "type": "function",
    "function": {"name": "f\udcff", "arguments": '{"x": "\ud83d'},
}
HALF_END = '\ude00", "y": "\\ud83d"}'
HALF_INPUT = {"x": "\U0001f600", "y": "\ud83d"}
HALVES = {
    "openai": openai_answer(
        {
            "content": "So \ud83d\ude00 \ud83d",
            "reasoning_content": "hm\ude00",
            "tool_calls": [{**HALF_CALL, "function": {"name": "f\udcff", "arguments": '{"x": "\ud83d' + HALF_END}}],
        },
        [
            {"reasoning_content": "hm\ude00"},
            {"content": "So \ud83d"},
            {"content": "\ude00 \ud83d"},
            {"tool_calls": [{**HALF_CALL, "index": 0}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": HALF_END}}]},
        ],
        finish="tool_calls",
        usage=COUNT,
        system_fingerprint="fp\ud83d",
    ),
    "anthropic": anthropic_answer(
        [
            (
                {"type": "thinking", "thinking": "hm\ude00", "signature": "s\ud83d"},
                [{"type": "thinking_delta", "thinking": "hm\ude00"}],
            ),
            ({"type": "text", "text": "So \ud83d\ude00 \ud83d"}, text_deltas("So \ud83d", "\ude00 \ud83d")),
            (
                {"type": "tool_use", "id": "call\ud83d", "name": "f\udcff", "input": HALF_INPUT},
                [{"type": "input_json_delta", "partial_json": piece} for piece in ('{"x": "\ud83d', HALF_END)],
            ),
        ],
        end={"stop_reason": "tool_use"},
        start_usage={"input_tokens": 3},
        end_usage={"output_tokens": 4},
    ),
    "gemini": gemini_answer(
        [
            {"text": "hm\ude00", "thought": True},
            {"text": "So \ud83d"},
            {"text": "\ude00 \ud83d"},
            {"functionCall": {"id": "call\ud83d", "name": "f\udcff", "args": HALF_INPUT}},
        ],
        usage={"promptTokenCount": 3, "candidatesTokenCount": 4},
    ),
}
"""Answers with a lone surrogate in every text. The next chunk completes some of them, and others stay incomplete."""

RECORDINGS = {
    "broken_image": BROKEN,
    "counts": COUNTS,
    "refused": REFUSED,
    "image": IMAGE,
    "large_image": LARGE,
    "speech": SPEECH,
    "cited": CITED,
    "halves": HALVES,
}
