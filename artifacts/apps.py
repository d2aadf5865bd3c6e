"""Registers the app with Django."""

from django.apps import AppConfig


class ArtifactsConfig(AppConfig):
    """The app."""

    name = "artifacts"
