"""Rotate the installation's secrets: the keys that encrypt stored provider keys, and the signing secrets."""

from __future__ import annotations

import os
import secrets as random
from pathlib import Path

from cryptography.fernet import Fernet
from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from capabilities import secrets
from capabilities.actors import Actor, AuditedAction
from capabilities.models import AgentKey, AgentLink
from capabilities.signing import newest_secret, read_secrets_again, secret_name
from routing_admin.configuration.revisions import ledger

GENERATORS = {"secret_key": lambda: random.token_urlsafe(50), "keys": lambda: Fernet.generate_key().decode()}
"""Maps each secret file to a function that generates a secret."""
ENVIRONMENT_VARIABLES = {"secret_key": "ROUTING_ADMIN_SECRET_KEY", "keys": "ROUTING_ADMIN_KEYS"}
"""Maps each secret file to the environment variable that overrides it."""


class SecretElsewhereError(Exception):
    """A secret is set by an environment variable, so the program cannot change it.

    The message names this variable.
    """

    def __init__(self, setting: str) -> None:
        super().__init__(
            f"{setting} is set in the environment: put a new one in front of it there, a comma between them, restart "
            "the server, and run routing-admin rotate-keys."
        )


def rotate_stored_keys(actor: Actor) -> int:
    """Re-encrypt all stored keys with the newest encryption key, in one transaction. Return their number.

    Raise `KeyUnreadableError` if a stored key cannot be decrypted with any encryption key.
    """
    with ledger.audit(actor, AuditedAction("keys.rotate")) as act:
        act.details["keys"] = count = secrets.rotate()
    return count


def add_secrets(actor: Actor) -> None:
    """Put a new secret first in each secret file of the data directory. The old secrets remain valid.

    Running servers load the new secrets without a restart. Raise `SecretElsewhereError` before anything is written.
    """
    check_files()
    with ledger.audit(actor, AuditedAction("secrets.add")):
        for name, path in settings.SECRET_FILES.items():
            # The first secret encrypts and signs. All of them decrypt and verify.
            _write_secrets(path, [GENERATORS[name](), *_current_secrets()[name]])
    read_secrets_again()


def check_files() -> None:
    for name, setting in ENVIRONMENT_VARIABLES.items():
        if name not in settings.SECRET_FILES:
            raise SecretElsewhereError(setting)


def list_outdated_agents() -> list[str]:
    """Return the ids of agents with a valid key or link that still needs an older signing secret.

    These keys and links have not been used since the secret was rotated.
    """
    names: set[str] = set()
    for rows in (AgentKey.objects.all(), AgentLink.objects.all()):
        valid = rows.filter(revoked_at=None).exclude(expires_at__lte=timezone.now())
        outdated = valid.filter(~Q(signed_with=secret_name(newest_secret())))
        names.update(outdated.values_list("agent__agent_id", flat=True))
    return sorted(names)


def drop_secrets(actor: Actor) -> None:
    """Remove all but the newest secret from each secret file.

    Raise `SecretElsewhereError` before anything is written.
    """
    check_files()
    with ledger.audit(actor, AuditedAction("secrets.drop")):
        for name, path in settings.SECRET_FILES.items():
            _write_secrets(path, _current_secrets()[name][:1])
    read_secrets_again()


def _current_secrets() -> dict[str, list[str]]:
    return {"secret_key": list(settings.SIGNING_SECRETS), "keys": list(settings.ENCRYPTION_KEYS)}


def _write_secrets(path: Path, secrets_of_file: list[str]) -> None:
    # Write a new file and rename it, so that a crash cannot leave a partial secret. Only its owner can read the file.
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(",".join(secrets_of_file))
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
