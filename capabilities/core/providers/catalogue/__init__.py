"""What do models read, how much, until when, and who says so? Offline, from two sources and the vendors' SDKs."""

from capabilities.core.providers.catalogue.answers import (
    Catalogue,
    default_catalogue,
    entry_at,
    lookup,
    retirement,
    retirement_at,
)
from capabilities.core.providers.catalogue.judgement import (
    CELLS,
    TEXT,
    CatalogueEntry,
    Fact,
    FactVerdict,
    Retirement,
    StatedLimit,
)
from capabilities.core.providers.catalogue.names import maker_of, names_of, provider_of

__all__ = [
    "CELLS",
    "TEXT",
    "Catalogue",
    "CatalogueEntry",
    "Fact",
    "FactVerdict",
    "Retirement",
    "StatedLimit",
    "default_catalogue",
    "entry_at",
    "lookup",
    "maker_of",
    "names_of",
    "provider_of",
    "retirement",
    "retirement_at",
]
