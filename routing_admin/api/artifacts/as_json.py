"""An artifact as the agents' API shows it (CONTRACT §4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from artifacts.models import Artifact


def artifact_json(row: Artifact) -> dict[str, Any]:
    """What is known of an artifact, as the API shows it; the encoding of text only, measures where known.

    `corrected` are the words that outrank what was detected, where somebody said any.
    """
    words = row.correction or {}
    corrected = {"mimeType": words.get("mime_type"), "encoding": words.get("encoding")}
    measured = {name: getattr(row, name) for name in ("width", "height", "pages", "seconds")}
    return {
        "id": row.id,
        "ref": row.ref,
        "filename": row.filename,
        "mimeType": row.mime_type,
        "declaredMimeType": row.declared_mime_type or None,
        "detectedMimeType": row.detected_mime_type or None,
        "size": row.size,
        "sha256": row.sha256,
        "kind": row.kind,
        "isBinary": row.is_binary,
        **({} if row.is_binary else {"encoding": row.encoding or None, "encodingCertain": row.encoding_certain}),
        "createdAt": row.created_at.isoformat(),
        "expiresAt": row.expires_at.isoformat() if row.expires_at else None,
        "type": row.type or None,
        "metadata": row.metadata,
        "visibility": row.visibility,
        "owner": row.owner or None,
        "mismatch": row.mismatch,
        "evidence": row.evidence,
        **({"corrected": {name: word for name, word in corrected.items() if word}} if row.correction else {}),
        **{name: value for name, value in measured.items() if value is not None},
    }
