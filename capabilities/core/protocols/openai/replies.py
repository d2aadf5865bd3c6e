"""What OpenAI and its like answer as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capabilities.core.message import ToolCall
from capabilities.core.protocols.answer_fields import logprobs_of
from capabilities.core.protocols.arguments import called_in, text_of
from capabilities.core.protocols.errors import bad_shape, failure_inside, object_of
from capabilities.core.protocols.fields import filled
from capabilities.core.protocols.finish import Ending, ending_of, own_word
from capabilities.core.protocols.openai.finish import BROKEN, ENDINGS
from capabilities.core.protocols.openai.supplements import supplement_of
from capabilities.core.protocols.openai.usage import usage_of
from capabilities.core.protocols.thought_fields import message_thoughts, signature_of
from capabilities.core.wire import NO_DETAILS, Answer, AnswerDetails, Failure, Fault
from capabilities.core.worded import worded


def decode(status: int, headers: Mapping[str, str], body: bytes, now: float | None = None) -> Answer | Failure:
    """The outcome of a whole response."""
    value = object_of(status, headers, body, now)
    if isinstance(value, Failure):
        return value
    if is_error(value):
        return failure_inside(value)
    if "choices" not in value:
        return bad_shape(worded("the answer has no choices"))
    outcome = _outcome(value, value["choices"])
    return outcome.counted(usage_of(value.get("usage"))) if isinstance(outcome, Failure) else outcome


def _outcome(value: dict[str, Any], choices: Any) -> Answer | Failure:
    if not choices:
        return Failure(Fault.EMPTY_CHOICES, worded("the answer has no candidate"), 200)
    if not isinstance(choices, list) or not isinstance(choices[0], dict):
        return bad_shape(worded("%(name)s is not a list of objects", name="choices"))
    return _answer(value, choices[0])


def is_error(value: Mapping[str, Any]) -> bool:
    """Whether a good status hides an error (OpenRouter by design, MiniMax in its own words)."""
    base = value.get("base_resp")
    if isinstance(base, Mapping) and base.get("status_code"):
        return True
    return not value.get("choices") and bool(value.get("error") or value.get("object") == "error")


def _answer(value: dict[str, Any], choice: dict[str, Any]) -> Answer | Failure:
    reason = choice.get("finish_reason")
    if isinstance(reason, str) and reason in BROKEN:
        return broken_off(choice, reason)
    message = choice.get("message")
    if not isinstance(message, dict):
        return bad_shape(worded("the candidate has no message"))
    calls = _calls(message.get("tool_calls"))
    text, thought = text_and_thoughts(message.get("content"))
    reasoning = reasoning_of(message) or thought or None
    refusal = message.get("refusal") if isinstance(message.get("refusal"), str) else None
    ending = ending_of(ENDINGS, reason, has_calls=bool(calls))
    thoughts, beside = message_thoughts(message), supplement_of(message)
    if not (text or calls or reasoning or refusal or thoughts or beside.media or ending.explains_silence):
        return Failure(Fault.EMPTY_CONTENT, worded("the model returned nothing"), 200)
    usage, model, identity = usage_of(value.get("usage")), filled(value.get("model")), filled(value.get("id"))
    details = details_of(value, choice, ending)
    said = (text, calls, reasoning, refusal, ending.word, usage, model, identity, details)
    return Answer(*said, thoughts, logprobs_of(choice.get("logprobs")), *beside)


def details_of(value: Mapping[str, Any], choice: Mapping[str, Any], ending: Ending) -> AnswerDetails:
    """What stands beside an answer, or beside the last chunk of one; OpenRouter names the vendor's own reason, too.

    vLLM names the stop sequence it met as `stop_reason`, SGLang as `matched_stop`; a number there is a token's.
    """
    word = own_word(choice.get("native_finish_reason") or choice.get("finish_reason"), ending)
    tier, fingerprint = filled(value.get("service_tier")), filled(value.get("system_fingerprint"))
    sequence = filled(choice.get("stop_reason")) or filled(choice.get("matched_stop"))
    if not (word or tier or fingerprint or sequence):
        return NO_DETAILS
    return AnswerDetails(word, None, tier, fingerprint, sequence)


def broken_off(choice: Mapping[str, Any], reason: str) -> Failure:
    """The failure of a candidate that stopped for a reason of `BROKEN`."""
    if isinstance(choice.get("error"), Mapping):
        return failure_inside(choice)
    sentence = worded("the model stopped with %(reason)s", reason=reason)
    return failure_inside({"error": {"message": sentence, "code": BROKEN[reason]}})


def _calls(value: Any) -> tuple[ToolCall, ...]:
    """The tool calls; arguments that came as an object become the text they should have been."""
    calls = []
    for index, item in enumerate(value if isinstance(value, list) else []):
        called, text, custom = called_in(item) if isinstance(item, dict) else ({}, None, False)
        name = called.get("name")
        if isinstance(name, str):
            identity = filled(item.get("id")) or f"call_{index}"
            calls.append(ToolCall(identity, name, text_of(text), signature_of(item), custom))
    return tuple(calls)


def text_and_thoughts(content: Any) -> tuple[str, str]:
    """Words and thoughts of a content that is a text or, at Mistral, a list of chunks."""
    if isinstance(content, str):
        return content, ""
    words, thoughts = "", ""
    for chunk in content if isinstance(content, list) else []:
        if not isinstance(chunk, dict):
            continue
        if isinstance(chunk.get("text"), str):
            words += chunk["text"]
        elif chunk.get("type") == "thinking":
            thoughts += text_and_thoughts(chunk.get("thinking"))[0]
    return words, thoughts


def reasoning_of(message: Mapping[str, Any]) -> str:
    """The thoughts of a message, under whichever of their two names; empty where there are none."""
    for name in ("reasoning_content", "reasoning"):
        if isinstance(message.get(name), str) and message[name]:
            return str(message[name])
    return ""
