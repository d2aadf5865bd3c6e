"""What vendors take of tools: how a name is written and how long the id of a call may be.

A name or an id that breaks the rule is sent as another one that always stands for it, so that a conversation keeps
its prefix; names in an answer become the caller's again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from capabilities.core.message import ChatRequest, Message
from capabilities.core.values import value_class
from capabilities.core.wire import Answer, Delta, StreamEvent

MAX_NAME_CHARS = 64
HASH_CHARS = 8
NO_NAMES: Mapping[str, str] = MappingProxyType({})


@value_class
class ToolRule:
    """How the vendors of a protocol write the name of a tool, and the most characters of a call's id."""

    name: re.Pattern[str]
    most_id_chars: int | None


_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}")
RULES: Mapping[str, ToolRule] = MappingProxyType(
    {
        "openai": ToolRule(_PLAIN, 40),
        "openai-responses": ToolRule(_PLAIN, 64),
        "anthropic": ToolRule(_PLAIN, 64),
        "gemini": ToolRule(re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}"), None),
    }
)
"""By protocol; from the vendors' references on function calling (2026-11) and the sentences of their refusals."""
_OTHER = re.compile(r"[^A-Za-z0-9_-]")


def fit_tools(chat: ChatRequest, protocol: str) -> tuple[ChatRequest, Mapping[str, str]]:
    """Return the request with names and ids as the protocol takes them, and the caller's name by each other one."""
    rule = RULES.get(protocol)
    if rule is None:
        return chat, NO_NAMES
    called = [call for message in chat.messages for call in message.tool_calls]
    asked = [tool.name for tool in chat.tools] + [call.name for call in called]
    names = {name: _fit_name(name) for name in asked if not rule.name.fullmatch(name)}
    most = rule.most_id_chars
    ids = {call.id: _fit_id(call.id) for call in called if most is not None and len(call.id) > most}
    if not (names or ids):
        return chat, NO_NAMES
    fitted = replace(
        chat,
        messages=tuple(_fit_message(message, names, ids) for message in chat.messages),
        tools=tuple(replace(tool, name=names.get(tool.name, tool.name)) for tool in chat.tools),
        tool_name=names.get(chat.tool_name, chat.tool_name) if chat.tool_name else None,
        allowed_tools=tuple(names.get(name, name) for name in chat.allowed_tools),
    )
    return fitted, {sent: name for name, sent in names.items()}


def _fit_name(name: str) -> str:
    """The name in plain letters with a hash of it behind, which keeps apart what was different."""
    start = _OTHER.sub("_", name)[: MAX_NAME_CHARS - HASH_CHARS - 2]
    if not start[:1].isalpha():
        start = f"_{start}"
    return f"{start}_{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:HASH_CHARS]}"


def _fit_id(call_id: str) -> str:
    return f"call_{hashlib.sha256(call_id.encode('utf-8', 'replace')).hexdigest()[:24]}"


def _fit_message(message: Message, names: Mapping[str, str], ids: Mapping[str, str]) -> Message:
    answered = message.tool_call_id
    if not (message.tool_calls or answered):
        return message
    return replace(
        message,
        tool_calls=tuple(
            replace(call, id=ids.get(call.id, call.id), name=names.get(call.name, call.name))
            for call in message.tool_calls
        ),
        tool_call_id=ids.get(answered, answered) if answered else None,
        name=names.get(message.name, message.name) if answered and message.name else message.name,
    )


def restore_names(answer: Answer, names: Mapping[str, str]) -> Answer:
    """Return the answer with the caller's names of the tools that it calls."""
    calls = tuple(replace(call, name=names.get(call.name, call.name)) for call in answer.tool_calls)
    return replace(answer, tool_calls=calls)


def restore_names_in(event: StreamEvent, names: Mapping[str, str]) -> StreamEvent:
    """Return the event of a stream with the caller's names; a vendor sends a name whole."""
    if not isinstance(event, Delta) or not event.tool_calls:
        return event
    calls = tuple(replace(call, name=names.get(call.name or "", call.name)) for call in event.tool_calls)
    return event._replace(tool_calls=calls)
