"""Database models of artifacts. Their bytes are in the byte store, under their SHA-256."""

from __future__ import annotations

import secrets

from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from capabilities.core.vocabulary import Kind


def new_artifact_id() -> str:
    # 128 random bits cannot be guessed, so anyone who knows the reference of a shared file may read it.
    return secrets.token_hex(16)


class ArtifactQuerySet(models.QuerySet["Artifact"]):
    def living(self) -> ArtifactQuerySet:
        """Return the living artifacts, which are neither deleted nor expired."""
        return self.filter(deleted_at__isnull=True).filter(
            Q(expires_at__isnull=True) | Q(expires_at__gt=timezone.now())
        )

    def open_to(self, agent_id: str) -> ArtifactQuerySet:
        """Return the artifacts, including deleted ones, that an agent may access: shared ones and its own."""
        return self.filter(Q(visibility=Artifact.Visibility.SHARED) | Q(owner=agent_id))

    def readable_by(self, agent_id: str) -> ArtifactQuerySet:
        """Return the living artifacts that an agent may read if it knows their references: shared ones and its own."""
        return self.living().open_to(agent_id)

    def owned_by(self, agent_id: str) -> ArtifactQuerySet:
        """Return the living artifacts that the agent stored, which it may list and delete."""
        return self.living().filter(owner=agent_id)


class Artifact(models.Model):
    """A stored file. `owner` is the id of the agent that stored it, or empty if a user stored it.

    `correction` is null until a user corrects the type or encoding. Then it contains the correction and the detected
    values.
    """

    class Visibility(models.TextChoices):
        SHARED = "shared", _("every agent with the reference")
        PRIVATE = "private", _("only the agent that stored it")

    id = models.CharField(primary_key=True, max_length=64, default=new_artifact_id, editable=False)
    filename = models.CharField(_("filename"), max_length=255, blank=True)
    sha256 = models.CharField(max_length=64, db_index=True)
    size = models.PositiveBigIntegerField()
    kind = models.CharField(max_length=10, choices=[(kind.value, kind.value) for kind in Kind])
    mime_type = models.CharField(max_length=150)
    declared_mime_type = models.CharField(max_length=255, blank=True)
    detected_mime_type = models.CharField(max_length=150, blank=True)
    is_binary = models.BooleanField()
    encoding = models.CharField(max_length=40, blank=True)
    encoding_certain = models.BooleanField(default=True)
    evidence = models.JSONField(default=list)
    mismatch = models.BooleanField(default=False)
    correction = models.JSONField(null=True, blank=True)
    type = models.CharField(max_length=100, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    width = models.PositiveIntegerField(null=True, blank=True)
    height = models.PositiveIntegerField(null=True, blank=True)
    pages = models.PositiveIntegerField(null=True, blank=True)
    seconds = models.FloatField(null=True, blank=True)
    owner = models.CharField(max_length=120, blank=True, db_index=True)
    uploaded_by = models.CharField(max_length=150, blank=True)
    visibility = models.CharField(max_length=7, choices=Visibility.choices, default=Visibility.SHARED)
    created_at = models.DateTimeField(default=timezone.now, db_index=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    objects = ArtifactQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["owner", "-created_at", "-id"], name="artifact_owner_newest"),
            models.Index(Lower("filename"), condition=Q(deleted_at__isnull=True), name="artifact_name"),
        ]
        constraints = [models.CheckConstraint(condition=~Q(sha256=""), name="artifact_has_bytes")]

    def __str__(self) -> str:
        return self.ref

    @property
    def ref(self) -> str:
        return f"artifact:{self.id}"

    @property
    def is_gone(self) -> bool:
        """Return whether the artifact is deleted or expired. The database filter `living` excludes such artifacts."""
        return self.deleted_at is not None or (self.expires_at is not None and self.expires_at <= timezone.now())


class UploadLink(models.Model):
    """A single-use link through which an uploaded file becomes an artifact of `agent`.

    Only the digest of the link's token is stored. `key` is the public part of the agent key that created the link.
    `artifact_id` is the id that the artifact will have.
    """

    digest = models.CharField(primary_key=True, max_length=64)
    agent = models.CharField(max_length=120)
    key = models.CharField(max_length=16)
    filename = models.CharField(max_length=255, blank=True)
    mime_type = models.CharField(max_length=255, blank=True)
    artifact_id = models.CharField(max_length=64)
    expires_at = models.DateTimeField(db_index=True)
    used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"artifact:{self.artifact_id}"
