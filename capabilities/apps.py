"""Registers the app with Django, and gives the cores their JSON codec."""

import orjson
from django.apps import AppConfig

from capabilities.core.json_codec import give_codec


class CapabilitiesConfig(AppConfig):
    """The app."""

    name = "capabilities"

    def ready(self) -> None:
        """From now on the cores read and write JSON by orjson."""
        give_codec(orjson.loads, orjson.dumps)
