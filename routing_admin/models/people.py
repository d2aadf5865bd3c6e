"""Data about users that Django does not store: role, language, session use, tokens, sign-ins and linked accounts."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Person(models.Model):
    """A user's language and role; the row is created when it is first needed."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="person")
    language = models.CharField(max_length=20, blank=True)
    # Distinguishes editors from viewers; administrators have Django's `is_staff`.
    is_editor = models.BooleanField(default=False)

    def __str__(self) -> str:
        return str(self.user)


class SessionSighting(models.Model):
    """The times of a session's first and last use, and the IP address and browser of the last use."""

    # Identifies the session, but cannot be used to sign in.
    digest = models.CharField(max_length=64, unique=True)
    user_agent = models.CharField(max_length=300, blank=True)
    address = models.CharField(max_length=64, blank=True)
    first_seen = models.DateTimeField()
    last_seen = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.digest[:8]}… {self.address}"


class AdminToken(models.Model):
    """A token for an administrator's scripts. Like an agent key it is stored as a digest, but it always expires.

    It has at most its owner's rights, and becomes invalid when the owner loses them.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=60)
    public_id = models.CharField(max_length=16, unique=True)
    digest = models.CharField(max_length=64)
    # Name of the secret that was used to compute `digest`, an HMAC.
    signed_with = models.CharField(max_length=16)
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return f"rat_{self.public_id}…"


class SignInAttempt(models.Model):
    """An attempt to sign in that failed or is still being checked."""

    at = models.DateTimeField(db_index=True)
    # Keyed digest of the user name, because users sometimes type their password as the name, and a password must not be
    # stored.
    name = models.CharField(max_length=64)
    address = models.CharField(max_length=64)

    class Meta:
        indexes = [models.Index(fields=["address", "-at"], name="sign_in_address")]

    def __str__(self) -> str:
        return f"{self.address} {self.at:%Y-%m-%d %H:%M:%S}"


class LinkedIdentity(models.Model):
    """A user's account at an identity provider, used to sign in."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="linked_identities")
    provider = models.CharField(max_length=30)
    # Permanent id of the account at the identity provider.
    subject = models.CharField(max_length=255)
    name = models.CharField(max_length=255, blank=True)
    linked_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["provider", "subject"], name="one_user_per_identity")]

    def __str__(self) -> str:
        return f"{self.provider} {self.name or self.subject}"
