"""Where alerts go: one address, the shape of what is sent there, the secret that signs it, and the language.

Written `https://host/path#shape=feishu&secret=…&lang=zh`: what stands behind the `#` is for us and is never sent. The
shape is told by the host where it is not written, the language by the shape. The address is itself a secret.
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
    """Why an address cannot be used, in a sentence that repeats nothing of it."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where alerts go; `url` is what is called. It shows itself by host and shape alone."""

    url: str = field(repr=False)
    shape: ShapeName
    secret: str = field(default="", repr=False)
    language: str = ENGLISH

    @property
    def host(self) -> str:
        """All of the address that may be seen."""
        return urlsplit(self.url).netloc

    def hide(self, text: str) -> str:
        """The text without what opens this webhook: its address, each longer part of it, and the secret."""
        parts = urlsplit(self.url)
        pieces = [*re.split(r"[/&=?]", f"{parts.path}?{parts.query}"), parts.path, parts.query, self.url, self.secret]
        return redact(text, [piece for piece in pieces if len(piece) >= LEAST])


LEAST = 8
"""Shorter parts of an address open nothing, and are words of sentences."""


def parse_webhook(text: str) -> Webhook:
    """The webhook that the setting names. Raises `WebhookAddressError` for what is none."""
    url, _, behind = text.strip().partition("#")
    if (reason := malformation(url)) or urlsplit(url).scheme not in ("https", "http"):
        raise WebhookAddressError(translatable(NO_ADDRESS, reason=reason or NO_URL))
    options = _options(behind)
    shape = _shape(options.get("shape", ""), urlsplit(url).hostname or "")
    language = LANGUAGES.get(options.get("lang", "").lower()) if "lang" in options else SHAPES[shape].language
    if language is None:
        raise WebhookAddressError(NO_LANGUAGE)
    secret = options.get("secret", "")
    if secret and not SHAPES[shape].signs:
        names = tuple(name.value for name, row in SHAPES.items() if row.signs)
        raise WebhookAddressError(translatable(UNSIGNED, shape=shape.value, names=names))
    return Webhook(url, shape, secret, language)


def _options(behind: str) -> dict[str, str]:
    """What stands behind the `#`; a plus stays one, for it is part of a secret."""
    found: dict[str, str] = {}
    for name, value in parse_qsl(behind.replace("+", "%2B"), keep_blank_values=True):
        if name not in OPTIONS or name in found or not value:
            known = name if name in OPTIONS else "…"  # whatever else it is may be a part of a secret
            raise WebhookAddressError(translatable(UNKNOWN_OPTION, name=known))
        found[name] = value
    return found


def _shape(name: str, host: str) -> ShapeName:
    if name:
        try:
            return ShapeName(name.lower())
        except ValueError:
            raise WebhookAddressError(translatable(NO_SHAPE, names=tuple(each.value for each in ShapeName))) from None
    return next((shape for shape, row in SHAPES.items() if host.lower() in row.hosts), ShapeName.JSON)
