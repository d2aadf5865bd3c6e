"""What OpenAI's Responses answers as a whole: items, read in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from capabilities.core.message import ToolCall, VendorItem
from capabilities.core.protocols.answer_fields import list_tokens
from capabilities.core.protocols.arguments import text_of
from capabilities.core.protocols.errors import bad_shape, failure_inside, object_of
from capabilities.core.protocols.fields import filled
from capabilities.core.protocols.finish import Ending, ending_of, own_word
from capabilities.core.protocols.openai_responses.finish import ENDINGS, FAILURES, reason_of
from capabilities.core.protocols.openai_responses.supplements import annotations_of, media_of
from capabilities.core.protocols.openai_responses.usage import usage_of
from capabilities.core.protocols.vendor_tools import word_of_block
from capabilities.core.thoughts import ReasoningBlock, ThoughtForm
from capabilities.core.wire import NO_DETAILS, Answer, AnswerDetails, Failure, Fault
from capabilities.core.worded import worded

DIALECT = "openai-responses-v1"
"""What OpenRouter calls thoughts that are written like these."""
CALLS: Mapping[str, str] = {"function_call": "arguments", "custom_tool_call": "input"}
"""Items that call one of the caller's tools, and the field that says with what."""
Item = Mapping[str, Any]


def decode(status: int, headers: Mapping[str, str], body: bytes, now: float | None = None) -> Answer | Failure:
    """The outcome of a whole response."""
    value = object_of(status, headers, body, now)
    if isinstance(value, Failure):
        return value
    if value.get("error") or filled(value.get("status")) in FAILURES:
        return failure_of_state(value)
    if not isinstance(value.get("output"), list):
        return bad_shape(worded("the answer has no output items"))
    return answer_of(value)


def failure_of_state(response: Mapping[str, Any]) -> Failure:
    """The failure of a response that has failed, was called off, or is not at its end, with what it took."""
    return _failure_of_state(response).counted(usage_of(response.get("usage")))


def _failure_of_state(response: Mapping[str, Any]) -> Failure:
    if response.get("error"):
        return failure_inside(response)
    state = str(response.get("status"))
    sentence = worded("the response ended as %(state)s", state=state)
    return failure_inside({"error": {"message": sentence, "code": FAILURES.get(state, 500)}})


def answer_of(response: Mapping[str, Any]) -> Answer | Failure:
    """The answer of a response that is at its end."""
    items = items_of(response)
    parts = [part for item in items if item.get("type") == "message" for part in parts_of(item)]
    text = "".join(words_of(part, "output_text", "text") for part in parts)
    refusal = "".join(words_of(part, "refusal", "refusal") for part in parts)
    reasoning = "\n\n".join(filter(None, (reasoning_of(item) for item in items)))
    calls = tuple(call_of(item, at) for at, item in enumerate(filter(is_call, items)))
    media = tuple(each for item in items for each in media_of(item))
    thoughts, vendor, reason = tuple(_thoughts(items)), tuple(_vendor_items(items)), reason_of(response)
    ending = ending_of(ENDINGS, reason, has_calls=bool(calls))
    if not (text or calls or reasoning or refusal or thoughts or media or vendor or ending.explains_silence):
        nothing = Failure(Fault.EMPTY_CONTENT, worded("the model returned nothing"), 200)
        return nothing.counted(usage_of(response.get("usage")))
    usage, model, identity = usage_of(response.get("usage")), filled(response.get("model")), filled(response.get("id"))
    said = (text, calls, reasoning or None, refusal or None, ending.word, usage, model, identity)
    beside = (logprobs_of(parts), media, tuple(each for part in parts for each in annotations_of(part)))
    return Answer(*said, details_of(response, ending), thoughts, *beside, vendor)


def items_of(response: Mapping[str, Any]) -> list[Item]:
    """The items of the output; what is none is passed over."""
    output = response.get("output")
    return [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []


def parts_of(item: Item, name: str = "content") -> list[Mapping[str, Any]]:
    """The parts of an item."""
    listed = item.get(name)
    return [part for part in listed if isinstance(part, dict)] if isinstance(listed, list) else []


def words_of(part: Mapping[str, Any], kind: str, name: str) -> str:
    """The text under `name` of a part of that kind; empty where there is none."""
    words = part.get(name)
    return words if part.get("type") == kind and isinstance(words, str) else ""


def text_of_item(item: Item) -> str:
    """The words of an item."""
    return "".join(words_of(part, "output_text", "text") for part in parts_of(item))


def details_of(response: Mapping[str, Any], ending: Ending) -> AnswerDetails:
    """What stands beside an answer; that it is complete says nothing more."""
    reason = reason_of(response)
    word, tier = None if reason == "completed" else own_word(reason, ending), filled(response.get("service_tier"))
    return AnswerDetails(word, None, tier) if word or tier else NO_DETAILS


def reasoning_of(item: Item) -> str:
    """What can be read of the thoughts of an item: their words where they are told, else the summary."""
    if item.get("type") != "reasoning":
        return ""
    told = "".join(words_of(part, "reasoning_text", "text") for part in parts_of(item))
    return told or "\n\n".join(words_of(part, "summary_text", "text") for part in parts_of(item, "summary"))


def thoughts_of(item: Item, offset: int, calls: int) -> Iterator[ReasoningBlock]:
    """What an item wants to be shown again: its summary, and what only its maker can read."""
    identity, proof = filled(item.get("id")), filled(item.get("encrypted_content"))
    if item.get("type") != "reasoning" or proof is None:
        return
    for part in parts_of(item, "summary"):
        if words := words_of(part, "summary_text", "text"):
            yield ReasoningBlock(ThoughtForm.SUMMARY, words, None, offset, calls, identity, DIALECT)
    yield ReasoningBlock(ThoughtForm.ENCRYPTED, "", proof, offset, calls, identity, DIALECT)


OURS = ("message", "reasoning", "image_generation_call", *CALLS)
"""Items that every API has something like; all others are OpenAI's own."""


def is_own(item: Item) -> bool:
    """Whether an item is of one of its own tools."""
    kind = filled(item.get("type"))
    return kind is not None and kind not in OURS


def vendor_item(item: Item, value: Mapping[str, Any] | None = None, *place: int) -> VendorItem:
    """Return an item of its own tools, or one of the events that bring it, for a caller of the same API."""
    return VendorItem("openai-responses", word_of_block(item), item if value is None else value, "", *place)


def _vendor_items(items: Iterable[Item]) -> Iterator[VendorItem]:
    offset = calls = thoughts = 0
    for item in items:
        if is_own(item):
            yield vendor_item(item, None, offset, calls, thoughts)
        thoughts += len(list(thoughts_of(item, offset, calls)))
        offset += len(text_of_item(item))
        calls += is_call(item)


def _thoughts(items: Iterable[Item]) -> Iterator[ReasoningBlock]:
    offset = calls = 0
    for item in items:
        yield from thoughts_of(item, offset, calls)
        offset += len(text_of_item(item))
        calls += is_call(item)


def is_call(item: Item) -> bool:
    """Whether an item calls one of the caller's tools."""
    return filled(item.get("type")) in CALLS and isinstance(item.get("name"), str)


def call_of(item: Item, at: int) -> ToolCall:
    """The call of such an item, the `at`-th of the answer."""
    kind = str(item["type"])
    identity = filled(item.get("call_id")) or filled(item.get("id")) or f"call_{at}"
    return ToolCall(identity, item["name"], text_of(item.get(CALLS[kind])), custom=kind == "custom_tool_call")


def logprobs_of(parts: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """How probable the words were, as chat completions write it."""
    listed = [part["logprobs"] for part in parts if isinstance(part.get("logprobs"), list)]
    tokens = [token for each in listed for token in list_tokens(each)]
    return {"content": tokens, "refusal": None} if tokens else None
