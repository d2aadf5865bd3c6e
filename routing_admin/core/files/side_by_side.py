"""Two configurations as the files they would be exported to, line beside line."""

from __future__ import annotations

from capabilities.core.side_by_side import SideBySideRow, lines_beside
from routing_admin.core.configuration.specs import Configuration
from routing_admin.core.documents.json_path import write_document
from routing_admin.core.files.exporting import routing_value, services_value


def side_by_side(old: Configuration, new: Configuration, *, context: int = 3) -> tuple[SideBySideRow, ...]:
    """Both files of both configurations, one after the other, in rows; unchanged stretches are cut to `context`."""
    return (
        *lines_beside(write_document(routing_value(old)), write_document(routing_value(new)), context=context),
        *lines_beside(write_document(services_value(old)), write_document(services_value(new)), context=context),
    )
