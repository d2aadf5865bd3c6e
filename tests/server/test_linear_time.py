"""Parsing text from outside takes time linear in its length: any 64 KiB take at most 50 ms."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from capabilities.core.describing.prompt import fence_text, quote_text
from capabilities.core.protocols.error_body import parse_error
from capabilities.core.protocols.errors import classify
from capabilities.core.protocols.sse import SseParser
from capabilities.core.translatable import insert_facts
from capabilities.sentences import join_sentences
from routing_admin.api.errors import similar_calls
from routing_admin.console.artifacts.comparing import compare_texts
from routing_admin.core.configuration.specs import EMPTY
from routing_admin.core.documents.json_lines import find_position
from routing_admin.core.planning.model_names import provider_and_model
from routing_admin.core.ranking import Findable, FoundKind, rank
from routing_admin.platform.server.logs import RedactFilter
from tests.server.outside_texts import (
    AT_BEGINNING,
    computed_patterns,
    exceeds_budget,
    functions_of_one_text,
    is_slow,
    patterns,
    without_logging,
)
from tests.server.regex_attacks import attacks, build

# A tracer makes Python several times slower, so the signal that ends slow calls would interrupt harmless code.
pytestmark = pytest.mark.skipif(sys.gettrace() is not None, reason="a tracer is running, so times mean nothing")

CUT_BEFORE = {
    "capabilities.core.protocols.errors.CONTEXT": 16_384,  # `ErrorBody.words`
    "artifacts.core.detection.containers.APPLE_ROOT": 2_048,  # `MAX_PART`
    "artifacts.core.detection.encoding_names.DECLARATIONS": 4_096,  # `DECLARATION_BYTES`
    "artifacts.extract.number_formats._TOKEN": 255,  # `MAX_CODE_CHARS`
    "capabilities.core.protocols.errors.RULES": 16_384,
}
"""Maximum input length for patterns that are only applied to shortened text. A comment at each pattern says what
shortens it.
"""
MADE_ON_THE_SPOT = {
    "capabilities.catalogue.report": "our own documents",
    "capabilities.core.translatable": "one character",
    "capabilities.core.describing.prompt": "one class, repeated",
    "capabilities.core.protocols.errors": "words of a table",
    "capabilities.core.providers.catalogue.names": "hosts of a table, a name whole",
    "artifacts.extract.word": "a name, whole",
    "routing_admin.platform.databases.explaining": "words of a table",
    "routing_admin.core.ranking": "words typed, cut and escaped",
}
UNITS = (
    *(
        "a",
        "0",
        " ",
        "\n",
        "\t",
        '"',
        "\\",
        '\\"',
        '"a\\"',
        "[",
        '{"a":',
        "<",
        "<title",
        "<a ",
        "bearer ",
        "(",
        "a ",
        "a\n",
    ),
    *("a.", "/", "//", ",", "a,", "; ", "=", "a=", "%", "%25", "&", "data:;", "你", "是。", "é", "e\u0301", "`", "`\n"),
    *("\u200d", "\u200b", "\x1b[1", "${a", "@", "://a:", "-", "_", "..", "./", "*", "|", "<|", "「", "A", "Aa", "1,"),
    *('W/"a",', "> ", "[附件", "- a: b\n", "\U0001f600", "\ud83d", "\0", "a/b;q=0.1,", "status:a ", "(artifact:", "\r"),
    *("key: ", "{}", "[1,", "null,", "ß", "İ", "http://a:b@c ", "basic 0", "?key=a"),
)
SCANNED = re.compile(
    r"\.core\.|^routing_admin\.(platform\.server|gateway)\.|search_words$|templatetags|upload_tokens|postgresql\.text|history\.fields"
    r"|routes\.errors|redis_link\.faults|capabilities\.(sentences|body_limits)$|^artifacts\.sniffer$"
)
BOUNDED = re.compile(
    r"\.probes\.|likelihood|\.catalogue\.sources\.|make_request_id|_write_nothing|\._list_positions$|\.sniffer\.|_cut$|new_id$|find_positions$"
    # `_compile_pattern` only compiles a table's patterns when the program starts. 64 KiB of `|` take 165 ms.
    r"|errors\._compile_pattern$"
)
"""Functions in the modules of `SCANNED` that get no text from outside, or only a sample of it in another thread."""


def redact_line(text: str) -> None:
    """Redact a log line that contains the text as a URL path."""
    RedactFilter().filter(logging.LogRecord("a", 40, "a.py", 1, "Not Found: %s", (text,), None))


def feed_in_pieces(data: bytes) -> None:
    """Feed the parser in chunks of 128 bytes, like a slow provider whose event never ends."""
    parser = SseParser()
    for start in range(0, len(data), 128):
        parser.feed(data[start : start + 128])


BY_HAND: dict[str, Callable[[str], Any]] = {
    "a log line": redact_line,
    "an error, classified": lambda text: classify(parse_error(text.encode("utf-8", "replace")), 400, None),
    "an error's message": lambda text: classify(
        parse_error(b'{"error": "%s"}' % text.encode("ascii", "ignore")), 400, None
    ),
    "a stream": lambda text: SseParser().feed(b"data: " + text.encode("utf-8", "replace")),
    "a stream in small pieces": lambda text: feed_in_pieces(text.encode("utf-8", "replace")),
    "a description": lambda text: quote_text(text, "a", "zh"),
    "a fence": lambda text: fence_text(text, "en", 10**6),
    "a sentence": lambda text: insert_facts("%(a)s %(a)s", {"a": text}),
    "a template": lambda text: insert_facts(text, {"a": "b"}),
    "sentences": lambda text: join_sentences(text.splitlines()),
    "a search of things": lambda text: rank(
        text, [Findable(kind=FoundKind.AGENT, label="text-agent", url="/", names=("text-agent",))] * 50
    ),
    "a path of the API": lambda text: similar_calls("GET", text, ["GET /api/v1/services", "GET /api/v1/agents"]),
    "a model's name": lambda text: provider_and_model(EMPTY, text),
    "a place": lambda text: find_position({}, text),
    "two texts, side by side": lambda text: [
        row.left_parts for row in compare_texts("", text, f"{text[:9999]}\nb\n{text}").rows
    ],
    "two lists of words": lambda text: [
        row.right_parts for row in compare_texts("", text, text.replace(" ", "\n")).rows
    ],
}


@without_logging()
def test_every_regular_expression_takes_linear_time() -> None:
    slow = []
    for pattern, location, methods in patterns().values():
        slow += [
            f"{location} {method}: {attack!r}"
            for method in sorted(methods)
            if (attack := find_attack(pattern, method, location))
        ]
    assert slow == []


def find_attack(pattern: re.Pattern[Any], method: str, location: str = "") -> tuple[str, str, str] | None:
    """Return the first text for which the pattern is slow, as the parts that `build` joins, or None."""
    is_bytes = isinstance(pattern.pattern, bytes)
    nothing: Any = b"" if is_bytes else ""
    search = getattr(pattern, method) if method in AT_BEGINNING else lambda text: pattern.sub(nothing, text)
    for attack in attacks(pattern):

        def build_text(size: int, attack: tuple[str, str, str] = attack) -> Any:
            text = build(attack, size)
            return text.encode("latin-1", "replace") if is_bytes else text

        if is_slow(search, build_text, CUT_BEFORE.get(location, 65_536)):
            return attack
    return None


def test_every_computed_regular_expression_was_reviewed() -> None:
    assert {call.partition(":")[0] for call in computed_patterns()} == set(MADE_ON_THE_SPOT)


@without_logging()
def test_every_function_of_one_text_takes_linear_time() -> None:
    slow = []
    functions = functions_of_one_text(lambda module: bool(SCANNED.search(module)))
    for name, (function, is_bytes) in functions.items():
        if not BOUNDED.search(name):
            slow += [f"{name}: {unit!r}" for unit in UNITS if is_slow(function, repeated(unit, is_bytes))][:1]
    assert slow == []


def repeated(unit: str, is_bytes: bool = False) -> Callable[[int], Any]:
    def make(size: int) -> Any:
        text = (unit * (size // len(unit) + 1))[:size]
        return text.encode("utf-8", "replace") if is_bytes else text

    return make


@pytest.mark.parametrize("name", BY_HAND)
@without_logging()
def test_every_function_of_a_text_and_other_arguments_takes_linear_time(name: str) -> None:
    assert [unit for unit in UNITS if is_slow(BY_HAND[name], repeated(unit))] == []


HOSTILE = "bearer%20" * 3_000


@pytest.mark.django_db
@pytest.mark.parametrize(
    "call",
    [
        ("/" + HOSTILE, {}),
        ("/v1/" + HOSTILE, {}),
        ("/api/v1/" + HOSTILE, {}),
        ("/login/?next=" + HOSTILE, {}),
        ("/", {"cookie": "sessionid=" + HOSTILE}),
        ("/v1/models", {"authorization": "Bearer " + HOSTILE}),
        ("/v1/models", {"x-request-id": HOSTILE, "user-agent": HOSTILE, "referer": HOSTILE}),
        ("/login/", {"accept-language": "zh;q=0.1," * 3_000, "accept-encoding": "gzip," * 5_000}),
    ],
    ids=lambda call: f"{call[0][:10]} {','.join(call[1])}",
)
def test_hostile_request_without_a_key_takes_milliseconds(call: tuple[str, dict[str, str]], client: Client) -> None:
    path, headers = call
    client.get("/login/")
    assert not exceeds_budget(lambda: client.get(path, headers=headers))


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"a*$", r"<title[^>]*>", r"(?:bearer\s+)+x", r'"(?:[^"\\]|\\.)*"'])
@without_logging()
def test_find_attack_finds_slow_patterns(pattern: str) -> None:
    assert find_attack(re.compile(pattern), "sub")
