"""What is kept of answers: for calls with an idempotency key, and for references; in the request log's database."""

from __future__ import annotations

from django.db import models


class IdempotencyRecord(models.Model):
    """One use of an agent's idempotency key: which call it was, who is at it, and what came of it.

    `digest` stands for the agent's key and the caller's word, `fingerprint` for the call; neither can be read back.
    Until `status` is there the call is being answered by `holder`, which says so anew before `held_until`.
    `ciphertext` is the encrypted outcome; none beside a status is an outcome that could not be stored.
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
    """The items of an answer of `/v1/responses`, or its input, encrypted, so that a later call may refer to them.

    `digest` stands for the agent and what it is, `owner` for the agent and its kind; `size` is that of `ciphertext`.
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
