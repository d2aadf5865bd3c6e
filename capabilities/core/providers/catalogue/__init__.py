"""The model catalogue: capabilities, limits, retirement dates and their sources. It needs no network."""

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
from capabilities.core.providers.catalogue.names import find_host, find_maker, list_lookup_names

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
    "find_host",
    "find_maker",
    "list_host",
    "list_lookup_names",
    "lookup",
    "retirement",
    "with_own_tables",
]
