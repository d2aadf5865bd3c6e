"""The answers of recordings.py in the format of OpenAI's Responses API, complete and as stream events."""

from __future__ import annotations

from typing import Any

from tests.lab.recordings import HALF_END, PAGE, PHOTO, PICTURE, Recording, b64

Json = dict[str, Any]
COUNT = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}


def response(
    items: list[Json], deltas: list[Json], *, usage: Json = COUNT, cut: str | None = None, **more: Any
) -> Recording:
    """Return a response made of output items, and its stream: the deltas, then the complete items.

    `cut` is the reason why the response is incomplete.
    """
    head: Json = {"id": "resp_lab2", "object": "response", "model": "lab-model", "error": None, **more}
    ending = {"status": "incomplete" if cut else "completed", "incomplete_details": {"reason": cut} if cut else None}
    whole = {**head, **ending, "output": items, "usage": usage}
    begun = {**head, "status": "in_progress", "output": [], "usage": None}
    done = [
        {"type": "response.output_item.done", "output_index": place, "item": item} for place, item in enumerate(items)
    ]
    end = {"type": f"response.{ending['status']}", "response": whole}
    return Recording(whole, [{"type": "response.created", "response": begun}, *deltas, *done, end])


def message(*content: Json) -> Json:
    return {"type": "message", "id": "msg_lab2", "role": "assistant", "status": "completed", "content": list(content)}


def output_text(text: str, *annotations: Json) -> Json:
    return {"type": "output_text", "text": text, "annotations": list(annotations), "logprobs": []}


def say(text: str) -> Json:
    return {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": text, "logprobs": []}


def image(data: bytes) -> Json:
    return {"type": "image_generation_call", "id": "ig_lab2", "status": "completed", "result": b64(data)}


CITATION = {"type": "url_citation", **PAGE, "start_index": 4, "end_index": 16}
COUNTED = {
    "input_tokens": 140,
    "input_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 100},
    "output_tokens": 30,
    "output_tokens_details": {"reasoning_tokens": 7},
    "total_tokens": 170,
}
COUNTS = response(
    [message(output_text("Counted."))], [say("Coun"), say("ted.")], usage=COUNTED, service_tier="priority"
)

THOUGHT = {"type": "reasoning", "id": "rs_lab2", "summary": [{"type": "summary_text", "text": "hm\ude00"}]}
CALL = {"type": "function_call", "id": "fc_lab2", "call_id": "call\ud83d", "name": "f\udcff"}
ARGUMENTS = ('{"x": "\ud83d', HALF_END)

RESPONSE_RECORDINGS: dict[str, Recording] = {
    "counts": COUNTS,
    "speech": COUNTS,  # The Responses API has no audio output.
    "broken_image": COUNTS,
    "refused": response(
        [message({"type": "refusal", "refusal": "No."})],
        [{"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": "No."}],
        cut="content_filter",
    ),
    "halves": response(
        [THOUGHT, message(output_text("So \ud83d\ude00 \ud83d")), {**CALL, "arguments": "".join(ARGUMENTS)}],
        [
            {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "hm\ude00"},
            say("So \ud83d"),
            say("\ude00 \ud83d"),
            {"type": "response.output_item.added", "output_index": 2, "item": {**CALL, "arguments": ""}},
            *(
                {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": piece}
                for piece in ARGUMENTS
            ),
        ],
    ),
    "image": response([image(PICTURE)], []),
    "large_image": response([image(PHOTO)], []),
    "cited": response(
        [message(output_text("So: Wien, schön.", CITATION))],
        [
            say("So: Wien, schön."),
            {"type": "response.output_text.annotation.added", "output_index": 0, "annotation": CITATION},
        ],
    ),
}
