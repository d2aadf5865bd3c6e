"""Rules for the fields of both files. Each violation yields a `Problem` with the field's path."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from capabilities.core.delivery.reader import HTML_FORMS
from capabilities.core.delivery.text_limit import find_problem
from capabilities.core.prices import check_price
from capabilities.core.problems import Problem
from capabilities.core.providers.environment import KeyNotation, classify_key
from capabilities.core.providers.quirks import check_quirks
from capabilities.core.storable import is_storable, unreadable_text
from capabilities.core.translatable import translatable
from capabilities.core.values import MAX_SECONDS, MAX_TOKENS, RETRIES, TEMPERATURE
from routing_admin.core.documents.json_path import child
from routing_admin.core.documents.problem_sentences import (
    bad_key,
    invalid_choice,
    missing_field,
    out_of_range,
    wrong_type,
)
from routing_admin.core.fallback.policy import ErrorPreset, error_class_problem
from routing_admin.core.fallback.table import Action

Check = Callable[[str, Any], Iterator[Problem]]

PRESETS = tuple(ErrorPreset)
ACTIONS = tuple(Action)
TIMES = ("connect", "firstContent", "between", "total")
MAX_KEY_NAME = 60
SCHEMES = ("http", "https", "echo")


@dataclass(frozen=True, slots=True)
class Rule:
    """A field's key in the file, its check, and whether it is required. An optional field may also be null."""

    key: str
    check: Check
    required: bool = False


def broken(rules: tuple[Rule, ...], value: Mapping[str, Any], path: str) -> Iterator[Problem]:
    """Check an object's fields and yield each problem; fields without a rule are ignored."""
    for rule in rules:
        field_path = child(path, rule.key)
        if rule.key not in value:
            if rule.required:
                yield missing_field(field_path)
        elif value[rule.key] is not None or rule.required:
            yield from rule.check(field_path, value[rule.key])


def text(path: str, value: Any) -> Iterator[Problem]:
    if not isinstance(value, str):
        yield wrong_type(path, translatable("a text"))
    elif not is_storable(value):
        yield unreadable_text(path)


def filled(path: str, value: Any) -> Iterator[Problem]:
    if isinstance(value, str) and not value.strip():
        yield missing_field(path)
    else:
        yield from text(path, value)


def key_name(path: str, value: Any) -> Iterator[Problem]:
    """Yield a problem unless the value is a short single-line string, which may be empty."""
    yield from text(path, value)
    if isinstance(value, str) and (len(value) > MAX_KEY_NAME or value != value.strip() or not value.isprintable()):
        yield out_of_range(path, translatable("a name of at most 60 characters on one line"))


def flag(path: str, value: Any) -> Iterator[Problem]:
    if not isinstance(value, bool):
        yield wrong_type(path, translatable("true or false"))


def price(path: str, value: Any) -> Iterator[Problem]:
    yield from check_price(value, path)


def mapping(path: str, value: Any) -> Iterator[Problem]:
    if not isinstance(value, Mapping):
        yield wrong_type(path, translatable("an object"))


def content(path: str, value: Any) -> Iterator[Problem]:
    yield from mapping(path, value)
    if isinstance(value, Mapping):
        yield from broken((Rule("text", text_limit), Rule("html", choice(HTML_FORMS))), value, path)


def text_limit(path: str, value: Any) -> Iterator[Problem]:
    """Yield a problem unless the value is a valid limit for a file's text, such as `200000` or `30%`."""
    if not isinstance(value, str):
        yield wrong_type(path, translatable("a text"))
    elif problem := find_problem(value):
        yield Problem(path, problem, "range")


def listing(path: str, value: Any) -> Iterator[Problem]:
    if not isinstance(value, list):
        yield wrong_type(path, translatable("a list"))


def filled_texts(path: str, value: Any) -> Iterator[Problem]:
    yield from listing(path, value)
    for at, item in enumerate(value if isinstance(value, list) else ()):
        yield from filled(f"{path}[{at}]", item)


def choice(allowed: tuple[str, ...]) -> Check:
    def check(path: str, value: Any) -> Iterator[Problem]:
        if not isinstance(value, str):
            yield wrong_type(path, translatable("a text"))
        elif value not in allowed:
            yield invalid_choice(path, allowed)

    return check


def number(minimum: float, maximum: float, expected: str, *, whole: bool = False) -> Check:
    """Return a check for numbers in [minimum, maximum]; with `whole`, it accepts 4096 and 4096.0 but not 0.5."""

    def check(path: str, value: Any) -> Iterator[Problem]:
        is_accepted_type = isinstance(value, int) or (isinstance(value, float) and (value.is_integer() or not whole))
        # In Python, `bool` is a subclass of `int`.
        if isinstance(value, bool) or not is_accepted_type:
            yield wrong_type(path, expected)
        elif not minimum <= value <= maximum:
            yield out_of_range(path, expected)

    return check


temperature = number(*TEMPERATURE, translatable("a number from 0 to 2"))
max_tokens = number(*MAX_TOKENS, translatable("a whole number from 1 to %(most)s", most=MAX_TOKENS[1]), whole=True)
retries = number(*RETRIES, translatable("a whole number from 0 to 10"), whole=True)
# `math.ulp(0.0)` is the smallest positive number, so 0 is rejected.
seconds = number(math.ulp(0.0), MAX_SECONDS, translatable("a number of seconds above 0, at most a day"))
keep_alive = number(0, MAX_SECONDS, translatable("a number of seconds from 0 to a day"))


def seconds_table(path: str, value: Any) -> Iterator[Problem]:
    """Check an object that maps timeouts to seconds, and yield each problem; an unknown name only causes a warning."""
    yield from mapping(path, value)
    for key, item in value.items() if isinstance(value, Mapping) else ():
        item_path = child(path, key)
        yield from seconds(item_path, item)
        if key not in TIMES:
            yield _no_effect(item_path, translatable("the times are %(times)s.", times=TIMES))


def deadline(path: str, value: Any) -> Iterator[Problem]:
    """Check a deadline, a number of seconds or an object with `total` and `firstContent`, and yield each problem."""
    if isinstance(value, Mapping):
        yield from broken((Rule("total", seconds), Rule("firstContent", seconds)), value, path)
    else:
        yield from seconds(path, value)


def on_error(path: str, value: Any) -> Iterator[Problem]:
    """Check an error policy, the name of a preset or a table of error → action, and yield each problem."""
    if isinstance(value, str):
        yield from choice(PRESETS)(path, value)
        return
    yield from mapping(path, value)
    for error_class, action in value.items() if isinstance(value, Mapping) else ():
        yield from _error_rule(child(path, error_class), error_class, action)


def _error_rule(path: str, error_class: str, value: Any) -> Iterator[Problem]:
    if error_class == "preset":
        yield from choice(PRESETS)(path, value)
    elif error_class == "fallbackOn":
        yield from listing(path, value)
        known = [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
        yield from (_no_effect(path, sentence) for sentence in map(error_class_problem, known) if sentence)
    else:
        yield from choice(ACTIONS)(path, value)
        # A rule for an unknown error class has no effect, so it only causes a warning.
        sentence = error_class_problem(error_class)
        if sentence:
            yield _no_effect(path, sentence)


def _no_effect(path: str, sentence: str) -> Problem:
    message = translatable("%(path)s has no effect: %(reason)s", path=path, reason=sentence)
    return Problem(path, message, "enum", "warning")


def quirks(path: str, value: Any) -> Iterator[Problem]:
    """Check compatibility options and yield each problem; an unknown option only causes a warning."""
    yield from check_quirks(value, path)


def url(path: str, value: Any) -> Iterator[Problem]:
    found = list(filled(path, value))
    yield from found
    if found:
        return
    try:
        parts = urlsplit(value)
        is_valid = parts.scheme in SCHEMES and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:  # The URL contains an invalid port or bracket.
        is_valid = False
    if not is_valid:
        yield wrong_type(
            path, translatable("a URL that begins with https:// or http:// (echo://local for the embedded provider)")
        )
    elif "@" in parts.netloc:
        yield wrong_type(path, translatable("a URL without a user name or password; the key belongs in apiKey"))


def proxy(path: str, value: Any) -> Iterator[Problem]:
    if value not in ("default", "none"):
        yield from url(path, value)


def key(path: str, value: Any) -> Iterator[Problem]:
    """Yield a problem unless the value is a key that can be sent in a header, or exactly `${VARIABLE}`."""
    if not isinstance(value, str):
        yield wrong_type(path, translatable("a text"))
    elif classify_key(value) is KeyNotation.INVALID:
        yield bad_key(path)
