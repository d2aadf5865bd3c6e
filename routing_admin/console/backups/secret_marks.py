"""By what a backup knows the secrets it was made with, without telling them: a slow hash with a salt."""

from __future__ import annotations

import hashlib
import hmac
import secrets

COST, BLOCK_SIZE, PARALLEL = 2**14, 8, 1


def mark_secret(secret: str, salt: str = "") -> str:
    """The mark of a secret, `SALT:HASH`."""
    salt = salt or secrets.token_hex(16)
    digest = hashlib.scrypt(secret.encode(), salt=bytes.fromhex(salt), n=COST, r=BLOCK_SIZE, p=PARALLEL, dklen=32)
    return f"{salt}:{digest.hex()}"


def is_marked(secret: str, mark: str) -> bool:
    """Whether that mark was made of this secret."""
    salt, _, _ = mark.partition(":")
    return hmac.compare_digest(mark_secret(secret, salt), mark)
