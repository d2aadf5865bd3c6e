"""Registers the app with Django."""

from django.apps import AppConfig


class ArtifactsConfig(AppConfig):
    name = "artifacts"
