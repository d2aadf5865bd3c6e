"""The catalogue of models: what they read, their limits, retirement dates and sources. It needs no network."""

from capabilities.core.providers.catalogue.answers import (
    Catalogue,
    default_catalogue,
    list_host,
    lookup,
    retirement,
    with_own_tables,
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
    "list_host",
    "lookup",
    "maker_of",
    "names_of",
    "provider_of",
    "retirement",
    "with_own_tables",
]
