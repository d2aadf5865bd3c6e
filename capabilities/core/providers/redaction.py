"""Remove secrets from text before it is displayed or logged, and shorten providers' messages."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from capabilities.core.translatable import Translatable

MASK = "…"
MESSAGE_BYTES = 2048
"""Maximum size of a stored provider message in UTF-8 bytes."""
READ_CHARACTERS = 16_384
"""Only this many characters of a provider's message are processed. The rest of the message is never shown."""
MIN_SECRET_CHARS = 4
"""Known secrets that are shorter than this are ignored. Otherwise, parts of ordinary words would be removed."""

PASSES = 3
"""Maximum number of redaction passes. Redaction can make other text match a pattern, for example by removing a slash
between a password and its @, so a second pass is needed. A third one finds nothing more. The number is limited because
crafted text could otherwise need a pass for each of its words."""

_VALUE = r"[A-Za-z0-9_.~+/=*-]"
_PREFIXES = r"sk-|ra_|rat_|rap_|AIza|gsk_|xai-|hf_|pplx-|nvapi-|AKIA|AKID|LTAI|bce-v3/|r8_|fw_|tvly-|ghp_|eyJ"
"""Prefixes of keys, such as `eyJ` (JSON Web Tokens), `LTAI` (Alibaba), `AKID` (Tencent), and `bce-v3/` (Baidu)."""
_NAMES = (
    r"x-api-key|x-goog-api-key|api[-_]?key|access[-_]?token|client[-_]?secret|secret[-_]?(?:access[-_]?)?key|password"
    r"|(?:set-)?cookie"
)

PATTERNS = (
    ((), re.compile(rf"(?<![A-Za-z])({_PREFIXES}){_VALUE}{{6,}}")),
    (("bearer",), re.compile(rf"(?i)(bearer\s++)(?!bearer\s){_VALUE}{{6,}}")),
    (("basic",), re.compile(r"(?i)(\bbasic\s+)(?=[a-z+/]*[0-9=])[A-Za-z0-9+/]{8,}={0,2}")),
    (("://",), re.compile(r"(://[^\s/@:]*:)[^\s/@]+(?=@)")),
    (("=",), re.compile(r"(?i)([?&](?:key|token|sig|signature|api[-_]?key|access[-_]?token)=)[^&\s\"'<>#]+")),
    (
        ("key", "token", "secret", "password", "cookie"),
        re.compile(rf"(?i)((?:{_NAMES})[\"']?\s*[:=]\s*[\"']?){_VALUE}{{4,}}"),
    ),
    # Matches the secret in this program's upload links.
    (("/uploads/",), re.compile(r"(/uploads/+)[0-9a-f]{8}[A-Za-z0-9_-]{16,}")),
    # Matches a Zhipu key: 32 hexadecimal digits, a dot, and a secret.
    ((), re.compile(r"(?<![0-9a-f])([0-9a-f]{4})[0-9a-f]{28}\.[A-Za-z0-9]{12,}")),
)
"""Patterns for secrets, each with lower-case trigger words. A pattern is tried only if the text contains one of its
words, because searching for a word takes a fiftieth of the time that a case-insensitive pattern takes."""
_BLOB = re.compile(r"(?<=;base64,)[A-Za-z0-9+/_-]{16,}={0,2}|(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{200,}={0,2}")
_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff]+")
"""Terminal colours, control characters, line ends, and marks that reverse the reading direction."""


def redact(text: str, secrets: Collection[str] = ()) -> str:
    """Replace each of `secrets`, and everything that looks like a key, with an ellipsis.

    The kind of key (`sk-`, `Bearer`, `?key=` …) remains readable. The function is idempotent. A `Translatable` usually
    stays a `Translatable`, because only its inserted values can contain secrets.
    """
    if isinstance(text, Translatable):
        return _redact_sentence(text.change_texts(lambda fact: redact(fact, secrets)))
    # Replace the longest secret first, because a secret may contain another one.
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= MIN_SECRET_CHARS:
            text = text.replace(secret, MASK)
    for _ in range(PASSES):
        if (cleaned := _redact_once(text)) == text:
            break
        text = cleaned
    return text


def _redact_once(text: str) -> str:
    # Search for trigger words only in ASCII text, because case-insensitive patterns also match letters such as ſ for s.
    small = text.lower() if text.isascii() else ""
    for triggers, pattern in PATTERNS:
        if not (triggers and small) or any(trigger in small for trigger in triggers):
            text = pattern.sub(_mask, text)
    return text


def _mask(match: re.Match[str]) -> str:
    return f"{match[1]}{MASK}"


def summarize(text: str, secrets: Collection[str] = (), limit: int = MESSAGE_BYTES) -> str:
    """Return a provider's message as one line of at most `limit` bytes, without secrets, base64 or control characters.

    A `Translatable` usually stays a `Translatable`. If it is too long, its longest inserted value is truncated.
    """
    if isinstance(text, Translatable):
        return _shorten(_redact_sentence(text.change_texts(lambda fact: summarize(fact, secrets, limit))), limit)
    text = _CONTROL.sub(" ", text[:READ_CHARACTERS])
    return _cut(name_base64(redact(text, secrets)).strip(), limit)


def name_base64(text: str) -> str:
    """Replace each run of base64 with a note that states its length."""
    return _BLOB.sub(lambda match: f"<{len(match[0])} characters>", text)


def _cut(text: str, limit: int) -> str:
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return data.decode()
    return data[: max(0, limit - len(MASK.encode()))].decode("utf-8", "ignore") + MASK


def _redact_sentence(text: Translatable) -> str:
    plain_text = str(text)
    # A key can span an inserted value and the words around it. In that case, only the redacted plain text is safe.
    cleaned = redact(plain_text)
    return text if cleaned == plain_text else cleaned


def _shorten(text: str, limit: int) -> str:
    if not isinstance(text, Translatable):
        return _cut(text, limit)
    size = len(text.encode())
    if size <= limit:
        return text
    # Truncate only the longest inserted value, so that the sentence itself remains complete.
    longest = max(_facts_in(text), key=lambda fact: len(fact.encode()), default="")
    remaining = max(0, len(longest.encode()) - (size - limit))
    shorter = text.change_texts(lambda fact: _cut(fact, remaining) if fact == longest else fact)
    return shorter if len(shorter.encode()) <= limit else _cut(str(shorter), limit)


def _facts_in(text: Translatable) -> Iterator[str]:
    for fact in text.facts.values():
        for item in fact if isinstance(fact, tuple) else (fact,):
            if isinstance(item, Translatable):
                yield from _facts_in(item)
            elif isinstance(item, str):
                yield item
