"""The installation's signing secrets, newest first.

The first one signs, and signatures made with any of them are valid. To rotate, insert a new secret in front. A running
server needs no restart: if a signature matches none of its secrets, it reads the file again.
"""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

from django.conf import settings

from capabilities.runtime import owned


def sign(message: bytes) -> str:
    """Return the message's HMAC-SHA256 with the newest secret, in hex."""
    return _sign(newest_secret(), message)


def sign_permanently(message: bytes) -> str:
    """Return the message's HMAC with the oldest secret. It stays the same until that secret is removed."""
    # Stored objects are looked up by this HMAC, so it must not change whenever the secret is rotated.
    return _sign(settings.SIGNING_SECRETS[-1], message)


def signatures(message: bytes) -> list[str]:
    return [_sign(secret, message) for secret in settings.SIGNING_SECRETS]


def is_signed(message: bytes, signature: str) -> bool:
    """Return whether one of the secrets made this signature. The comparison takes constant time.

    If none did, but the secret files have changed, read them again and check once more.
    """
    return _matches(message, signature) or (read_secrets_again() and _matches(message, signature))


def newest_secret() -> str:
    return str(settings.SIGNING_SECRETS[0])


def secret_name(secret: str) -> str:
    """Return a short name that identifies a secret without revealing it."""
    return _sign(secret, b"name of this secret")[:16]


def read_secrets_again() -> bool:
    """Reload the data directory's secret files if they have changed, and return whether a secret has changed.

    Secrets from environment variables do not change. The secret that signs browser sessions stays the same until the
    process restarts.
    """
    stamps = {name: _stamp(path) for name, path in settings.SECRET_FILES.items()}
    # Every request with an invalid key calls this, so read the files only if one of them has changed.
    if stamps == _stamps():
        return False
    _stamps().clear()
    _stamps().update(stamps)
    previous = (list(settings.SIGNING_SECRETS), list(settings.ENCRYPTION_KEYS))
    if settings.SECRET_FILES.get("secret_key"):
        settings.SIGNING_SECRETS = _read(settings.SECRET_FILES["secret_key"]) or previous[0]
        settings.SECRET_KEY_FALLBACKS = [secret for secret in settings.SIGNING_SECRETS if secret != settings.SECRET_KEY]
    if settings.SECRET_FILES.get("keys"):
        settings.ENCRYPTION_KEYS = _read(settings.SECRET_FILES["keys"]) or previous[1]
    return previous != (settings.SIGNING_SECRETS, settings.ENCRYPTION_KEYS)


_stamps = owned(dict[str, int])
"""The modification time of each file when it was last read."""


def _stamp(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _read(path: Path) -> list[str]:
    try:
        return split_secrets(path.read_text(encoding="utf-8"))
    except OSError:
        return []


def split_secrets(text: str) -> list[str]:
    return [secret for part in text.split(",") if (secret := part.strip())]


def _sign(secret: str, message: bytes) -> str:
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()


def _matches(message: bytes, signature: str) -> bool:
    # Compare all signatures, so that the time does not reveal which one matches.
    matches = [hmac.compare_digest(signature, expected) for expected in signatures(message)]
    return any(matches)
