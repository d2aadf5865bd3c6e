"""A route's error policy as a table, and the classification of an error that a user pasted."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from capabilities.core.protocols.errors import parse_failure, parse_inner_failure
from capabilities.core.wire import Failure, Fault
from capabilities.sentences import translate_sentence
from routing_admin.core.configuration.specs import RouteSpec
from routing_admin.core.fallback.policy import Explanation, Policy, Verdict, explain
from routing_admin.core.fallback.table import GROUPS, Action, Effect
from routing_admin.core.planning.plan import route_policy

ACTIONS: Mapping[Action, str | Promise] = {
    Action.RETRY: gettext_lazy("retry, then the next candidate"),
    Action.NEXT: gettext_lazy("next candidate at once"),
    Action.RAISE: gettext_lazy("stop, no fallback"),
}
"""Actions that a route can take after an error, with their labels."""

Row = tuple[str, str | Promise, tuple[Failure, ...]]


def _status(*codes: int) -> tuple[Failure, ...]:
    return tuple(Failure(Fault(f"http_{code}"), status=code) for code in codes)


def _faults(*faults: Fault) -> tuple[Failure, ...]:
    return tuple(Failure(fault) for fault in faults)


ROWS: tuple[Row, ...] = (
    ("429", gettext_lazy("429 rate limited"), _status(429)),
    (Fault.HTTP_429_WAIT.value, gettext_lazy("429 with a long wait"), _faults(Fault.HTTP_429_WAIT)),
    ("quota", gettext_lazy("402, quota used up"), _faults(Fault.HTTP_429_QUOTA, Fault.HTTP_402)),
    ("5xx", gettext_lazy("5xx, provider failed"), _status(500, 502, 503)),
    ("network", gettext_lazy("connection refused or reset, DNS, TLS"), _faults(Fault.CONNECT_REFUSED, Fault.DNS_ERROR)),
    (Fault.CONNECT_TIMEOUT.value, gettext_lazy("no connection in time"), _faults(Fault.CONNECT_TIMEOUT)),
    (Fault.READ_TIMEOUT.value, gettext_lazy("no answer in time"), _faults(Fault.READ_TIMEOUT)),
    (Fault.TTFT_TIMEOUT.value, gettext_lazy("no first content in time"), _faults(Fault.TTFT_TIMEOUT)),
    (Fault.EMPTY_CONTENT.value, gettext_lazy("an empty answer"), _faults(Fault.EMPTY_CONTENT)),
    (Fault.BAD_JSON.value, gettext_lazy("a broken answer"), _faults(Fault.BAD_JSON)),
    ("400", gettext_lazy("400 bad request"), _status(400)),
    ("context_length", gettext_lazy("too long for the model"), _faults(Fault.CONTEXT_LENGTH)),
    ("content_policy", gettext_lazy("refused by content policy"), _faults(Fault.CONTENT_POLICY)),
    ("auth", gettext_lazy("401, 403 key refused"), _status(401, 403)),
    ("404", gettext_lazy("404 unknown model"), _status(404)),
    ("413", gettext_lazy("413 too large"), _status(413)),
    ("422", gettext_lazy("422 cannot process"), _status(422)),
)
"""Rows of the table: an error class as written in policies, its label, and sample failures of that class."""

EXAMPLE = 'HTTP 429 {"error":{"code":"insufficient_quota"}}'
"""Example that shows users what kind of error they can paste."""

SHORT = frozenset({"429", "quota", "5xx", "network", Fault.READ_TIMEOUT.value, "400", "auth", "404", "413", "422"})
"""Error classes that are shown even while the table is collapsed."""

HTTP_STATUS = re.compile(
    r"(?:HTTP(?:/[\d.]+)?\s*|status(?:[ _]?code)?\W{0,3}|error\W{0,3}code\W{0,3}|^\s*)([1-5]\d\d)\b", re.I
)
EXCEPTIONS: tuple[tuple[re.Pattern[str], Fault], ...] = (
    (re.compile(r"name resolution|getaddrinfo|ENOTFOUND|NXDOMAIN|resolve host|dns", re.I), Fault.DNS_ERROR),
    (re.compile(r"refused", re.I), Fault.CONNECT_REFUSED),
    (re.compile(r"certificate", re.I), Fault.TLS_CERT_ERROR),
    (re.compile(r"connect(ion)?\s*time(d\s*)?out|ETIMEDOUT|ConnectTimeout", re.I), Fault.CONNECT_TIMEOUT),
    (re.compile(r"time(d\s*)?out|timeout", re.I), Fault.READ_TIMEOUT),
    (re.compile(r"reset|ECONNRESET|broken pipe|disconnected|EOF", re.I), Fault.RESET_BEFORE_HEADERS),
)
"""Patterns for exception messages without an HTTP status. The first match counts, so specific patterns are first."""


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """An error class in the table: the action that follows such an error, and the action that the route itself sets.

    `moved` is true if the preset makes the chain continue after an error that would otherwise end the request. If
    `short` is true, the row is always shown.
    """

    word: str
    label: str | Promise
    verdict: str
    action: Action
    own: str
    moved: bool
    short: bool


def build_policy_rows(route: RouteSpec) -> list[PolicyRow]:
    """Return a route's error policy as rows. Error classes that are not in `ROWS` are last."""
    policy = route_policy(route)
    table_words = {word for word, _label, _failures in ROWS}
    # A policy may name any fault or status, including those that are not in the table.
    other_rows: list[Row] = [
        (word, word, _sample_failures(word)) for word in policy.on_error if word not in table_words
    ]
    return [
        PolicyRow(
            word=word,
            label=label,
            verdict=verdict_line(verdict, policy),
            action=verdict.action,
            own=policy.on_error.get(word, ""),
            moved=policy.allows_fallback(failures[0].fault),
            short=word in SHORT or word in policy.on_error,
        )
        for word, label, failures in [*ROWS, *other_rows]
        for verdict in [policy.verdict(failures[0])]
    ]


def _sample_failures(word: str) -> tuple[Failure, ...]:
    if word in GROUPS:
        return (Failure(sorted(GROUPS[word])[0]),)
    if word in set(Fault):
        return (Failure(Fault(word)),)
    return (parse_failure(int(word), {}, b""),)


def verdict_line(verdict: Verdict, policy: Policy) -> str:
    cools = verdict.effect in (Effect.NOW, Effect.MINUTE, Effect.LONG, Effect.EXACT)
    if verdict.action is Action.RAISE:
        return _("stops here, no fallback")
    if verdict.action is Action.NEXT or policy.retries == 0:
        return _("next candidate at once; this one cools down") if cools else _("next candidate at once")
    return ngettext(
        "%(count)d retry, then the next candidate", "%(count)d retries, then the next candidate", policy.retries
    ) % {"count": policy.retries}


@dataclass(frozen=True, slots=True, kw_only=True)
class PastedError:
    """A pasted error: its classification, its meaning, and what this route would do after it."""

    explanation: Explanation
    failure: Failure
    meaning: str
    verdict: str
    words: Sequence[str]


def read_pasted(text: str, route: RouteSpec) -> PastedError | None:
    """Classify an error that was copied from a log or a provider. Return None for blank text."""
    if not text.strip():
        return None
    failure = failure_in(text)
    policy = route_policy(route)
    explanation = explain(failure, policy)
    meaning = translate_sentence(explanation.meaning)
    return PastedError(
        explanation=explanation,
        failure=failure,
        meaning=meaning,
        verdict=verdict_line(explanation.verdict, policy),
        words=tuple(dict.fromkeys(explanation.words)),
    )


def failure_in(text: str) -> Failure:
    """Return the failure that a text describes.

    The text may contain an HTTP status, a response body, both, or an exception message.
    """
    status = HTTP_STATUS.search(text)
    start = text.find("{")
    body = text[start:] if start >= 0 else text[status.end() :] if status else text
    if status:
        return parse_failure(int(status[1]), {}, body.strip().encode())
    # Only plain text is searched, because in JSON these words may occur in any message.
    for pattern, fault in EXCEPTIONS:
        if start < 0 and pattern.search(text):
            return Failure(fault, text.strip()[:300])
    return parse_inner_failure(_json(body) if start >= 0 else {"error": {"message": text.strip()}})


def _json(body: str) -> object:
    try:
        return json.JSONDecoder().raw_decode(body)[0]
    except ValueError:
        return {"error": {"message": body}}
