"""Stored versions of the model catalogue. Old versions are kept, so that Undo and History can return to them."""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
from functools import lru_cache

from capabilities.core.providers.catalogue import Catalogue, default_catalogue, with_own_tables
from capabilities.core.providers.catalogue.document import CatalogueDocument, from_json, to_json
from capabilities.models import CatalogueEdition

log = logging.getLogger(__name__)


def find_catalogue(name: str | None) -> Catalogue:
    """Return the catalogue version with this name, or the shipped catalogue if the name is empty or unknown."""
    if not name:
        return default_catalogue()
    found = _read(name)
    if found is None:
        log.warning("the catalogue's edition %s is not in this database; the shipped one is used", name)
    return found or default_catalogue()


def find_catalogue_version(pk: int) -> tuple[str, CatalogueDocument] | None:
    row = CatalogueEdition.objects.filter(pk=pk).first()
    return (row.name, unpack(bytes(row.content))) if row else None


def store_catalogue_version(document: CatalogueDocument) -> int:
    """Store a catalogue document under a name derived from its content, unless it is stored already.

    Return the primary key of the row.
    """
    text = to_json(document)
    label = ", ".join(note.label for note in document.sources)[:200]
    name = f"{label} · {hashlib.sha256(text.encode()).hexdigest()[:8]}"
    values = {"content": gzip.compress(text.encode(), 9, mtime=0)}
    return CatalogueEdition.objects.get_or_create(name=name, defaults=values)[0].pk


def unpack(content: bytes) -> CatalogueDocument:
    return from_json(json.loads(gzip.decompress(content)))


def _read(name: str) -> Catalogue | None:
    row = CatalogueEdition.objects.filter(name=name).first()
    return _build(name, bytes(row.content)) if row else None


@lru_cache(maxsize=2)
def _build(_name: str, content: bytes) -> Catalogue:
    return with_own_tables(unpack(content))
