"""File descriptions that models wrote for models that cannot read the files; stored in the request log's database."""

from __future__ import annotations

from django.db import models


class FileDescription(models.Model):
    """Result of describing a file: a description for all conversations, or a failure within one conversation.

    `digest` covers the file's content, the describer, the prompt, the language and the question. `fault` says why a
    conversation has no description. `describer` is the model that answered, `content` the hash of the file's bytes.
    """

    digest = models.CharField(max_length=64)
    # Conversation of a failure; empty for a description, which all conversations share.
    conversation = models.CharField(max_length=64, blank=True)
    content = models.CharField(max_length=64, db_index=True)
    describer = models.CharField(max_length=330)
    words = models.TextField(blank=True)
    fault = models.CharField(max_length=40, blank=True)
    prompt_tokens = models.PositiveIntegerField(null=True)
    completion_tokens = models.PositiveIntegerField(null=True)
    created_at = models.DateTimeField()
    used_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["digest", "conversation"], name="one_description")]

    def __str__(self) -> str:
        return f"{self.digest} {self.fault or 'words'}"
