"""Store provider keys encrypted, each bound to the origin to which it may be sent."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

from capabilities.core.translatable import translatable
from capabilities.models import StoredKey
from capabilities.signing import read_secrets_again, sign_permanently


class KeyUnreadableError(Exception):
    """A stored key cannot be decrypted, or may not be sent to this origin. `reason` states which of the two."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


OTHER_ENCRYPTION = translatable("the stored key was encrypted with another key; enter it again")
OTHER_ORIGIN = translatable("the stored key was entered for another address; enter it again")


def endpoint_origin(endpoint: str) -> str:
    """Return the origin of an endpoint, to which its key is bound, e.g. `https://api.openai.com:443`.

    Text that cannot be parsed as a URL is returned unchanged.
    """
    try:
        parts = urlsplit(endpoint)
    except ValueError:
        return endpoint
    try:
        port = parts.port
    except ValueError:
        port = None
    # Include the default port, so that URLs with and without the port have the same origin.
    port = port or {"https": 443, "http": 80}.get(parts.scheme)
    return f"{parts.scheme}://{(parts.hostname or '').lower()}" + (f":{port}" if port else "")


def cipher() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.ENCRYPTION_KEYS])


def key_fingerprint(key: str, origin: str) -> str:
    """Return an HMAC that identifies a key at an origin without revealing the key."""
    return sign_permanently(f"{origin}\n{key}".encode())


def store_key(key: str, endpoint: str) -> StoredKey:
    """Encrypt and store a provider key for the origin of its endpoint. There is one row per key and origin."""
    origin = endpoint_origin(endpoint)
    # Encrypt the origin together with the key, so that changing the row cannot redirect the key to another origin.
    sealed = cipher().encrypt(json.dumps({"key": key, "origin": origin}).encode()).decode()
    # Store no part of a short key, because its last four characters would reveal too much.
    last_four = key[-4:] if len(key) >= 12 else ""
    stored, _ = StoredKey.objects.get_or_create(
        fingerprint=key_fingerprint(key, origin),
        defaults={"origin": origin, "ciphertext": sealed, "last_four": last_four},
    )
    return stored


def open_key(stored: StoredKey, endpoint: str) -> str:
    """Return the decrypted key for this endpoint.

    Raise KeyUnreadableError if the key is bound to another origin or cannot be decrypted.
    """
    content = json.loads(_decrypt(stored.ciphertext.encode()))
    if content["origin"] != endpoint_origin(endpoint):
        raise KeyUnreadableError(OTHER_ORIGIN)
    return str(content["key"])


def _decrypt(ciphertext: bytes) -> bytes:
    try:
        return cipher().decrypt(ciphertext)
    except InvalidToken as problem:
        # Another process may have added an encryption key since this process last read the keys.
        if read_secrets_again():
            return _decrypt(ciphertext)
        raise KeyUnreadableError(OTHER_ENCRYPTION) from problem


def rotate() -> int:
    """Re-encrypt all stored keys with the newest encryption key, and return how many there are.

    If a stored key cannot be decrypted, raise `KeyUnreadableError` before anything is written.
    """
    engine = cipher()
    # Lock the rows, so that no key is stored with an old encryption key in the meantime.
    rows = list(StoredKey.objects.select_for_update())
    for row in rows:
        try:
            row.ciphertext = engine.rotate(row.ciphertext.encode()).decode()
        except InvalidToken as problem:
            raise KeyUnreadableError(OTHER_ENCRYPTION) from problem
    StoredKey.objects.bulk_update(rows, ["ciphertext"])
    return len(rows)
