"""Choose the language in which a model should answer, and insert a directive for it into the request (MMR-P11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from capabilities.core.message import ChatRequest, Message, Role, TextPart, find_opening_system

LANGUAGE_DIRECTIVES: Mapping[str, str] = MappingProxyType(
    {"en": "Please respond in English.", "zh": "请使用中文回答。"}
)
"""The built-in languages, each with the directive that tells a model to answer in it (seed 003)."""

FALLBACK_LANGUAGE = "en"


def match_language(tag: str | None, directives: Mapping[str, str] = LANGUAGE_DIRECTIVES) -> str | None:
    """Return the supported language for a language tag, or None.

    The tag matches exactly or by its primary subtag (`zh-CN` → `zh`).
    """
    if not tag:
        return None
    if tag in directives:
        return tag
    # Tags may differ in case and separator, as in `zh_CN`.
    folded = {supported.lower(): supported for supported in directives}
    plain = tag.replace("_", "-").lower()
    return folded.get(plain) or folded.get(plain.split("-", 1)[0])


def resolve_language(tag: str | None, default: str | None, directives: Mapping[str, str] = LANGUAGE_DIRECTIVES) -> str:
    """Return the request's language if it is supported, otherwise the configuration's default, otherwise `en`."""
    return match_language(tag, directives) or match_language(default, directives) or FALLBACK_LANGUAGE


def get_language_directive(
    language: str | None, default_language: str | None, directives: Mapping[str, str] = LANGUAGE_DIRECTIVES
) -> str:
    """Return the directive for a language, or for the default language if this one is not supported (seed 003)."""
    resolved = resolve_language(language, default_language, directives)
    return directives.get(resolved) or LANGUAGE_DIRECTIVES[FALLBACK_LANGUAGE]


def with_directive(system_prompt: str | None, directive: str) -> str:
    """Prepend the directive and a newline to the prompt, unless the prompt already starts with the directive."""
    if not system_prompt:
        return directive
    if system_prompt == directive or system_prompt.startswith(directive + "\n"):
        return system_prompt
    return f"{directive}\n{system_prompt}"


def inject_directive(chat: ChatRequest, directive: str) -> ChatRequest:
    """Return the request with the directive at the start of its first system message.

    If there is no system message, one is inserted. An empty directive changes nothing.
    """
    if not directive:
        return chat
    # Only a system message at the beginning gets the directive. A later system message may be at a different position
    # in every turn.
    index = find_opening_system(chat.messages)
    if index is None:
        return replace(chat, messages=(Message(Role.SYSTEM, (TextPart(directive),)), *chat.messages))
    message = _prepend_directive(chat.messages[index], directive)
    return replace(chat, messages=(*chat.messages[:index], message, *chat.messages[index + 1 :]))


def _prepend_directive(message: Message, directive: str) -> Message:
    first = message.parts[0] if message.parts else None
    if isinstance(first, TextPart):
        part = replace(first, text=with_directive(first.text, directive))
        return replace(message, parts=(part, *message.parts[1:]))
    # If the message starts with a file, the directive becomes a separate part.
    return replace(message, parts=(TextPart(directive), *message.parts))
