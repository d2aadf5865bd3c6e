"""Limit the messages, parts and tools of a call, because examining very many of them would delay other agents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.conf import settings

from capabilities.core.translatable import translatable
from capabilities.json_bodies import JsonTooLargeError, check_inner_json
from routing_admin.gateway.errors import BadRequestError
from routing_admin.gateway.fields import Object

PARTS, DECLARED = "parts", ("functionDeclarations", "function_declarations")
PART_FIELDS = (
    "content",
    "output",
    "tool_calls",
    "source",
    "summary",
    *(PARTS, "functionResponse", "function_response"),
)
"""Fields of a message, item or part that contain further parts; the last three are Gemini's."""

CROWDED_ITEMS = 300
"""A call with more messages and parts than this is examined as heavy work.

Examining this many may take 30 ms, because replacing one image URL by its description takes 100 microseconds.
"""


def check_counts(body: Object, messages: str) -> None:
    """Raise `BadRequestError` for too many messages, parts or tools; `messages` is the name of that field."""
    listed = body.get(messages)
    if type(listed) is list:
        _check(len(listed), "MAX_MESSAGES", messages)
        _check(_count_parts(listed), "MAX_PARTS", messages)
        try:
            # Arguments of tool calls are JSON inside a string, so the body's parser has not counted the values in them.
            check_inner_json([text for message in listed if type(message) is dict for text in _arguments(message)])
        except JsonTooLargeError as error:
            raise BadRequestError(error.sentence, messages, error.code, error.status) from None
    for name in ("system", "tools", "functions"):
        if type(items := body.get(name)) is list:
            _check(_count_tools(items), "MAX_PARTS" if name == "system" else "MAX_TOOLS", name)
    if type(system := body.get("systemInstruction")) is dict:
        _check(_count_parts([system]), "MAX_PARTS", "systemInstruction")


def _count_tools(items: list[Any]) -> int:
    # Gemini declares several functions inside one tool.
    declared = [tool.get(name) for tool in items if type(tool) is dict for name in DECLARED]
    return max(len(items), sum(len(functions) for functions in declared if type(functions) is list))


def _arguments(message: Object) -> Iterator[str]:
    calls = message.get("tool_calls")
    for call in (message, *(calls if type(calls) is list else ())):
        if type(call) is dict:
            for source in (call, call.get("function"), call.get("function_call")):
                if type(source) is dict and type(text := source.get("arguments")) is str:
                    yield text


def is_crowded(body: Object) -> bool:
    """Return whether a call has so many messages and parts that examining them would delay other agents."""
    return any(
        len(listed) > CROWDED_ITEMS or len(listed) + _count_parts(listed) > CROWDED_ITEMS
        for name in ("messages", "input", "contents")
        if type(listed := body.get(name)) is list
    )


def _count_parts(messages: list[Any]) -> int:
    count, pending = 0, list(messages)
    while pending:
        node = pending.pop()
        if type(node) is not dict:
            continue
        for name, inner in node.items():
            if type(inner) is list and name in PART_FIELDS:
                count += len(inner)
                pending += inner
            elif type(inner) is dict and name in PART_FIELDS:
                pending.append(inner)
    return count


def _check(count: int, setting: str, param: str) -> None:
    limit = getattr(settings, setting)
    if count > limit:
        message = translatable(
            "%(param)s has %(count)s items; one call can have %(most)s (%(setting)s). Send fewer.",
            param=param,
            count=count,
            most=limit,
            setting=f"ROUTING_ADMIN_{setting}",
        )
        raise BadRequestError(message, param, "too_many_items")
