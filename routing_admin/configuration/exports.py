"""Export the current configuration for commands, the API, pages and `ROUTING_ADMIN_PUBLISH_DIR`."""

from __future__ import annotations

from django.conf import settings

from routing_admin.configuration import snapshot
from routing_admin.core.configuration.specs import Configuration
from routing_admin.core.files import exporting
from routing_admin.core.files.exporting import Export, Mode
from routing_admin.core.files.importing import FileFormat

FILES = tuple(FileFormat)


def export(name: FileFormat, mode: Mode = Mode.FULL, configuration: Configuration | None = None) -> Export:
    value = configuration if configuration is not None else snapshot.current().configuration
    return exporting.export(value, name, mode, public_url=settings.PUBLIC_URL)
