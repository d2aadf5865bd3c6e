"""Parse the webhook setting: its URL, format, signing secret and language.

It is written `https://host/path#shape=feishu&secret=…&lang=zh`; the part after `#` is never sent. The format defaults
to that of the host's chat service, the language to that of the format. The URL itself is a secret.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from capabilities.core.providers.origins import NO_URL, malformation
from capabilities.core.providers.redaction import redact
from capabilities.core.translatable import translatable
from routing_admin.core.alerts.shapes import SHAPES, ShapeName

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
    """Why a webhook's URL cannot be used, without repeating any part of it."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where alerts are sent; `repr` shows neither URL nor secret."""

    url: str = field(repr=False)
    shape: ShapeName
    secret: str = field(default="", repr=False)
    language: str = ENGLISH

    @property
    def host(self) -> str:
        """The only part of the URL that may be shown."""
        return urlsplit(self.url).netloc

    def hide(self, text: str) -> str:
        """Redact the webhook's secret, its URL and each longer part of the URL."""
        parts = urlsplit(self.url)
        pieces = [*re.split(r"[/&=?]", f"{parts.path}?{parts.query}"), parts.path, parts.query, self.url, self.secret]
        return redact(text, [piece for piece in pieces if len(piece) >= LEAST])


LEAST = 8
"""Shorter parts of a URL give no access, and may be ordinary words."""


def parse_webhook(text: str) -> Webhook:
    """Parse the setting. Raise `WebhookAddressError` if it is invalid."""
    url, _, fragment = text.strip().partition("#")
    if (reason := malformation(url)) or urlsplit(url).scheme not in ("https", "http"):
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
    # A plus sign is kept as it is: it may be part of a secret.
    found: dict[str, str] = {}
    for name, value in parse_qsl(fragment.replace("+", "%2B"), keep_blank_values=True):
        if name not in OPTIONS or name in found or not value:
            # An unknown name may be part of a secret.
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
