"""In which language a model is asked to answer: the directive and where it stands (MMR-P11, decision 12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from capabilities.core.message import ChatRequest, Message, Role, TextPart, find_opening_system

LANGUAGE_DIRECTIVES: Mapping[str, str] = MappingProxyType(
    {"en": "Please respond in English.", "zh": "请使用中文回答。"}
)
"""The built-in languages and what is said to a model for each (seed 003)."""

FALLBACK_LANGUAGE = "en"


def match_language(tag: str | None, directives: Mapping[str, str] = LANGUAGE_DIRECTIVES) -> str | None:
    """The supported language a tag means: exactly, else by its primary subtag (`zh-CN` → `zh`); None when neither."""
    if not tag:
        return None
    if tag in directives:
        return tag
    folded = {supported.lower(): supported for supported in directives}
    plain = tag.replace("_", "-").lower()
    return folded.get(plain) or folded.get(plain.split("-", 1)[0])


def resolve_language(tag: str | None, default: str | None, directives: Mapping[str, str] = LANGUAGE_DIRECTIVES) -> str:
    """The request's language if supported, else the configuration's default, else `en`."""
    return match_language(tag, directives) or match_language(default, directives) or FALLBACK_LANGUAGE


def get_language_directive(
    language: str | None, default_language: str | None, directives: Mapping[str, str] = LANGUAGE_DIRECTIVES
) -> str:
    """The directive for a language, or the default language's when it is not supported (seed 003)."""
    resolved = resolve_language(language, default_language, directives)
    return directives.get(resolved) or LANGUAGE_DIRECTIVES[FALLBACK_LANGUAGE]


def with_directive(system_prompt: str | None, directive: str) -> str:
    """The directive, one line break, then the prompt; the directive alone when there is none; never twice."""
    if not system_prompt:
        return directive
    if system_prompt == directive or system_prompt.startswith(directive + "\n"):
        return system_prompt
    return f"{directive}\n{system_prompt}"


def inject_directive(chat: ChatRequest, directive: str) -> ChatRequest:
    """The same request with the directive before its first system message, or as one when there is none.

    An empty directive changes nothing. A system message that comes after an answer is not led by it: the directive
    would move as the conversation goes on.
    """
    if not directive:
        return chat
    place = find_opening_system(chat.messages)
    if place is None:
        return replace(chat, messages=(Message(Role.SYSTEM, (TextPart(directive),)), *chat.messages))
    led = _lead(chat.messages[place], directive)
    return replace(chat, messages=(*chat.messages[:place], led, *chat.messages[place + 1 :]))


def _lead(message: Message, directive: str) -> Message:
    first = message.parts[0] if message.parts else None
    if isinstance(first, TextPart):
        led = replace(first, text=with_directive(first.text, directive))
        return replace(message, parts=(led, *message.parts[1:]))
    return replace(message, parts=(TextPart(directive), *message.parts))
