"""The URL of a document's page: `docs/runbook/disk-full.md` is at `/docs/runbook/disk-full/`."""

from __future__ import annotations

from django.urls import reverse

FOLDER, SUFFIX, INDEX = "docs/", ".md", "README"


def document_name(path: str) -> str:
    """Return a document's name in URLs, given its path in the repository. An index is named after its folder."""
    name = path.removeprefix(FOLDER).removesuffix(SUFFIX)
    return "" if name == INDEX else name.removesuffix(f"/{INDEX}")


def document_url(path: str) -> str:
    """Return the URL of a document's page from its path in the repository. An anchor can be appended to the URL."""
    file, hash_sign, anchor = path.partition("#")
    name = document_name(file)
    return (reverse("document", args=[name]) if name else reverse("documents")) + hash_sign + anchor
