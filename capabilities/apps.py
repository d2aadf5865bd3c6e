"""The Django app `capabilities`. It sets the JSON codec of the `core` packages."""

import orjson
from django.apps import AppConfig

from capabilities.core.json_codec import set_codec


class CapabilitiesConfig(AppConfig):
    name = "capabilities"

    def ready(self) -> None:
        # The `core` packages import only the standard library, so orjson is injected here.
        set_codec(orjson.loads, orjson.dumps)
