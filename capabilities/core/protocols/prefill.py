"""A request that ends in the assistant's own words: which models go on from them, and what the others get instead."""

from __future__ import annotations

import re
from dataclasses import replace
from types import MappingProxyType

from capabilities.core.message import ChatRequest, Message, Role, TextPart
from capabilities.core.wire import Target

CHECKED = "2026-11-24"
CONTINUE = (
    "Continue your last message from exactly where it ends. "
    "Do not repeat any of it, and write nothing before the continuation."
)
"""What the user says after such words, so that the answer is what a model that takes them would give."""

CLAUDE_FROM_4_6 = r"claude-(?:(?:opus|sonnet|haiku)-)?(?:4[-.][6-9]|[5-9])(?!\d)|claude-(?:fable|mythos)"
SOURCES = MappingProxyType(
    {
        CLAUDE_FROM_4_6: (
            "platform.claude.com/docs/en/about-claude/models/migration-guide, 'Prefill removal': 400 from 4.6 on; "
            "4.5 and earlier take it (platform.claude.com/docs/en/build-with-claude/prompt-engineering/"
            "prefill-claudes-response)"
        ),
        r"gemini-(?:3\.[5-9]|[4-9])|gemini-flash(?:-lite)?-latest": (
            "'Requests ending with a model turn are not supported.' from 3.5 on; 2.x, 3 and 3.1 take it "
            "(github.com/pipecat-ai/pipecat/pull/5821, github.com/livekit/agents-js/issues/2108)"
        ),
        r"//api\.mistral\.ai/": (
            "'Expected last role User or Tool (or Assistant with prefix True)' "
            "(github.com/livekit/agents/issues/7030); `prefix` repeats the words in the answer, so it is not used"
        ),
    }
)
"""What refuses such a request, as words of an address and a model's name, each with its source (day: `CHECKED`)."""
REFUSES = re.compile("|".join(SOURCES))
DROPPED = "prefill"


def end_with_user(chat: ChatRequest, target: Target, *, is_barred: bool = False) -> tuple[ChatRequest, tuple[str, ...]]:
    """Return the request in a form that the target takes, and `prefill` where a user's message had to follow.

    `is_barred` tells that other parameters of this call rule it out, whatever the model.
    """
    last = chat.messages[-1] if chat.messages else None
    if last is None or last.role is not Role.ASSISTANT or last.tool_calls or not (last.text.strip() or last.thoughts):
        return chat, ()
    if last.vendor:  # a turn that the vendor's own tools have paused goes on
        return chat, ()
    if not is_barred and not REFUSES.search(f"{target.endpoint}/ {target.model}".lower()):
        return chat, ()
    return replace(chat, messages=(*chat.messages, Message(Role.USER, (TextPart(CONTINUE),)))), (DROPPED,)
