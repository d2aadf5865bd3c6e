"""Django application configuration."""

from django.apps import AppConfig


class ArtifactsConfig(AppConfig):
    name = "artifacts"
