"""Simulated hosts. In a conversation with tools, they reject what real hosts are known to reject.

A host checks the complete history in each request. It calls its tool for three rounds, with reasoning and signatures if
the real host uses them, and then answers with text. It accepts only the ids and signatures that it issued itself, and
rejects others with the real host's message. The rules are documented by the vendors or known from reports about their
APIs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from capabilities.core.providers.hosts.worldwide import GEMINI_THROUGH_OPENAI
from capabilities.core.providers.presets import PRESETS
from tests.lab.shapes import sse
from tests.lab.vendor_rules import find_refusals

ROUNDS = 3
# Gemini accepts this placeholder for a function call whose signature it did not issue.
STAND_IN = "skip_thought_signature_validator"
OPENAI_MESSAGE = {"role", "content", "name", "tool_calls", "tool_call_id", "refusal"}
TOOL, THOUGHT = "look", "I have to look again."

Body = dict[str, Any]


class RefusedError(Exception):
    """A rejection with status 400. `param` names the parameter that is not supported."""

    def __init__(self, sentence: str, param: str | None = None) -> None:
        super().__init__(sentence)
        self.param = param


def demand(holds: object, sentence: str, param: str | None = None) -> None:
    if not holds:
        raise RefusedError(sentence, param)


@dataclass
class StrictHost:
    """A simulated host that rejects request bodies if they break its `rules`.

    `proofs` maps call ids to the signatures that the host issued. `thinks_in` is the message field with its reasoning.
    """

    name: str
    protocol: str = "openai"
    rules: tuple[Callable[[StrictHost, Body], None], ...] = ()
    thinks_in: str = ""
    proofs: dict[str, str] = field(default_factory=dict)
    calls_made: int = 0

    def answer(self, body: Body, *, stream: bool) -> bytes:
        for rule in (*COMMON[self.protocol], *self.rules):
            rule(self, body)
        return SPEAKERS[self.protocol](self, body, stream)

    def next_call(self) -> str:
        """Return a new call id. Ids are unique across all hosts."""
        self.calls_made += 1
        return f"{self.name}_call-{self.calls_made}"

    def prove(self, call_id: str) -> str:
        """Issue a signature for the reasoning that led to the call."""
        self.proofs[call_id] = f"{self.name.encode().hex()}{self.calls_made:04}"
        return self.proofs[call_id]


# Rules of OpenAI and of hosts with an OpenAI-compatible API.


def answers_every_call(host: StrictHost, body: Body) -> None:
    """OpenAI requires the results of all tool calls directly after the message that contains the calls."""
    waiting: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            demand(message["tool_call_id"] in waiting, f"no call {message['tool_call_id']!r} is waiting for a result")
            waiting.remove(message["tool_call_id"])
            continue
        demand(not waiting, f"tool_call_ids {waiting} have no result")
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
    demand(not waiting, f"tool_call_ids {waiting} have no result")


def knows_its_fields_alone(host: StrictHost, body: Body) -> None:
    """Mistral and Groq reject messages with unknown fields."""
    for message in body["messages"]:
        unknown = set(message) - OPENAI_MESSAGE
        demand(not unknown, f"property {sorted(unknown)} is unsupported")


def takes_short_call_ids(host: StrictHost, body: Body) -> None:
    """Mistral requires call ids of nine letters and digits."""
    for message in body["messages"]:
        for call_id in (message.get("tool_call_id"), *(call["id"] for call in message.get("tool_calls") or ())):
            demand(call_id is None or re.fullmatch("[a-zA-Z0-9]{9}", call_id), f"tool call id was {call_id!r}")


def wants_reasoning_of_calls(host: StrictHost, body: Body) -> None:
    """DeepSeek and Kimi require that assistant messages with tool calls contain their original reasoning."""
    for message in body["messages"]:
        if message.get("tool_calls"):
            demand(
                isinstance(message.get(host.thinks_in), str),
                f"{host.thinks_in} is missing in a message with tool calls",
            )
            own = host.proofs.get(message["tool_calls"][0]["id"])
            demand(own is None or message[host.thinks_in] == own, f"{host.thinks_in} is not what the model had thought")


def reasons(host: StrictHost, body: Body) -> None:
    """OpenAI's reasoning models reject `max_tokens`, `temperature` and `top_p`."""
    for name in ("max_tokens", "temperature", "top_p"):
        demand(name not in body, f"Unsupported parameter: {name!r} is not supported with this model", name)


def wants_google_proofs(host: StrictHost, body: Body) -> None:
    """Gemini's OpenAI-compatible endpoint requires the `thought_signature` of each turn's first function call."""
    for message in body["messages"]:
        calls = message.get("tool_calls") or ()
        if calls:
            proof = calls[0].get("extra_content", {}).get("google", {}).get("thought_signature")
            check_proof(host, calls[0]["id"], proof)


def check_proof(host: StrictHost, call_id: str, proof: Any) -> None:
    """Require the signature that was issued with the call, or the placeholder if another host issued the call."""
    own = host.proofs.get(call_id)
    demand(proof, "Function call is missing a thought_signature")
    demand(proof == own or (own is None and proof == STAND_IN), "Thought signature is not valid")


def wants_its_details(host: StrictHost, body: Body) -> None:
    """OpenRouter requires a model's `reasoning_details` to be sent back unmodified."""
    for message in body["messages"]:
        for detail in message.get("reasoning_details") or ():
            demand(detail.get("signature") in host.proofs.values(), "Invalid signature in reasoning_details")
        for call in message.get("tool_calls") or ():
            if call["id"] in host.proofs:
                signatures = [detail.get("signature") for detail in message.get("reasoning_details") or ()]
                demand(signatures == [host.proofs[call["id"]]], "reasoning_details were left out")


def speak_openai(host: StrictHost, body: Body, stream: bool) -> bytes:
    """Return a tool call with its reasoning, or the final text after `ROUNDS` calls."""
    rounds = sum(bool(message.get("tool_calls")) for message in body["messages"])
    reason, message = "stop", Body(role="assistant", content="done")
    if rounds < ROUNDS:
        reason, call_id = "tool_calls", host.next_call()
        call: Body = {"id": call_id, "type": "function", "function": {"name": TOOL, "arguments": '{"at": 1}'}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        if wants_google_proofs in host.rules:
            call["extra_content"] = {"google": {"thought_signature": host.prove(call_id)}}
        if host.thinks_in:
            message[host.thinks_in] = f"{THOUGHT} {host.calls_made}"
            host.proofs[call_id] = message[host.thinks_in]
        if wants_its_details in host.rules:
            proof, dialect = host.prove(call_id), "anthropic-claude-v1"
            detail = {"type": "reasoning.text", "text": THOUGHT, "signature": proof, "format": dialect, "index": 0}
            message["reasoning_details"] = [detail]
    if not stream:
        return dump({"id": "x", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": reason}]})
    for place, call in enumerate(message.get("tool_calls") or ()):
        call["index"] = place
    deltas = [{key: value} for key, value in message.items() if value is not None]
    chunks = [sse({"id": "x", "model": "m", "choices": [{"index": 0, "delta": delta}]}) for delta in deltas]
    last = sse({"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    return b"".join([*chunks, last, b"data: [DONE]\n\n"])


# Rules of OpenAI's Responses API.


def pairs_calls_with_results(host: StrictHost, body: Body) -> None:
    """Each function call needs an output, and each output needs a function call."""
    calls = [item["call_id"] for item in body["input"] if item["type"] == "function_call"]
    results = [item["call_id"] for item in body["input"] if item["type"] == "function_call_output"]
    demand(sorted(calls) == sorted(results), f"No tool output found for function call {set(calls) ^ set(results)}")


def keeps_thoughts_with_calls(host: StrictHost, body: Body) -> None:
    """Reject a reasoning item with invalid encrypted content or without its original function call after it."""
    for item, following in zip(body["input"], [*body["input"][1:], {}], strict=True):
        if item["type"] == "reasoning":
            proof = item["encrypted_content"]
            demand(proof in host.proofs.values(), "The encrypted content could not be verified", "input")
            own = host.proofs.get(following.get("call_id", ""))
            demand(own == proof, "'reasoning' was provided without its required following item", "input")
    if "reasoning.encrypted_content" in body.get("include", ()):
        # Each call id occurs twice, in the call and in its output, so every second one is taken.
        own = [host.proofs[item["call_id"]] for item in body["input"] if item.get("call_id") in host.proofs][::2]
        proofs = [item["encrypted_content"] for item in body["input"] if item["type"] == "reasoning"]
        demand(proofs == own, "thoughts of calls were left out")


def speak_responses(host: StrictHost, body: Body, stream: bool) -> bytes:
    content = [{"type": "output_text", "text": "done", "annotations": []}]
    items: list[Body] = [{"type": "message", "id": "msg_1", "role": "assistant", "content": content}]
    if sum(item["type"] == "function_call" for item in body["input"]) < ROUNDS:
        call_id = host.next_call()
        summary = [{"type": "summary_text", "text": THOUGHT}]
        thought = {"type": "reasoning", "id": f"rs_{host.calls_made}", "summary": summary}
        items = [
            {**thought, "encrypted_content": host.prove(call_id)},
            {
                "type": "function_call",
                "id": f"fc_{host.calls_made}",
                "call_id": call_id,
                "name": TOOL,
                "arguments": '{"at": 1}',
            },
        ]
    whole = {"id": "x", "model": "m", "status": "completed", "error": None, "output": items}
    if not stream:
        return dump(whole)
    events: list[Body] = [{"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}]
    for place, item in enumerate(items):
        if item["type"] == "message":
            events.append({"type": "response.output_text.delta", "output_index": place, "delta": "done"})
        events.append({"type": "response.output_item.done", "output_index": place, "item": item})
    events.append({"type": "response.completed", "response": whole})
    return b"".join(sse(event, event["type"]) for event in events)


# Rules of Anthropic's Messages API.


def alternates(host: StrictHost, body: Body) -> None:
    """Roles must alternate, `max_tokens` is required, and tool results must directly follow their calls."""
    demand(body.get("max_tokens"), "max_tokens: Field required")
    speakers = [message["role"] for message in body["messages"]]
    expected = ["user", "assistant"] * len(speakers)
    demand(speakers == expected[: len(speakers)], "messages: roles must alternate")
    waiting: list[str] = []
    for message in body["messages"]:
        blocks = message["content"] if isinstance(message["content"], list) else []
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        demand(results == waiting, f"tool_use ids {waiting} were found without tool_result blocks after them")
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        demand(all(re.fullmatch("[a-zA-Z0-9_-]+", call_id) for call_id in waiting), "tool_use.id: String should match")


def wants_signed_thoughts(host: StrictHost, body: Body) -> None:
    """The `thinking` block before a tool call must be sent back with the signature that was issued for this call."""
    for message in body["messages"]:
        blocks = message["content"] if isinstance(message["content"], list) else []
        proofs = [block.get("signature") for block in blocks if block["type"] == "thinking"]
        own = [
            host.proofs[block["id"]] for block in blocks if block["type"] == "tool_use" and block["id"] in host.proofs
        ]
        demand(all(proof in host.proofs.values() for proof in proofs), "Invalid `signature` in `thinking` block")
        demand(proofs == own, "Expected `thinking`, but found `tool_use`")


def speak_anthropic(host: StrictHost, body: Body, stream: bool) -> bytes:
    history = [
        block for message in body["messages"] if isinstance(message["content"], list) for block in message["content"]
    ]
    reason, blocks = "end_turn", [Body(type="text", text="done")]
    if sum(block["type"] == "tool_use" for block in history) < ROUNDS:
        reason, call_id = "tool_use", host.next_call()
        blocks = [
            {"type": "thinking", "thinking": THOUGHT, "signature": host.prove(call_id)},
            {"type": "tool_use", "id": call_id, "name": TOOL, "input": {"at": 1}},
        ]
    message = {"type": "message", "role": "assistant", "id": "x", "model": "m", "usage": {}}
    if not stream:
        return dump({**message, "content": blocks, "stop_reason": reason})
    events: list[Body] = [{"type": "message_start", "message": {**message, "content": []}}]
    for index, block in enumerate(blocks):
        events += _block_events(index, block)
    ending = {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 1}}
    return b"".join(sse(event, event["type"]) for event in (*events, ending, {"type": "message_stop"}))


def _block_events(index: int, block: Body) -> Iterator[Body]:
    empty: Body = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}, "tool_use": {"input": {}}}
    yield {"type": "content_block_start", "index": index, "content_block": block | empty[block["type"]]}
    deltas: Mapping[str, list[Body]] = {
        "text": [{"type": "text_delta", "text": block.get("text")}],
        "thinking": [
            {"type": "thinking_delta", "thinking": block.get("thinking")},
            {"type": "signature_delta", "signature": block.get("signature")},
        ],
        "tool_use": [{"type": "input_json_delta", "partial_json": json.dumps(block.get("input"))}],
    }
    for delta in deltas[block["type"]]:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


# Rules of Gemini's API.


def takes_turns(host: StrictHost, body: Body) -> None:
    """A turn with function calls must be followed by the same number of function responses."""
    waiting = 0
    for content in body["contents"]:
        responses = sum("functionResponse" in part for part in content["parts"])
        demand(responses == waiting, "the number of function response parts is not that of the function call parts")
        waiting = sum("functionCall" in part for part in content["parts"])


def wants_signed_calls(host: StrictHost, body: Body) -> None:
    """The first function call of a turn needs its own `thoughtSignature`."""
    for content in body["contents"]:
        calls = [part for part in content["parts"] if "functionCall" in part]
        if calls:
            check_proof(host, calls[0]["functionCall"].get("id", ""), calls[0].get("thoughtSignature"))


def speak_gemini(host: StrictHost, body: Body, stream: bool) -> bytes:
    """Return a thought and a function call, or the final text after `ROUNDS` calls. A stream sends each part as a
    chunk.
    """
    parts: list[Body] = [{"text": "done"}]
    if sum("functionCall" in part for content in body["contents"] for part in content["parts"]) < ROUNDS:
        call_id = host.next_call()
        call = {
            "functionCall": {"id": call_id, "name": TOOL, "args": {"at": 1}},
            "thoughtSignature": host.prove(call_id),
        }
        parts = [{"text": THOUGHT, "thought": True}, call]
    usage = {"promptTokenCount": 1, "totalTokenCount": 2}

    def chunk(contents: list[Body], **more: str) -> Body:
        candidate = {"index": 0, "content": {"role": "model", "parts": contents}, **more}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m", "responseId": "x"}

    if not stream:
        return dump(chunk(parts, finishReason="STOP"))
    return b"".join([*(sse(chunk([part])) for part in parts), sse(chunk([], finishReason="STOP"))])


def takes_its_own_requests(host: StrictHost, body: Body) -> None:
    """Reject requests that the vendor's SDK cannot produce or that the vendor's API reference rules out."""
    for sentence in find_refusals(host.protocol, body):
        raise RefusedError(sentence)


def dump(value: Any) -> bytes:
    return json.dumps(value).encode()


COMMON: Mapping[str, tuple[Callable[[StrictHost, Body], None], ...]] = {
    "openai": (answers_every_call,),
    "openai-responses": (takes_its_own_requests, pairs_calls_with_results, keeps_thoughts_with_calls),
    "anthropic": (takes_its_own_requests, alternates, wants_signed_thoughts),
    "gemini": (takes_its_own_requests, takes_turns, wants_signed_calls),
}
SPEAKERS: Mapping[str, Callable[[StrictHost, Body, bool], bytes]] = {
    "openai": speak_openai,
    "openai-responses": speak_responses,
    "anthropic": speak_anthropic,
    "gemini": speak_gemini,
}
STRICT: Mapping[str, tuple[tuple[Callable[[StrictHost, Body], None], ...], str]] = {
    "openai": ((reasons, takes_its_own_requests), ""),
    "mistral": ((knows_its_fields_alone, takes_short_call_ids), ""),
    "groq": ((knows_its_fields_alone,), ""),
    "deepseek": ((wants_reasoning_of_calls,), "reasoning_content"),
    "moonshot": ((wants_reasoning_of_calls,), "reasoning_content"),
    "openrouter": ((wants_its_details,), ""),
    "gemini-openai": ((wants_google_proofs,), ""),
}
"""Maps each host that has rules of its own to these rules and to the field with its reasoning, if any."""


PLACES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    **{preset.name: (preset.protocol, preset.quirks) for preset in PRESETS},
    "gemini-openai": ("openai", GEMINI_THROUGH_OPENAI),
}
"""Each preset's protocol and compatibility options (quirks), and those of Gemini's OpenAI-compatible endpoint."""
OFFERED = {"type": "function", "function": {"name": TOOL, "parameters": {"type": "object"}}}
"""The definition of the tool that all simulated hosts call, as a client sends it."""


def strict_host(name: str, protocol: str) -> StrictHost:
    rules, field_name = STRICT.get(name, ((), ""))
    return StrictHost(name, protocol, rules, field_name)


@cache
def known_host(name: str, protocol: str) -> StrictHost:
    """Return the simulated host with this name, which all tests of this process share."""
    return strict_host(name, protocol)
