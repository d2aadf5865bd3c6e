"""From OpenAI's chat request to our canonical one, and what it says about routing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from artifacts.core.artifact import REF_PREFIX
from capabilities.core.message import ChatRequest
from capabilities.core.values import TEMPERATURE
from routing_admin.gateway.chat.messages import MessageReader
from routing_admin.gateway.chat.tools import read_choice, read_tools
from routing_admin.gateway.chat_api import SMALL_BYTES, ChatCall, read_answer_count, read_wishes
from routing_admin.gateway.counts import check_counts
from routing_admin.gateway.fields import (
    STRINGS,
    Object,
    check_object,
    read_count,
    read_flag,
    read_number,
    refusal_of_type,
    require_text,
)
from routing_admin.gateway.inner_fields import other_fields
from routing_admin.gateway.media import Find

OURS = frozenset(
    {
        *("model", "messages", "stream", "stream_options", "task_type", "language", "temperature", "top_p", "stop"),
        *("max_tokens", "max_completion_tokens", "tools", "tool_choice", "parallel_tool_calls", "response_format"),
        *("functions", "function_call", "n"),
    }
)
"""Fields that are read here; every other one goes along as it came."""
WORDS = ("text", "refusal")
"""Types of parts that are no files."""
MEDIA = {"image_url": "url", "video_url": "url", "input_audio": "data"}
"""Types of parts that hold media, and where in them it stands."""


def parse(body: Object, find: Find) -> ChatCall:
    """The call in a JSON object. Raises `BadRequestError` with `param`."""
    wishes = read_wishes(body)
    check_counts(body, "messages")
    options = check_object(body.get("stream_options") or {}, "stream_options")
    chat = chat_of(body, find)
    stream = read_flag(body, "stream") or False
    counted, old_calls = read_flag(options, "include_usage") or False, bool(chat.tools) and not body.get("tools")
    call = ChatCall(chat, wishes.model, wishes.task_type, wishes.language, stream, counted, old_calls)
    count = read_answer_count(body, "n") if "n" in body else 1
    return call if count == 1 else replace(call, count=count)


def needs_thread(body: Object, size: int) -> bool:
    """Whether reading the messages may ask for rows, or look into more than a small picture or sound.

    `size` is that of the body in bytes. What is written wrongly needs none: it is refused at once.
    """
    messages = body.get("messages")
    return isinstance(messages, list) and any(_needs_thread(each, size) for each in messages if isinstance(each, dict))


def _needs_thread(message: Object, size: int) -> bool:
    content, from_tool = message.get("content"), message.get("role") == "tool"
    if isinstance(content, str):
        return from_tool and content.lstrip()[:1] == "{"
    if not isinstance(content, list):
        return False
    return from_tool or not all(_is_at_hand(part, size) for part in content if isinstance(part, dict))


def _is_at_hand(part: Object, size: int) -> bool:
    """Whether a part is words, or media that stands in the request itself and is small."""
    kind = part.get("type")
    if kind in WORDS:
        return True
    if not isinstance(kind, str) or kind not in MEDIA:
        return False
    inner = part.get(kind)
    data = inner.get(MEDIA[kind]) if isinstance(inner, dict) else inner
    return isinstance(data, str) and not data.startswith(REF_PREFIX) and size <= SMALL_BYTES


def chat_of(body: Object, find: Find) -> ChatRequest:
    """The canonical request."""
    reader = MessageReader(find)
    choice = read_choice(body)
    shape = body.get("response_format")
    if shape is not None:
        require_text(check_object(shape, "response_format"), "type", "response_format")
    most, older = _read_limit(body, "max_completion_tokens"), _read_limit(body, "max_tokens")
    messages = reader.read_all(body.get("messages"))
    return ChatRequest(
        messages,
        read_number(body, "temperature", *TEMPERATURE),
        most if most is not None else older,
        read_number(body, "top_p", 0, 1),
        _read_stop(body.get("stop")),
        read_tools(body, reader.inner),
        choice.word,
        choice.name,
        read_flag(body, "parallel_tool_calls"),
        shape,
        {key: value for key, value in body.items() if key not in OURS and value is not None},
        choice.allowed,
        (*reader.inner, *_list_options(body["stream_options"])) if "stream_options" in body else tuple(reader.inner),
    )


def _read_limit(body: Object, key: str) -> int | None:
    """A limit on tokens; -1 says that there is none, as LM Studio writes it."""
    return None if body.get(key) == -1 else read_count(body, key)


def _list_options(options: Any) -> list[str]:
    return other_fields(options, {"include_usage"}, "stream_options") if isinstance(options, dict) else []


def _read_stop(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(each, str) for each in words):
        raise refusal_of_type(STRINGS, "stop")
    return tuple(words)
