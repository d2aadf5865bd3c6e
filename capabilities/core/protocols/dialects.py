"""Tables of each vendor's dialect of JSON Schema, with links to the pages that document it.

The tables are based on these pages, and on the schemas that the vendors' SDKs produce and reject (anthropic 2.11,
openai 3.52, google-genai 3.4, read on 2026-11-24).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from urllib.parse import urlsplit

_COMMON = [
    "type",
    "title",
    "description",
    "enum",
    "items",
    "anyOf",
    "properties",
    "required",
    "additionalProperties",
    "$ref",
    "$defs",
]
_FORMATS = frozenset(["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"])


@dataclass(frozen=True, slots=True)
class Dialect:
    """The JSON Schema features that a vendor accepts in one of its schema fields.

    `keywords` and `formats` are None if all are accepted. `least_items` are the accepted values of minItems. `closed`
    means that objects must not allow other properties, and `all_required` that all properties are required. `lone_ref`
    means that `$ref` must not have sibling keywords, and `simple_enum` that enum values must not be objects or lists.
    `cycles` states which recursive references are allowed: `all`, `optional` (not through required properties) or
    `none`. `object_root` means that the root must be an object without alternatives.
    """

    page: str
    keywords: frozenset[str] | None = None
    formats: frozenset[str] | None = None
    least_items: frozenset[int] | None = None
    closed: bool = False
    all_required: bool = False
    lone_ref: bool = False
    simple_enum: bool = False
    cycles: str = "all"
    object_root: bool = False


@dataclass(frozen=True, slots=True)
class Dialects:
    """A vendor's dialects for answers, strict tools and other tools. If `strict` is None, no tool can be strict."""

    answer: Dialect
    strict: Dialect | None
    tool: Dialect
    by_strict: bool = False
    """Whether an answer's schema is enforced only if it sets `strict`. Without `strict`, the dialect `tool` applies."""


_CLAUDE = "https://platform.claude.com/docs/en/build-with-claude/structured-outputs"
_OPENAI = "https://platform.openai.com/docs/guides/structured-outputs"
_GEMINI = "https://ai.google.dev/api/generate-content#v1beta.GenerationConfig"

CLAUDE_ENFORCED = Dialect(
    _CLAUDE,
    frozenset([*_COMMON, "definitions", "const", "allOf", "default", "format", "pattern", "minItems"]),
    _FORMATS | {"uri"},
    frozenset({0, 1}),
    closed=True,
    lone_ref=True,
    simple_enum=True,
    cycles="none",
)
CLAUDE_TOOL_ENFORCED = replace(CLAUDE_ENFORCED, object_root=True)
CLAUDE_TOOL = Dialect("https://platform.claude.com/docs/en/agents-and-tools/tool-use/define-tools", object_root=True)
OPENAI_STRICT = Dialect(
    _OPENAI,
    frozenset(
        [
            *(*_COMMON, "$schema", "definitions", "const", "format", "pattern", "multipleOf", "minimum", "maximum"),
            *("exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"),
        ]
    ),
    _FORMATS,
    closed=True,
    all_required=True,
    lone_ref=True,
    object_root=True,
)
OPENAI_PLAIN = Dialect("https://platform.openai.com/docs/guides/function-calling", object_root=True)
GEMINI_ANSWER = Dialect(
    _GEMINI,
    frozenset(
        [
            *(*_COMMON, "$id", "$anchor", "format", "prefixItems", "minItems", "maxItems", "minimum", "maximum"),
            *("oneOf", "propertyOrdering"),
        ]
    ),
    lone_ref=True,
    cycles="optional",
)
GEMINI_TOOL = Dialect("https://ai.google.dev/gemini-api/docs/function-calling", lone_ref=True)

CLAUDE = Dialects(CLAUDE_ENFORCED, CLAUDE_TOOL_ENFORCED, CLAUDE_TOOL)
OPENAI = Dialects(OPENAI_STRICT, OPENAI_STRICT, OPENAI_PLAIN, by_strict=True)
GEMINI = Dialects(GEMINI_ANSWER, None, GEMINI_TOOL)

_OPENAIS_HOSTS = (".openai.com", ".openai.azure.com", ".cognitiveservices.azure.com")


@lru_cache(maxsize=1000)
def openai_dialects(endpoint: str) -> Dialects | None:
    """Return OpenAI's dialects for OpenAI's own hosts. Return None for other hosts, which accept more."""
    try:
        host = urlsplit(endpoint.strip()).hostname or ""
    except ValueError:
        return None
    return OPENAI if host.endswith(_OPENAIS_HOSTS) else None


# Matches lookaround, word boundaries and backreferences, which constrained decoding does not support.
UNSUPPORTED_PATTERN = re.compile(r"\(\?[=!<]|\\[bB1-9]")
# Keywords that do not constrain values. If a dialect lacks them, they are removed without being reported as dropped.
NO_CONSTRAINT = frozenset(
    ["$schema", "$id", "$comment", "$anchor", "discriminator", "deprecated", "readOnly", "writeOnly"]
)
# Maps keywords to phrases that describe their constraint to a model. All others are written as `keyword: value`.
PHRASES = {
    "minimum": "minimum {}",
    "maximum": "maximum {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "pattern": "matching the regular expression {}",
    "format": "in the format {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} properties",
    "maxProperties": "at most {} properties",
    "uniqueItems": "all items different: {}",
    "const": "always {}",
    "enum": "one of {}",
    "default": "by default {}",
    "examples": "for example {}",
}
