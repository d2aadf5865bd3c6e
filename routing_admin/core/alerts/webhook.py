"""Parse the webhook setting: its URL, format, signing secret and language.

The setting has the form `https://host/path#shape=feishu&secret=…&lang=zh`; the part after `#` is never sent. By
default, the host determines the format, and the format determines the language. The URL itself is a secret.

The table `SHAPES` contains the payload, the signature and the error codes of each chat service: most services refuse a
message with status 200 and an error code in the body. Sources:

- WeCom: developer.work.weixin.qq.com/document/path/91770 (text of 2048 bytes at most, `errcode`)
- DingTalk: open.dingtalk.com/document/robots/custom-robot-access and …/customize-robot-security-settings (`errcode`;
  milliseconds and signature in the URL)
- Feishu, Lark: open.feishu.cn/document/client-docs/bot-v3/add-custom-bot (`code`, earlier `StatusCode`; seconds and
  signature in the body, made with an empty text)
- Slack: docs.slack.dev/messaging/sending-messages-using-incoming-webhooks (`text`, with &, < and > escaped)
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from capabilities.core.json_codec import read_repaired_json
from capabilities.core.providers.origins import NO_URL, find_malformation
from capabilities.core.providers.redaction import redact
from capabilities.core.translatable import Translatable, translatable

TEXT_BYTES = 2000
"""Maximum length of a message in bytes, just below the smallest limit of any chat service."""
MAX_QUOTED = 300
"""How many characters of a chat service's error message to quote at most."""


class ShapeName(StrEnum):
    JSON = "json"
    WECOM = "wecom"
    DINGTALK = "dingtalk"
    FEISHU = "feishu"
    SLACK = "slack"


@dataclass(frozen=True, slots=True)
class Notice:
    """A message as lines of text in the users' language, and as fields for programs."""

    lines: tuple[str, ...]
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The lines as one string, truncated to `TEXT_BYTES` without splitting a character."""
        return "\n".join(self.lines).encode()[:TEXT_BYTES].decode(errors="ignore")


Body = Mapping[str, Any]
Signed = tuple[str, Body]
"""The URL to call and the payload. One of them contains the signature, depending on the chat service."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One chat service: its hosts, default language, payload, signature and response fields.

    `codes` are the response fields that may contain an error code, `words` those that may contain a message. The notice
    was accepted if the first of `codes` in the response is 0. Without `codes`, only the HTTP status is considered.
    """

    hosts: tuple[str, ...]
    language: str
    body: Callable[[Notice], Body]
    sign: Callable[[str, Body, str, float], Signed] | None = None
    codes: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    @property
    def signs(self) -> bool:
        return self.sign is not None


def _plain(notice: Notice) -> Body:
    return {**notice.fields, "text": notice.text}


def _text(notice: Notice) -> Body:
    return {"msgtype": "text", "text": {"content": notice.text}}


def _feishu_text(notice: Notice) -> Body:
    # `<` is replaced because a tag such as `<at user_id="all">` in the text would notify users.
    return {"msg_type": "text", "content": {"text": notice.text.replace("<", "‹")}}


def _slack_text(notice: Notice) -> Body:
    return {"text": notice.text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")}


def _sign_address(url: str, body: Body, secret: str, now: float) -> Signed:
    stamp = str(round(now * 1000))
    # DingTalk: the signed text consists of the time in milliseconds and the secret. Time and signature go into the URL.
    sign = _hmac(secret, f"{stamp}\n{secret}")
    return f"{url}{'&' if '?' in url else '?'}timestamp={stamp}&sign={quote(sign, safe='')}", body


def _sign_body(url: str, body: Body, secret: str, now: float) -> Signed:
    stamp = str(int(now))
    # Feishu: the time in seconds and the secret form the key, which signs an empty text.
    return url, {"timestamp": stamp, "sign": _hmac(f"{stamp}\n{secret}", ""), **body}


def _hmac(key: str, text: str) -> str:
    return base64.b64encode(hmac.new(key.encode(), text.encode(), hashlib.sha256).digest()).decode()


FEISHU_HOSTS = ("open.feishu.cn", "open.larksuite.com")
SHAPES: Mapping[ShapeName, Shape] = MappingProxyType(
    {
        ShapeName.JSON: Shape((), "en", _plain),
        ShapeName.WECOM: Shape(("qyapi.weixin.qq.com",), "zh-hans", _text, None, ("errcode",), ("errmsg",)),
        ShapeName.DINGTALK: Shape(
            ("oapi.dingtalk.com", "api.dingtalk.com"), "zh-hans", _text, _sign_address, ("errcode",), ("errmsg",)
        ),
        ShapeName.FEISHU: Shape(
            *(FEISHU_HOSTS, "zh-hans", _feishu_text, _sign_body, ("code", "StatusCode"), ("msg", "StatusMessage")),
        ),
        ShapeName.SLACK: Shape(("hooks.slack.com", "hooks.slack-gov.com"), "en", _slack_text),
    }
)

REFUSED = translatable("It answered with code %(code)s: %(words)s")
STATUS = translatable("It answered with status %(status)s: %(words)s")
NO_CODE = translatable("It answered with status %(status)s, but not like %(shape)s. Check the address.")


def write(shape: ShapeName, notice: Notice, url: str, secret: str, now: float) -> Signed:
    """Return the URL and payload of a notice; `now`, in seconds since 1970, is part of the signature."""
    row = SHAPES[shape]
    body = row.body(notice)
    return row.sign(url, body, secret, now) if row.sign and secret else (url, body)


def refusal_in(shape: ShapeName, status: int, body: bytes) -> Translatable | None:
    """Return why the chat service refused the notice, or None if it accepted it."""
    row, text = SHAPES[shape], body.decode(errors="replace").strip()
    answer = _object_in(text)
    code = next((answer[name] for name in row.codes if name in answer), None)
    if code not in (None, 0, "0"):
        error_text = next((str(answer[name]) for name in row.words if answer.get(name)), text)
        return translatable(REFUSED, code=str(code)[:40], words=error_text[:MAX_QUOTED])
    if not 200 <= status < 300:
        return translatable(STATUS, status=status, words=text[:MAX_QUOTED] or "-")
    return translatable(NO_CODE, status=status, shape=shape.value) if row.codes and code is None else None


def _object_in(text: str) -> Mapping[str, Any]:
    try:
        value = read_repaired_json(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


CHINESE, ENGLISH = "zh-hans", "en"
LANGUAGES = {"zh": CHINESE, "zh-cn": CHINESE, "zh-hans": CHINESE, "en": ENGLISH}
OPTIONS = ("shape", "secret", "lang")

NO_ADDRESS = translatable("Write it as https://host/path: %(reason)s.")
UNKNOWN_OPTION = translatable(
    "After the #, only shape=, secret= and lang= are allowed, joined by &, each once. %(name)s is unknown, "
    "repeated or empty."
)
NO_SHAPE = translatable("There is no such shape. Use one of: %(names)s.")
NO_LANGUAGE = translatable("There is no such language. Use en or zh.")
UNSIGNED = translatable("The shape %(shape)s does not use a secret. Only these do: %(names)s.")


class WebhookAddressError(ValueError):
    """A webhook URL that cannot be used; the message says why and repeats no part of the URL."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """Destination of alerts; `repr` shows neither its URL nor its secret."""

    url: str = field(repr=False)
    shape: ShapeName
    secret: str = field(default="", repr=False)
    language: str = ENGLISH

    @property
    def host(self) -> str:
        """The only part of the URL that may be shown."""
        return urlsplit(self.url).netloc

    def hide(self, text: str) -> str:
        """Redact the webhook's URL, its secret, and every longer URL component wherever they occur in a text."""
        parts = urlsplit(self.url)
        pieces = [*re.split(r"[/&=?]", f"{parts.path}?{parts.query}"), parts.path, parts.query, self.url, self.secret]
        return redact(text, [piece for piece in pieces if len(piece) >= MIN_SECRET_CHARS])


MIN_SECRET_CHARS = 8
"""Minimum length of a URL component that `hide` redacts. Shorter ones grant no access and may be ordinary words."""


def parse_webhook(text: str) -> Webhook:
    url, _, fragment = text.strip().partition("#")
    if (reason := find_malformation(url)) or urlsplit(url).scheme not in ("https", "http"):
        raise WebhookAddressError(translatable(NO_ADDRESS, reason=reason or NO_URL))
    options = _options(fragment)
    shape = _shape(options.get("shape", ""), urlsplit(url).hostname or "")
    language = LANGUAGES.get(options.get("lang", "").lower()) if "lang" in options else SHAPES[shape].language
    if language is None:
        raise WebhookAddressError(NO_LANGUAGE)
    secret = options.get("secret", "")
    if secret and not SHAPES[shape].signs:
        names = tuple(name.value for name, row in SHAPES.items() if row.signs)
        raise WebhookAddressError(translatable(UNSIGNED, shape=shape.value, names=names))
    return Webhook(url, shape, secret, language)


def _options(fragment: str) -> dict[str, str]:
    # Do not decode a plus sign as a space, because it may be part of a secret.
    found: dict[str, str] = {}
    for name, value in parse_qsl(fragment.replace("+", "%2B"), keep_blank_values=True):
        if name not in OPTIONS or name in found or not value:
            # The message does not repeat an unknown name, because it may be a fragment of a secret.
            known = name if name in OPTIONS else "…"
            raise WebhookAddressError(translatable(UNKNOWN_OPTION, name=known))
        found[name] = value
    return found


def _shape(name: str, host: str) -> ShapeName:
    if name:
        try:
            return ShapeName(name.lower())
        except ValueError:
            raise WebhookAddressError(translatable(NO_SHAPE, names=tuple(shape.value for shape in ShapeName))) from None
    return next((shape for shape, row in SHAPES.items() if host.lower() in row.hosts), ShapeName.JSON)
