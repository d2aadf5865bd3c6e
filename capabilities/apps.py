"""The Django app. It gives the cores their JSON codec."""

import orjson
from django.apps import AppConfig

from capabilities.core.json_codec import give_codec


class CapabilitiesConfig(AppConfig):
    name = "capabilities"

    def ready(self) -> None:
        # The cores import only the standard library, so orjson is handed to them here.
        give_codec(orjson.loads, orjson.dumps)
