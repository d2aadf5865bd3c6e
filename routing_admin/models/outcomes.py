"""Answers kept for idempotency keys and for references; stored in the database of the request log."""

from __future__ import annotations

from django.db import models


class IdempotencyRecord(models.Model):
    """One use of an agent's idempotency key: the call, the process that answers it, and the outcome.

    `digest` covers the agent's key and the caller's idempotency key, `fingerprint` the call; neither can be reversed.
    While `status` is null, the call is being answered by `holder`, which renews `held_until`. `ciphertext` is the
    encrypted outcome; with a status but no ciphertext, the outcome could not be stored.
    """

    digest = models.CharField(primary_key=True, max_length=64)
    fingerprint = models.CharField(max_length=64)
    request_id = models.CharField(max_length=64)
    holder = models.CharField(max_length=32)
    held_until = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)
    status = models.PositiveIntegerField(null=True)
    ciphertext = models.BinaryField(null=True)

    def __str__(self) -> str:
        return f"{self.request_id} {self.status or 'running'}"


class KeptAnswer(models.Model):
    """An encrypted answer of `/v1/responses`, or its input, so that later calls can refer to it.

    `digest` covers the agent and what is kept, `owner` the agent and its kind. `size` is the size of `ciphertext`.
    """

    digest = models.CharField(primary_key=True, max_length=64)
    owner = models.CharField(max_length=64)
    size = models.PositiveIntegerField()
    expires_at = models.DateTimeField(db_index=True)
    ciphertext = models.BinaryField()

    class Meta:
        indexes = [models.Index(fields=["owner", "expires_at", "size"], name="kept_by_owner")]

    def __str__(self) -> str:
        return f"{self.digest} until {self.expires_at:%Y-%m-%d %H:%M:%S}"
