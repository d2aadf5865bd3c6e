"""Salted slow hashes by which a backup identifies the secrets it needs without revealing them."""

from __future__ import annotations

import hashlib
import hmac
import secrets

# Parameters of scrypt.
COST, BLOCK_SIZE, PARALLEL = 2**14, 8, 1


def mark_secret(secret: str, salt: str = "") -> str:
    """Return the salted hash of a secret as `SALT:HASH`, in hexadecimal."""
    salt = salt or secrets.token_hex(16)
    digest = hashlib.scrypt(secret.encode(), salt=bytes.fromhex(salt), n=COST, r=BLOCK_SIZE, p=PARALLEL, dklen=32)
    return f"{salt}:{digest.hex()}"


def is_marked(secret: str, mark: str) -> bool:
    salt, _, _ = mark.partition(":")
    return hmac.compare_digest(mark_secret(secret, salt), mark)
