"""The secret of an upload link: whether we made it, and until when it counts, is told without asking anybody.

So the server knows before a body comes whether it may be a large one; that a link is used once is for its row to say.
"""

from __future__ import annotations

import hmac
import re
import secrets
from base64 import urlsafe_b64encode
from datetime import UTC, datetime
from enum import StrEnum

from capabilities.signing import read_secrets_again, sign, signatures

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
    if match is None or not _is_ours(match[1], match[2]):
        return TokenState.WRONG
    is_over = int(token[:8], 16) <= (now or datetime.now(UTC)).timestamp()
    return TokenState.EXPIRED if is_over else TokenState.VALID


def state_of_address(path: str) -> TokenState | None:
    """The same for the address of a request; None where it is no link's."""
    match = ADDRESS.fullmatch(path)
    return None if match is None else state_of_token(match[1])


def digest_of(token: str) -> str:
    """What is kept of a secret: 192 random bits need no slow hash (docs/decisions)."""
    return digests_of(token)[0]


def digests_of(token: str) -> list[str]:
    """The same under each of the installation's secrets, the newest first."""
    return signatures(b"upload link " + token.encode())


def _sign(body: str) -> str:
    return _short(sign(_message(body)))


def _is_ours(body: str, signature: str) -> bool:
    """Whether a secret of ours made it, one that came meanwhile too."""
    made = [hmac.compare_digest(signature, _short(each)) for each in signatures(_message(body))]
    return any(made) or (read_secrets_again() and _is_ours(body, signature))


def _message(body: str) -> bytes:
    return b"upload token " + body.encode()


def _short(signature: str) -> str:
    return urlsafe_b64encode(bytes.fromhex(signature)[:24]).decode()
