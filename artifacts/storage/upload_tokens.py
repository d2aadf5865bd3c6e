"""The secret of an upload link: whether we made it, and until when it counts, is told without asking anybody.

So the server knows before a body comes whether it may be a large one; that a link is used once is for its row to say.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from base64 import urlsafe_b64encode
from datetime import UTC, datetime
from enum import StrEnum

from django.conf import settings

PATH = "/api/v1/uploads/"
"""What the address of a link begins with."""
FORM = re.compile(r"([0-9a-f]{8}[A-Za-z0-9_-]{32})([A-Za-z0-9_-]{32})")
"""When it ends, in seconds of 1970, and 192 random bits; then their signature."""
ADDRESS = re.compile(re.escape(PATH) + r"([^/]+)")


class TokenState(StrEnum):
    """What a word in a link's place is."""

    VALID = "valid"
    EXPIRED = "expired"
    WRONG = "wrong"


def make_token(expires_at: datetime) -> str:
    """A new secret that counts until then."""
    body = f"{int(expires_at.timestamp()):08x}{secrets.token_urlsafe(24)}"
    return body + _sign(body)


def state_of_token(token: str, now: datetime | None = None) -> TokenState:
    """Whether a word is a secret of ours that still counts."""
    match = FORM.fullmatch(token)
    if match is None or not hmac.compare_digest(match[2], _sign(match[1])):
        return TokenState.WRONG
    is_over = int(token[:8], 16) <= (now or datetime.now(UTC)).timestamp()
    return TokenState.EXPIRED if is_over else TokenState.VALID


def state_of_address(path: str) -> TokenState | None:
    """The same for the address of a request; None where it is no link's."""
    match = ADDRESS.fullmatch(path)
    return None if match is None else state_of_token(match[1])


def digest_of(token: str) -> str:
    """What is kept of a secret: 192 random bits need no slow hash (docs/decisions)."""
    return hmac.new(settings.SECRET_KEY.encode(), b"upload link " + token.encode(), hashlib.sha256).hexdigest()


def _sign(body: str) -> str:
    made = hmac.new(settings.SECRET_KEY.encode(), b"upload token " + body.encode(), hashlib.sha256).digest()
    return urlsafe_b64encode(made[:24]).decode()
