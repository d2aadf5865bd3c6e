"""Rotation of `ROUTING_ADMIN_KEYS`: every key in the list is used to decrypt, and the first one to encrypt."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command

from capabilities.models import StoredKey
from capabilities.secrets import KeyUnreadableError, open_key, store_key
from routing_admin.models import AuditEvent

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
OLD, NEW, OTHER = (Fernet.generate_key().decode() for _ in range(3))
ENDPOINT, KEYS = "https://api.example/v1", ("sk-first-of-the-two", "sk-second-of-the-two")


@pytest.fixture
def stored_keys(settings: Any) -> list[StoredKey]:
    settings.ENCRYPTION_KEYS = [OLD]
    return [store_key(key, ENDPOINT) for key in KEYS]


def decrypted_keys() -> list[str]:
    return [open_key(row, ENDPOINT) for row in StoredKey.objects.order_by("pk")]


def test_old_encryption_key_still_decrypts_after_a_new_key_is_added(
    stored_keys: list[StoredKey], settings: Any
) -> None:
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    assert decrypted_keys() == list(KEYS)
    store_key("sk-third-of-them-all", ENDPOINT)
    settings.ENCRYPTION_KEYS = [NEW]
    assert open_key(StoredKey.objects.order_by("pk").last(), ENDPOINT) == "sk-third-of-them-all"
    with pytest.raises(KeyUnreadableError):
        decrypted_keys()


def test_key_rotation_re_encrypts_every_stored_key(stored_keys: list[StoredKey], settings: Any) -> None:
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    output = StringIO()
    call_command("rotate_keys", stdout=output)
    assert "re-encrypted: 2." in output.getvalue()
    settings.ENCRYPTION_KEYS = [NEW]
    assert decrypted_keys() == list(KEYS)
    assert [row.fingerprint for row in StoredKey.objects.order_by("pk")] == [row.fingerprint for row in stored_keys]
    assert AuditEvent.objects.get(action="keys.rotate").details == {"keys": 2}


def test_key_rotation_changes_nothing_if_a_key_cannot_be_decrypted(stored_keys: list[StoredKey], settings: Any) -> None:
    before = list(StoredKey.objects.order_by("pk").values_list("ciphertext", flat=True))
    settings.ENCRYPTION_KEYS = [OTHER]
    with pytest.raises(CommandError, match="Nothing was changed"):
        call_command("rotate_keys", stdout=StringIO())
    assert list(StoredKey.objects.order_by("pk").values_list("ciphertext", flat=True)) == before
    assert not AuditEvent.objects.filter(action="keys.rotate").exists()
