"""The table of how each protocol treats each parameter and each part of a request.

The encoders use it to report what they drop, and docs/compatibility.md is generated from it. A test applies every
encoder to every row.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

from capabilities.core.message import ChatRequest, Message, Role, TextPart
from capabilities.core.wire import Target

# Maximum number of dropped parameters of a call that are reported by name. All others are only counted.
MAX_NAMES = 20
# Maximum number of characters in each reported name, and in all reported names together.
NAME_CHARS, ALL_CHARS = 80, 1000
_INDEX = re.compile(r"\[\d+\]")


class Treatment(StrEnum):
    """How a protocol treats a parameter or a part of a request."""

    MAPPED = "mapped"
    PASSED = "passed"
    RETURNED = "returned"
    DROPPED = "dropped"
    REFUSED = "refused"


M, P, D, R = Treatment.MAPPED, Treatment.PASSED, Treatment.DROPPED, Treatment.REFUSED
# Reasoning is sent back only to the model that produced it. Withholding it from other models does not count as
# dropping it.
K = Treatment.RETURNED


@dataclass(frozen=True, slots=True)
class Parameter:
    """A row of the table: a name or path (`messages[].name`), each protocol's treatment, and a note on conditions."""

    name: str
    openai: Treatment
    openai_responses: Treatment
    anthropic: Treatment
    gemini: Treatment
    echo: Treatment
    note: str = ""

    def by(self, protocol: str) -> Treatment:
        treatment: Treatment = getattr(self, protocol.replace("-", "_"))
        return treatment


SAMPLING = "if the provider accepts sampling; Anthropic: at most 1, and one of temperature and top_p"
MARK = "if the host supports it (`cache_marks`), in its own form; Anthropic: the last four"
OWN_THINKING = (
    "Anthropic's object; DeepSeek, GLM, Kimi and Doubao have something similar, without `adaptive` and a budget"
)
OWN_METADATA = "Anthropic: `user_id` alone, else dropped; OpenAI: that alone only with `store`, else dropped"
VENDOR = "not a field of OpenAI; some hosts accept it"
THOUGHT = "to the model it came from"

THINKING_BUDGET = "generationConfig.thinkingConfig.thinkingBudget"
CALLING_MODE = "toolConfig.functionCallingConfig.mode"
# In this function calling mode, Gemini may call a function or answer with text, and every call matches the function's
# schema.
VALIDATED = "VALIDATED"
# Paths of fields that exist only in Gemini's API and are passed on unchanged.
GEMINI_FIELDS = (
    *("safetySettings", "generationConfig.speechConfig", "generationConfig.imageConfig"),
    *("generationConfig.mediaResolution", "generationConfig.enableEnhancedCivicAnswers"),
)
# Paths of all fields that exist only in Gemini's API.
GEMINIS = (*GEMINI_FIELDS, THINKING_BUDGET, CALLING_MODE)

GEMINI_NOTES = {
    THINKING_BUDGET: "other vendors get the effort that is nearest to it",
    CALLING_MODE: "`VALIDATED`; other vendors get `auto`",
}

_ROWS = (
    Parameter("model", M, M, M, M, M, "the candidate's model"),
    Parameter("messages", M, M, M, M, M),
    Parameter("stream", P, P, P, M, M),
    Parameter("stream_options", M, M, M, M, M, "usage is added here, if the provider reports it"),
    Parameter("max_tokens", M, M, M, M, M, "the host's name for it; -1 is no limit; Responses: at least 16"),
    Parameter("max_completion_tokens", M, M, M, M, M, "takes precedence over max_tokens"),
    Parameter("temperature", P, P, M, P, P, SAMPLING),
    Parameter("top_p", P, P, M, M, P, SAMPLING),
    Parameter("top_k", P, D, M, M, D, VENDOR),
    Parameter("stop", P, D, M, M, D, "Gemini: the first five; Anthropic: none that is only white space"),
    Parameter("response_format", P, M, M, M, D, "`structured` decides how JSON is asked for"),
    Parameter("tools", P, M, M, M, M),
    Parameter("tool_choice", P, M, M, M, D),
    Parameter("parallel_tool_calls", P, P, M, D, D, "only `false` is dropped; `true` is every provider's default"),
    Parameter("functions", M, M, M, M, M, "become tools; a call is returned as `function_call`"),
    Parameter("function_call", M, M, M, M, D, "becomes tool_choice"),
    Parameter("n", R, R, R, R, R, "more than 8; more than 1 if the route has no `allowN`"),
    Parameter("reasoning_effort", P, M, M, M, D, "Anthropic and Gemini: by the model, see above"),
    Parameter(
        "thinking",
        P,
        D,
        P,
        D,
        D,
        OWN_THINKING,
    ),
    Parameter("reasoning", P, P, D, D, D, VENDOR),
    Parameter(
        "reasoning_summary",
        D,
        M,
        D,
        M,
        D,
        "what /v1/responses calls `reasoning.summary`, Gemini `includeThoughts`",
    ),
    Parameter("seed", P, D, D, P, D),
    Parameter("presence_penalty", P, D, D, M, D),
    Parameter("frequency_penalty", P, D, D, M, D),
    Parameter("logit_bias", P, D, D, D, D),
    Parameter("logprobs", P, M, D, D, D),
    Parameter("top_logprobs", P, P, D, D, D),
    Parameter("modalities", P, D, D, M, D),
    Parameter("audio", P, D, D, D, D),
    Parameter("prediction", P, D, D, D, D),
    Parameter("service_tier", P, P, M, D, D, "Anthropic: auto, default and standard_only; others are dropped"),
    Parameter(
        "metadata",
        P,
        P,
        M,
        D,
        D,
        OWN_METADATA,
    ),
    Parameter("cache_control", P, D, P, D, D, "hosts like OpenAI: " + MARK),
    Parameter("prompt_cache_key", P, P, D, D, D),
    Parameter("prompt_cache_options", P, P, D, D, D),
    Parameter("prompt_cache_retention", P, P, D, D, D),
    Parameter("safety_identifier", P, P, D, D, D),
    Parameter("user", P, P, D, D, D),
    Parameter("store", P, P, D, D, D),
    Parameter("moderation", P, P, D, D, D),
    Parameter("verbosity", P, M, D, D, D),
    Parameter("web_search_options", P, D, D, D, D),
    *(Parameter(name, D, D, D, P, D, GEMINI_NOTES.get(name, "")) for name in GEMINIS),
    Parameter("stream_options.include_obfuscation", D, D, D, D, D),
    Parameter("messages[].content[].text", M, M, M, M, M),
    Parameter("messages[].content[].refusal", M, M, M, M, M, "as text"),
    Parameter("messages[].content[].image_url", M, M, M, M, M, "as the model reads it: natively or described"),
    Parameter("messages[].content[].video_url", M, M, M, M, M, "as the model reads it: natively or described"),
    Parameter("messages[].content[].input_audio", M, M, M, M, M, "as the model reads it: natively or described"),
    Parameter("messages[].content[].file", M, M, M, M, M, "as the model reads it: natively, extracted or described"),
    Parameter("messages[].content[].image_url.detail", P, P, D, D, D, "`auto` is every provider's default"),
    Parameter("messages[].content[].file.detail", P, P, D, D, D, "`auto` is every provider's default"),
    Parameter("messages[].content[].cache_control", M, M, M, D, D, MARK),
    Parameter("messages[].content[].prompt_cache_breakpoint", M, M, M, D, D, MARK),
    Parameter("messages[].cache_control", M, M, M, D, D, "applies to the last part; " + MARK),
    Parameter("messages[].name", P, D, D, D, D, "a tool's name is in its call"),
    Parameter("messages[].refusal", M, M, M, M, M, "as text"),
    Parameter("messages[].tool_calls", P, M, M, M, M),
    Parameter("messages[].tool_calls[].custom", P, M, M, M, M, "elsewhere an object with `input`"),
    Parameter("messages[].function_call", M, M, M, M, M, "becomes a tool call; role `function` its result"),
    Parameter("messages[].reasoning_content", K, K, K, K, K, "to hosts that want it (`replay_reasoning`)"),
    Parameter("messages[].reasoning", K, K, K, K, K, "another name for `reasoning_content`"),
    Parameter("messages[].reasoning_details", K, K, K, K, K, THOUGHT),
    Parameter("messages[].extra_content", K, K, K, K, K, THOUGHT),
    Parameter("messages[].tool_calls[].extra_content", K, K, K, K, K, THOUGHT),
    Parameter("messages[].thinking_blocks", D, D, D, D, D, "`reasoning_details` has them"),
    Parameter("messages[].audio", D, D, D, D, D, "the id of an answer's audio, known only to the model that made it"),
    Parameter("messages[].annotations", D, D, D, D, D, "what an answer cited"),
    Parameter("tools[].function.strict", P, P, P, D, D),
    Parameter("tools[].cache_control", M, D, M, D, D, MARK),
    Parameter("tools[].function.cache_control", M, D, M, D, D, MARK),
    Parameter("tools[].custom", P, M, M, M, M, "free text or a grammar; Anthropic, Gemini: a function with `input`"),
    Parameter("tool_choice.allowed_tools", P, M, M, M, D, "Anthropic: only those tools are sent"),
)
PARAMETERS: Mapping[str, Parameter] = MappingProxyType({row.name: row for row in _ROWS})

# These two rows are for all parameters and fields that have no row of their own.
OTHER_PARAMETER = Parameter("any other parameter", P, D, D, D, D)
OTHER_FIELD = Parameter("any other field of a message, part or tool", D, D, D, D, D)


# Values that mean the same as omitting the parameter, so nothing is lost if they are dropped.
DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {
        "logprobs": False,
        "top_logprobs": 0,
        "store": False,
        "modalities": ["text"],
        "service_tier": "auto",
        "presence_penalty": 0,
        "frequency_penalty": 0,
        "logit_bias": {},
        "metadata": {},
        "n": 1,
        "reasoning_summary": "auto",
    }
)


def list_unsent(chat: ChatRequest, sent: Collection[str]) -> tuple[str, ...]:
    """Return the names of a request's extra parameters, except those in `sent` and those with default values."""
    return tuple(
        name
        for name, value in chat.extra.items()
        if name not in sent and value is not None and DEFAULTS.get(name, ...) != value
    )


def parameter_name(path: str) -> str:
    """Return the row name for a path in a request, such as `messages[].name` for `messages[2].name`."""
    return _INDEX.sub("[]", path)


def dropped_fields(chat: ChatRequest, protocol: str, unsupported: Collection[str] = ()) -> tuple[str, ...]:
    """Return the paths of dropped fields below the top level.

    `unsupported` contains names of rows that are also dropped, because the host does not support them.
    """
    if not chat.inner:
        return ()
    return tuple(path for path in chat.inner if _is_dropped(parameter_name(path), protocol, unsupported))


def _is_dropped(name: str, protocol: str, unsupported: Collection[str]) -> bool:
    return name in unsupported or PARAMETERS.get(name, OTHER_FIELD).by(protocol) is Treatment.DROPPED


def select_names(condition: Callable[[str], bool]) -> frozenset[str]:
    return frozenset(name for name in PARAMETERS if condition(name))


# Names of the table rows for cache breakpoints.
BREAKPOINT_NAMES = select_names(lambda name: name.endswith((".cache_control", ".prompt_cache_breakpoint")))


def abbreviate_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return distinct names, escaped to ASCII and shortened, for a message or a header.

    If the limits are exceeded, a final entry states how many names were left out.
    """
    ascii_names = [name.encode("ascii", "backslashreplace").decode()[:NAME_CHARS] for name in dict.fromkeys(names)]
    remaining, count = ALL_CHARS, 0
    for name in ascii_names[:MAX_NAMES]:
        remaining -= len(name) + 2
        if remaining < 0:
            break
        count += 1
    return (
        (*ascii_names[:count], f"... and {len(ascii_names) - count} more")
        if count < len(ascii_names)
        else tuple(ascii_names)
    )


# The code below handles prefill: a request that ends with an assistant message. Some models continue this message, and
# others reject the request.

CHECKED = "2026-11-24"
# The user message that makes models without prefill continue as models with prefill would.
CONTINUE = (
    "Continue your last message from exactly where it ends. "
    "Do not repeat any of it, and write nothing before the continuation."
)

CLAUDE_FROM_4_6 = r"claude-(?:(?:opus|sonnet|haiku)-)?(?:4[-.][6-9]|[5-9])(?!\d)|claude-(?:fable|mythos)"
# Hosts and models that reject prefill: patterns for the URL or model name, each with its source as of `CHECKED`.
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
REFUSES = re.compile("|".join(SOURCES))
DROPPED = "prefill"


def end_with_user(chat: ChatRequest, target: Target, *, is_barred: bool = False) -> tuple[ChatRequest, tuple[str, ...]]:
    """Return the request in a form that the target accepts, and `prefill` if another user message had to be added.

    `is_barred` means that other parameters of this call rule out prefill, whatever the model is.
    """
    last = chat.messages[-1] if chat.messages else None
    if last is None or last.role is not Role.ASSISTANT or last.tool_calls or not (last.text.strip() or last.thoughts):
        return chat, ()
    if last.vendor:  # The vendor's own tools paused this turn, and the vendor continues it.
        return chat, ()
    if not is_barred and not REFUSES.search(f"{target.endpoint}/ {target.model}".lower()):
        return chat, ()
    return replace(chat, messages=(*chat.messages, Message(Role.USER, (TextPart(CONTINUE),)))), (DROPPED,)


# The code below writes the table into docs/compatibility.md. To update it, run this module with the path of that file.

BEGIN = "<!-- written by capabilities.core.protocols.parameters -->\n"
END = "<!-- end of what is written -->\n"
HEAD = "| parameter or part | openai | openai-responses | anthropic | gemini | echo | when |\n" + 7 * "|---" + "|\n"


def table() -> str:
    return HEAD + "".join(_line(row) for row in (*PARAMETERS.values(), OTHER_PARAMETER, OTHER_FIELD))


def _line(row: Parameter) -> str:
    name = row.name if " " in row.name else f"`{row.name}`"
    cells = (name, row.openai, row.openai_responses, row.anthropic, row.gemini, row.echo, row.note)
    return f"| {' | '.join(cells)} |\n"


def with_table(text: str) -> str:
    """Return the document with its table updated. Raise `ValueError` if the marker before or after it is missing."""
    return put_between(text, BEGIN, END, table())


def put_between(text: str, begin: str, end: str, table: str) -> str:
    """Return the text with everything between the markers `begin` and `end` replaced by the table.

    Raise `ValueError` if a marker is missing.
    """
    head, _, rest = text.partition(begin)
    _, mark, tail = rest.partition(end)
    if not mark:
        raise ValueError("the document has no place for the table")
    return f"{head}{begin}\n{table}\n{end}{tail}"


if __name__ == "__main__":
    document = Path(sys.argv[1])
    document.write_text(with_table(document.read_text(encoding="utf-8")), encoding="utf-8")
