"""Registers the app with Django."""

from django.apps import AppConfig


class CapabilitiesConfig(AppConfig):
    """The app."""

    name = "capabilities"
