"""Answers, streams and errors in each vendor's format, following its documentation and recorded exchanges."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass
class ReplyText:
    """The simulated model's answer, before it is written in a vendor's format.

    `tool` is the name and the arguments of a tool call, and `more` are further calls made in parallel. `call` is the
    number of the first call within the conversation.
    """

    text: str = "Hello from the lab."
    reasoning: str = ""
    tool: tuple[str, dict[str, Any]] | None = None
    finish: str = "stop"
    prompt_tokens: int = 11
    completion_tokens: int = 7
    call: int = 1
    more: tuple[tuple[str, dict[str, Any]], ...] = ()

    @property
    def calls(self) -> list[tuple[int, str, dict[str, Any]]]:
        """Return each call's number in the conversation, its name and its arguments."""
        tools = [self.tool, *self.more] if self.tool else []
        return [(self.call + offset, *tool) for offset, tool in enumerate(tools)]


@dataclass
class Frames:
    """The parts of a stream between which faults occur: frames before the content, content, finish reason, and end."""

    head: list[bytes] = field(default_factory=list)
    content: list[bytes] = field(default_factory=list)
    finish: list[bytes] = field(default_factory=list)
    done: list[bytes] = field(default_factory=list)

    def all(self) -> list[bytes]:
        return [*self.head, *self.content, *self.finish, *self.done]


def pieces(text: str, size: int = 5) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def json_bytes(value: Any) -> bytes:
    """Return the value as JSON. Lone surrogates, which UTF-8 cannot encode, are escaped, as vendors do."""
    try:
        return json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()


def sse(data: Any, event: str = "") -> bytes:
    head = f"event: {event}\n" if event else ""
    return head.encode() + b"data: " + json_bytes(data) + b"\n\n"


class OpenAI:
    """The format of OpenAI's Chat Completions API."""

    finishes = {"stop": "stop", "length": "length", "content_filter": "content_filter", "tool_calls": "tool_calls"}

    def plain(self, reply: ReplyText, model: str) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
        if reply.reasoning:
            message["reasoning_content"] = reply.reasoning
        if reply.tool:
            message["tool_calls"] = [self._call(*call) for call in reply.calls]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish}
        return {**self._envelope(model, "chat.completion"), "choices": [choice], "usage": self._usage(reply)}

    def frames(self, reply: ReplyText, model: str) -> Frames:
        deltas: list[dict[str, Any]] = [{"reasoning_content": piece} for piece in pieces(reply.reasoning)]
        deltas += [{"content": piece} for piece in pieces(reply.text)]
        for index, tool in enumerate(reply.calls):
            call = self._call(*tool)
            arguments = call["function"]["arguments"]
            first = {**call, "index": index, "function": {**call["function"], "arguments": ""}}
            deltas.append({"tool_calls": [first]})
            deltas += [{"tool_calls": [{"index": index, "function": {"arguments": p}}]} for p in pieces(arguments)]
        usage = {**self._envelope(model, "chat.completion.chunk"), "choices": [], "usage": self._usage(reply)}
        return Frames(
            head=[self._chunk(model, {"role": "assistant", "content": ""})],
            content=[self._chunk(model, delta) for delta in deltas],
            finish=[self._chunk(model, {}, reply.finish), sse(usage)],
            done=[b"data: [DONE]\n\n"],
        )

    def error(self, status: int, kind: str, message: str, code: Any = None, param: str | None = None) -> Any:
        return {"error": {"message": message, "type": kind, "param": param, "code": code}}

    def error_event(self, status: int, kind: str, message: str, code: Any = None) -> bytes:
        return sse(self.error(status, kind, message, code if code is not None else status))

    def empty(self, model: str) -> dict[str, Any]:
        return {**self._envelope(model, "chat.completion"), "choices": []}

    def bad_events(self) -> list[bytes]:
        """Return events that are not JSON, or whose JSON does not have this format."""
        return [b'data: {"choices": [{"delta"\n\n', b"data: nonsense\n\n", b"data: [1, 2]\n\n"]

    def _envelope(self, model: str, kind: str) -> dict[str, Any]:
        return {"id": "chatcmpl-lab1", "object": kind, "created": 1_790_000_000, "model": model}

    def _chunk(self, model: str, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return sse({**self._envelope(model, "chat.completion.chunk"), "choices": [choice], "usage": None})

    def _call(self, number: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
        return {"id": f"call_lab{number}", "type": "function", "function": function}

    def _usage(self, reply: ReplyText) -> dict[str, Any]:
        return {
            "prompt_tokens": reply.prompt_tokens,
            "completion_tokens": reply.completion_tokens,
            "total_tokens": reply.prompt_tokens + reply.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": 3},
            "completion_tokens_details": {"reasoning_tokens": 2 if reply.reasoning else 0},
        }


class OpenAIResponses:
    """The format of OpenAI's Responses API."""

    finishes = {
        "stop": "completed",
        "length": "max_output_tokens",
        "content_filter": "content_filter",
        "tool_calls": "completed",
    }

    def plain(self, reply: ReplyText, model: str) -> dict[str, Any]:
        reason = self.finishes[reply.finish]
        cut = reason != "completed"
        ended = {"status": "incomplete" if cut else reason, "incomplete_details": {"reason": reason} if cut else None}
        return {**self._envelope(model), **ended, "output": self._items(reply), "usage": self._usage(reply)}

    def frames(self, reply: ReplyText, model: str) -> Frames:
        begun = {"response": {**self._envelope(model), "status": "in_progress", "output": [], "usage": None}}
        frames = Frames(head=[self._event("created", begun), self._event("in_progress", begun)])
        for index, item in enumerate(self._items(reply)):
            self._item(frames.content, index, item)
        whole = self.plain(reply, model)
        frames.finish = [self._event(whole["status"], {"response": whole})]
        return frames

    def error(self, status: int, kind: str, message: str, code: Any = None, param: str | None = None) -> Any:
        return {"error": {"message": message, "type": kind, "param": param, "code": code}}

    def error_event(self, status: int, kind: str, message: str, code: Any = None) -> bytes:
        details = {"code": code if code is not None else status, "message": message, "param": None}
        return sse({"type": "error", "sequence_number": 3, **details}, "error")

    def empty(self, model: str) -> dict[str, Any]:
        return {**self._envelope(model), "status": "completed", "output": [], "usage": None}

    def bad_events(self) -> list[bytes]:
        name = b"event: response.output_text.delta\n"
        return [name + b'data: {"type":\n\n', name + b"data: nonsense\n\n", name + b"data: [1]\n\n"]

    def _envelope(self, model: str) -> dict[str, Any]:
        head = {"id": "resp_lab1", "object": "response", "created_at": 1_790_000_000, "model": model}
        return {**head, "error": None, "incomplete_details": None, "store": False}

    def _usage(self, reply: ReplyText) -> dict[str, Any]:
        return {
            "input_tokens": reply.prompt_tokens,
            "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 0},
            "output_tokens": reply.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": 2 if reply.reasoning else 0},
            "total_tokens": reply.prompt_tokens + reply.completion_tokens,
        }

    def _items(self, reply: ReplyText) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        if reply.reasoning:
            summary = [{"type": "summary_text", "text": reply.reasoning}]
            items.append({"type": "reasoning", "id": "rs_lab1", "summary": summary, "encrypted_content": "c2VjcmV0"})
        if reply.text:
            content = [{"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}]
            head = {"type": "message", "id": "msg_lab1", "role": "assistant", "status": "completed"}
            items.append({**head, "content": content})
        for number, name, arguments in reply.calls:
            written = json.dumps(arguments, ensure_ascii=False)
            head = {"type": "function_call", "id": f"fc_lab{number}", "call_id": f"call_lab{number}"}
            items.append({**head, "status": "completed", "name": name, "arguments": written})
        return items

    def _item(self, out: list[bytes], index: int, item: dict[str, Any]) -> None:
        position = {"item_id": item["id"], "output_index": index}
        blank = {"message": {"content": []}, "reasoning": {"summary": []}, "function_call": {"arguments": ""}}
        begun = {**item, **blank[item["type"]], "status": "in_progress"}
        out.append(self._event("output_item.added", {"output_index": index, "item": begun}))
        if item["type"] == "message":
            text = item["content"][0]["text"]
            part = {**position, "content_index": 0}
            out.append(self._event("content_part.added", {**part, "part": {"type": "output_text", "text": ""}}))
            out += [self._event("output_text.delta", {**part, "delta": p, "logprobs": []}) for p in pieces(text)]
            out.append(self._event("output_text.done", {**part, "text": text}))
        elif item["type"] == "reasoning":
            text, part = item["summary"][0]["text"], {**position, "summary_index": 0}
            out.append(self._event("reasoning_summary_part.added", {**part, "part": {"type": "summary_text"}}))
            out += [self._event("reasoning_summary_text.delta", {**part, "delta": p}) for p in pieces(text)]
        else:
            name, written = "function_call_arguments", item["arguments"]
            out += [self._event(f"{name}.delta", {**position, "delta": piece}) for piece in pieces(written)]
            out.append(self._event(f"{name}.done", {**position, "arguments": written}))
        out.append(self._event("output_item.done", {"output_index": index, "item": item}))

    def _event(self, name: str, fields: dict[str, Any]) -> bytes:
        return sse({"type": f"response.{name}", "sequence_number": 1, **fields}, f"response.{name}")


class Anthropic:
    """The format of Anthropic's Messages API."""

    finishes = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal", "tool_calls": "tool_use"}

    def plain(self, reply: ReplyText, model: str) -> dict[str, Any]:
        return {
            **self._envelope(model),
            "content": self._blocks(reply),
            "stop_reason": self.finishes[reply.finish],
            "usage": {**self._input(reply), "output_tokens": reply.completion_tokens},
        }

    def frames(self, reply: ReplyText, model: str) -> Frames:
        usage = {**self._input(reply), "output_tokens": 1}
        start = {"type": "message_start", "message": {**self._envelope(model), "content": [], "usage": usage}}
        frames = Frames(head=[sse(start, "message_start"), sse({"type": "ping"}, "ping")])
        for index, block in enumerate(self._blocks(reply)):
            self._block(frames.content, index, block)
        stop = {"stop_reason": self.finishes[reply.finish], "stop_sequence": None}
        end = {"type": "message_delta", "delta": stop, "usage": {"output_tokens": reply.completion_tokens}}
        frames.finish = [sse(end, "message_delta")]
        frames.done = [sse({"type": "message_stop"}, "message_stop")]
        return frames

    def error(self, status: int, kind: str, message: str, code: Any = None, param: str | None = None) -> Any:
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_lab1"}

    def error_event(self, status: int, kind: str, message: str, code: Any = None) -> bytes:
        return sse(self.error(status, kind, message), "error")

    def empty(self, model: str) -> dict[str, Any]:
        usage = {"input_tokens": 4, "output_tokens": 0}
        return {**self._envelope(model), "content": [], "stop_reason": "end_turn", "usage": usage}

    def bad_events(self) -> list[bytes]:
        return [
            b'event: content_block_delta\ndata: {"type":\n\n',
            b"event: content_block_delta\ndata: nonsense\n\n",
            b"event: content_block_delta\ndata: [1]\n\n",
        ]

    def _envelope(self, model: str) -> dict[str, Any]:
        return {
            "id": "msg_lab1",
            "type": "message",
            "role": "assistant",
            "model": model,
            "stop_reason": None,
            "stop_sequence": None,
        }

    def _input(self, reply: ReplyText) -> dict[str, Any]:
        cached = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 3}
        return {"input_tokens": reply.prompt_tokens - 3, **cached}

    def _blocks(self, reply: ReplyText) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        if reply.reasoning:
            blocks.append({"type": "thinking", "thinking": reply.reasoning, "signature": "c2lnbmVk"})
        if reply.text:
            blocks.append({"type": "text", "text": reply.text})
        for number, name, arguments in reply.calls:
            blocks.append({"type": "tool_use", "id": f"toolu_lab{number}", "name": name, "input": arguments})
        return blocks

    def _block(self, out: list[bytes], index: int, block: dict[str, Any]) -> None:
        blank = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}, "tool_use": {"input": {}}}
        start = {**block, **blank[block["type"]]}
        deltas: list[dict[str, Any]]
        if block["type"] == "text":
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
        elif block["type"] == "thinking":
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        else:
            arguments = json.dumps(block["input"], ensure_ascii=False)
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(arguments)]
        out.append(sse({"type": "content_block_start", "index": index, "content_block": start}, "content_block_start"))
        event = "content_block_delta"
        out.extend(sse({"type": event, "index": index, "delta": delta}, event) for delta in deltas)
        out.append(sse({"type": "content_block_stop", "index": index}, "content_block_stop"))


class Gemini:
    """The format of Gemini's `generateContent`."""

    finishes = {"stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY", "tool_calls": "STOP"}
    statuses = {
        400: "INVALID_ARGUMENT",
        401: "UNAUTHENTICATED",
        403: "PERMISSION_DENIED",
        404: "NOT_FOUND",
        429: "RESOURCE_EXHAUSTED",
        500: "INTERNAL",
        503: "UNAVAILABLE",
        504: "DEADLINE_EXCEEDED",
    }

    def plain(self, reply: ReplyText, model: str) -> dict[str, Any]:
        return self._chunk(reply, model, self._parts(reply), self.finishes[reply.finish])

    def frames(self, reply: ReplyText, model: str) -> Frames:
        parts = [{"text": piece, "thought": True} for piece in pieces(reply.reasoning)]
        parts += [{"text": piece} for piece in pieces(reply.text)]
        parts += [part for part in self._parts(reply) if "functionCall" in part]
        return Frames(
            content=[sse(self._chunk(reply, model, [part])) for part in parts],
            finish=[sse(self._chunk(reply, model, [{"text": ""}], self.finishes[reply.finish]))],
        )

    def error(self, status: int, kind: str, message: str, code: Any = None, param: str | None = None) -> Any:
        return {"error": {"code": status, "message": message, "status": self.statuses.get(status, "UNKNOWN")}}

    def error_event(self, status: int, kind: str, message: str, code: Any = None) -> bytes:
        return sse(self.error(status, kind, message))

    def empty(self, model: str) -> dict[str, Any]:
        return {"candidates": [], "modelVersion": model, "responseId": "lab1"}

    def bad_events(self) -> list[bytes]:
        return [b'data: {"candidates": [\n\n', b"data: nonsense\n\n", b"data: [3]\n\n"]

    def _parts(self, reply: ReplyText) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = []
        if reply.reasoning:
            parts.append({"text": reply.reasoning, "thought": True})
        if reply.text:
            parts.append({"text": reply.text})
        for number, name, arguments in reply.calls:
            signed = {} if parts and "functionCall" in parts[-1] else {"thoughtSignature": "c2lnbmVk"}
            parts.append({"functionCall": {"id": f"lab{number}", "name": name, "args": arguments}, **signed})
        return parts

    def _chunk(
        self, reply: ReplyText, model: str, parts: list[dict[str, Any]], finish: str | None = None
    ) -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
        usage = {"promptTokenCount": reply.prompt_tokens, "totalTokenCount": reply.prompt_tokens}
        if finish:
            candidate["finishReason"] = finish
            usage |= {
                "candidatesTokenCount": reply.completion_tokens,
                "totalTokenCount": reply.prompt_tokens + reply.completion_tokens,
                "cachedContentTokenCount": 3,
            }
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model, "responseId": "lab1"}


Vendor = OpenAI | OpenAIResponses | Anthropic | Gemini
VENDORS: dict[str, Vendor] = {
    "openai": OpenAI(),
    "openai-responses": OpenAIResponses(),
    "anthropic": Anthropic(),
    "gemini": Gemini(),
}
