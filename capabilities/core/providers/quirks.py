"""Compatibility options. They state, as data, how a provider differs from its protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from capabilities.core.problems import Problem
from capabilities.core.translatable import translatable


@dataclass(frozen=True, slots=True)
class Quirk:
    """A compatibility option. If it has no list of allowed `values`, `kind` is its type: boolean, text, or list.

    `default` applies unless `by_protocol` contains a default for the protocol. `protocols` are the protocols that have
    this option.
    """

    name: str
    meaning: str
    default: Any
    values: tuple[str, ...] = ()
    kind: str = "flag"
    protocols: tuple[str, ...] = ("openai",)
    by_protocol: Mapping[str, Any] = field(default_factory=dict)


ALL = ("openai", "openai-responses", "anthropic", "gemini")
LIMIT_FIELD = "max_tokens_field"
LIMIT_NAMES = frozenset({"max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens"})
"""Vendors' parameter names for the maximum number of tokens in an answer. This limit is never removed from a
request."""


def _choice(name: str, meaning: str, *values: str, **options: Any) -> Quirk:
    return Quirk(name, meaning, values[0], values, "choice", **options)


QUIRKS: Mapping[str, Quirk] = MappingProxyType(
    {
        quirk.name: quirk
        for quirk in (
            Quirk("image_url_as_string", "Images are sent as a plain URL string instead of an object.", False),
            Quirk("no_remote_image_urls", "Images are sent as data only; URLs are sent as text.", False),
            _choice(
                LIMIT_FIELD,
                "The parameter for the maximum answer length.",
                "max_tokens",
                "max_completion_tokens",
            ),
            Quirk(
                "drop_params",
                "Parameters left out of every call. Token limits are always sent.",
                (),
                kind="list",
                protocols=ALL,
            ),
            _choice("system_role", "How system messages are sent.", "system", "developer", "first_user"),
            Quirk("string_content_only", "Every message is a single string; no media can be sent.", False),
            _choice("input_audio_shape", "How audio is sent.", "object", "string", "audio_url"),
            _choice("file_part", "How documents are sent.", "openai_file", "document_url", "none"),
            Quirk("file_urls", "Documents can be sent by URL.", False),
            _choice("video_part", "How videos are sent.", "none", "video_url"),
            Quirk(
                "tool_media",
                "Media in a tool result stays there, moves to a user message after it, or becomes a line of text.",
                "hoist",
                ("native", "hoist", "text"),
                "choice",
                ALL,
                MappingProxyType({"openai-responses": "native", "anthropic": "native", "gemini": "native"}),
            ),
            _choice(
                "structured",
                "How JSON answers are requested.",
                "json_schema",
                "json_object",
                "prompt",
                protocols=ALL,
            ),
            _choice(
                "replay_reasoning",
                "How earlier reasoning is sent in the history.",
                *("drop", "keep", "empty", "required"),
            ),
            _choice("reasoning_field", "The field for reasoning.", "reasoning_content", "reasoning"),
            _choice(
                "cache_marks",
                "How the end of a cacheable prefix is marked.",
                "none",
                "cache_control",
                "prompt_cache_breakpoint",
                protocols=("openai", "openai-responses"),
            ),
            Quirk("short_call_ids", "Tool call ids have nine letters and digits.", False),
            Quirk(
                "call_signatures",
                ("Tool calls in the history carry Google's thought signature, or a placeholder for it."),
                False,
            ),
            _choice(
                "request_id_header",
                "The header for the request id, for support questions to the vendor.",
                *("none", "X-Client-Request-Id", "x-ms-client-request-id"),
                protocols=ALL,
            ),
            Quirk("trace_context", "The caller's trace (traceparent) is passed on.", False, protocols=ALL),
            Quirk("stream_usage", "Streams are asked to report token usage.", True),
            Quirk(
                "sampling",
                "Temperature and top_p are sent.",
                True,
                protocols=ALL,
                by_protocol=MappingProxyType({"anthropic": False}),
            ),
            Quirk(
                "anthropic_version",
                "The API version to request.",
                "2023-06-01",
                kind="text",
                protocols=("anthropic",),
            ),
        )
    }
)
"""Maps names to compatibility options."""


def quirk(quirks: Mapping[str, Any], name: str, protocol: str = "openai") -> Any:
    """Return an option's effective value. If the value is missing, null or invalid, return the protocol's default."""
    definition = QUIRKS[name]
    value = quirks.get(name) if quirks else None
    if value is None or not _fits(definition, value):
        return definition.by_protocol.get(protocol, definition.default)
    return tuple(value) if definition.kind == "list" else value


def passed_headers(quirks: Mapping[str, Any], protocol: str = "openai") -> Mapping[str, str]:
    """Return which of the caller's headers to forward, each with its name in the provider request.

    By default, no headers are forwarded.
    """
    name = quirk(quirks, "request_id_header", protocol)
    headers = {} if name == "none" else {"x-request-id": str(name)}
    if quirk(quirks, "trace_context", protocol):
        headers |= {"traceparent": "traceparent", "tracestate": "tracestate"}
    return headers


def unwanted_params(quirks: Mapping[str, Any], protocol: str = "openai") -> set[str]:
    """Return the parameters that are removed from every request. A token limit is never among them."""
    return set(quirk(quirks, "drop_params", protocol)) - LIMIT_NAMES


def limit_name(quirks: Mapping[str, Any]) -> str:
    """Return the name of the token limit parameter: the configured one or, if this parameter is dropped, another."""
    chosen = str(quirk(quirks, LIMIT_FIELD))
    unwanted = quirk(quirks, "drop_params")
    return next((name for name in (chosen, *QUIRKS[LIMIT_FIELD].values) if name not in unwanted), chosen)


def other_limit_name(protocol: str, refused: str) -> str | None:
    """Return another name for the token limit parameter that the provider refused.

    Return None if the refused parameter is not a token limit, or if the protocol has only one name for it.
    """
    definition = QUIRKS[LIMIT_FIELD]
    if protocol not in definition.protocols or refused not in definition.values:
        return None
    return next(name for name in definition.values if name != refused)


def quirks_without(quirks: Mapping[str, Any], protocol: str, refused: str) -> Mapping[str, Any]:
    """Return compatibility options that avoid a rejected parameter, or {} if none can."""
    if refused in LIMIT_NAMES:
        other_name = other_limit_name(protocol, refused)
        return {LIMIT_FIELD: other_name} if other_name and limit_name(quirks) == refused else {}
    unwanted = tuple(quirk(quirks, "drop_params", protocol))
    return {} if refused in unwanted else {"drop_params": [*unwanted, refused]}


def check_quirks(quirks: object, path: str = "quirks") -> tuple[Problem, ...]:
    """Validate compatibility options and return the problems found. An unknown option causes only a warning."""
    if not isinstance(quirks, Mapping):
        message = translatable(
            "%(path)s must be an object such as %(example)s.", path=path, example="{'system_role': 'developer'}"
        )
        return (Problem(path, message, "type"),)
    problems = [_check(f"{path}.{name}", str(name), value) for name, value in quirks.items()]
    return tuple(problem for problem in problems if problem is not None)


def _check(path: str, name: str, value: object) -> Problem | None:
    definition = QUIRKS.get(name)
    if definition is None:
        message = translatable(
            "%(path)s is unknown and has no effect. Known: %(known)s.", path=path, known=tuple(QUIRKS)
        )
        return Problem(path, message, "enum", "warning")
    if value is None or _fits(definition, value):
        return None
    constraint = "enum" if definition.kind == "choice" and isinstance(value, str) else "type"
    return Problem(
        path, translatable("%(path)s must be %(expected)s.", path=path, expected=_expected(definition)), constraint
    )


def _expected(quirk: Quirk) -> str:
    by_kind = {
        "flag": translatable("true or false"),
        "list": translatable("a list of parameter names"),
        "text": translatable("a non-empty string"),
    }
    return by_kind.get(quirk.kind) or translatable("one of %(allowed)s", allowed=tuple(quirk.values))


def _fits(quirk: Quirk, value: object) -> bool:
    if quirk.kind == "flag":
        return isinstance(value, bool)
    if quirk.kind == "list":
        return isinstance(value, list | tuple) and all(isinstance(item, str) and item for item in value)
    if quirk.kind == "text":
        return isinstance(value, str) and value != "" and value.isascii() and value.isprintable()
    return isinstance(value, str) and value in quirk.values
