"""The request log: one row per request and one per called candidate, without keys or file contents.

`token_details` contains token counts by kind. `answer` contains what the provider returned in addition to the text.
`cost_nanos` is the cost at the prices valid when the request was made, in billionths of the unit of `currency`, and
`saved_nanos` is the amount saved by the provider's cache; both are null if unknown.

`sentence` says why a request failed, in the format of `capabilities.core.translatable.encode_text`; `error` is the
English text that earlier versions wrote. The content of requests is logged only while the installation records bodies.

`ending` classifies `outcome` (`core.fallback.endings.request_ending`) when the row is written. All counts of answered,
failed, refused and cancelled requests use it.

This module also contains models for rejected calls, which are not logged, and for answers that are stored because of
idempotency keys or so that later calls can refer to them.
"""

from __future__ import annotations

from typing import Any

from django.db import models

from routing_admin.core.fallback.endings import RequestEnding, request_ending


class EndingField(models.CharField):  # type: ignore[type-arg]  # subscripted for the type checker alone
    """Field for a request's ending, which is always derived from the request's outcome."""

    def pre_save(self, model_instance: Any, add: bool) -> str:
        ending = request_ending(model_instance.outcome).value
        setattr(model_instance, self.attname, ending)
        return ending

    def deconstruct(self) -> tuple[str, str, Any, Any]:
        """Pretend to be a plain field, so that migrations do not depend on this class."""
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.CharField", args, kwargs


class RequestLog(models.Model):
    """One request; `chain` lists the results of its attempts, for example `429 503 200`."""

    id = models.CharField(primary_key=True, max_length=64)
    started_at = models.DateTimeField()
    agent = models.CharField(max_length=120, blank=True)
    key = models.CharField(max_length=16, blank=True)
    # Missing labels are null instead of empty, so that they need neither space nor index entries.
    team = models.CharField(max_length=64, null=True)  # noqa: DJ001
    project = models.CharField(max_length=64, null=True)  # noqa: DJ001
    end_user = models.CharField(max_length=200, null=True)  # noqa: DJ001
    surface = models.CharField(max_length=20)
    asked_model = models.CharField(max_length=300, blank=True)
    task_type = models.CharField(max_length=200, blank=True)
    matched = models.BooleanField(default=True)
    language = models.CharField(max_length=35, blank=True)
    stream = models.BooleanField(default=False)
    outcome = models.CharField(max_length=40)
    ending = EndingField(max_length=9, db_default=RequestEnding.ANSWERED.value)
    status = models.PositiveIntegerField(null=True)
    error = models.TextField(blank=True)
    sentence = models.JSONField(null=True)
    provider = models.CharField(max_length=120, blank=True)
    model = models.CharField(max_length=200, blank=True)
    chain = models.JSONField(default=list)
    fell_back = models.BooleanField(default=False)
    duration_ms = models.FloatField(default=0)
    first_content_ms = models.FloatField(null=True)
    prompt_tokens = models.PositiveIntegerField(null=True)
    completion_tokens = models.PositiveIntegerField(null=True)
    token_details = models.JSONField(null=True)
    answer = models.JSONField(null=True)
    adaptation = models.CharField(max_length=200, blank=True)
    revision = models.BigIntegerField(null=True)
    conversation = models.BigIntegerField(null=True)
    prefix = models.JSONField(null=True)
    body = models.JSONField(null=True)
    cost_nanos = models.BigIntegerField(null=True)
    saved_nanos = models.BigIntegerField(null=True)
    currency = models.CharField(max_length=3, blank=True)

    class Meta:
        ordering = ["-started_at", "-id"]
        indexes = [
            # Every index slows down the logging of each request, so no index is a prefix of another.
            models.Index(fields=["-started_at", "-id"], name="request_newest"),
            models.Index(fields=["task_type", "-started_at", "ending", "fell_back"], name="request_task"),
            models.Index(fields=["provider", "-started_at"], name="request_provider"),
            models.Index(fields=["agent", "-started_at"], name="request_agent"),
            models.Index(fields=["surface", "-started_at"], name="request_surface"),
            models.Index(
                fields=["-started_at", "-id", "status", "outcome", "ending"],
                condition=~models.Q(outcome="ok"),
                name="request_failed",
            ),
            models.Index(fields=["-started_at", "-id"], condition=models.Q(fell_back=True), name="request_fell_back"),
            models.Index(
                fields=["-started_at", "-id", "adaptation"],
                condition=~models.Q(adaptation=""),
                name="request_files",
            ),
            models.Index(
                fields=["conversation"], condition=models.Q(conversation__isnull=False), name="request_conversation"
            ),
            models.Index(fields=["started_at", "first_content_ms"], name="request_hours"),
            *(
                models.Index(
                    fields=[name, "-started_at"],
                    condition=models.Q(**{f"{name}__isnull": False}),
                    name=f"request_{name}",
                )
                for name in ("team", "project", "end_user")
            ),
        ]

    def __str__(self) -> str:
        return self.id


class AttemptLog(models.Model):
    """A candidate that a request called: what was sent to it, what it returned, and its usage.

    Tokens and costs cover all calls to the candidate, whether or not they were answered; they are null if unknown.
    """

    request = models.ForeignKey(RequestLog, models.CASCADE, related_name="attempts", db_index=False)
    position = models.PositiveIntegerField()
    provider = models.CharField(max_length=120)
    model = models.CharField(max_length=200, blank=True)
    service = models.CharField(max_length=200, blank=True)
    outcome = models.CharField(max_length=40)
    status = models.PositiveIntegerField(null=True)
    error = models.TextField(blank=True)
    sentence = models.JSONField(null=True)
    retry_attempts = models.PositiveIntegerField(default=0)
    started_ms = models.FloatField(default=0)
    duration_ms = models.FloatField(default=0)
    first_content_ms = models.FloatField(null=True)
    tries = models.JSONField(default=list)
    deliveries = models.JSONField(default=list)
    dropped_params = models.JSONField(default=list)
    prompt_tokens = models.PositiveIntegerField(null=True)
    completion_tokens = models.PositiveIntegerField(null=True)
    cost_nanos = models.BigIntegerField(null=True)
    currency = models.CharField(max_length=3, blank=True)
    at = models.DateTimeField(db_index=True)

    class Meta:
        ordering = ["request", "position"]
        indexes = [
            models.Index(fields=["provider", "-at"], name="attempt_provider"),
            models.Index(fields=["model", "provider"], name="attempt_model"),
        ]
        constraints = [models.UniqueConstraint(fields=["request", "position"], name="one_attempt_per_position")]

    def __str__(self) -> str:
        return f"{self.request_id} {self.position}"

    @property
    def is_counted(self) -> bool:
        """Return whether the candidate's provider reported usage."""
        return self.prompt_tokens is not None or self.completion_tokens is not None


class RejectedCall(models.Model):
    """A rejected call: time, reason, path, and what kind of key it sent. Neither secrets nor query strings are stored.

    Only the newest few calls are kept, and only for some minutes.
    """

    at = models.DateTimeField(db_index=True)
    code = models.CharField(max_length=40)
    path = models.CharField(max_length=200)
    # Public part of an agent key, empty for any other key.
    key = models.CharField(max_length=8, blank=True)
    # Apparent kind of the key (`KeyShape`).
    shape = models.CharField(max_length=10)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.code} {self.path}"


class IdempotencyRecord(models.Model):
    """A use of an idempotency key by an agent: the call, the process that answers it, and the outcome.

    `digest` covers the agent's key and the caller's idempotency key, `fingerprint` the call; neither can be reversed.
    While `status` is null, `holder` is answering the call and renews `held_until`. `ciphertext` is the encrypted
    outcome; if there is a status but no ciphertext, the outcome could not be stored.
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
    """An encrypted answer or input of `/v1/responses`, stored so that later calls can refer to it.

    `digest` covers the agent and the key under which the content is stored, `owner` the agent and the kind of content.
    `size` is the size of `ciphertext`.
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
