"""Store, correct, delete and restore artifacts, for pages, APIs and commands."""

from artifacts.library.correcting import CorrectionFields, correct_artifact
from artifacts.library.storing import (
    MAX_LIFETIME,
    MAX_METADATA,
    ArtifactMetadata,
    MetadataFields,
    check_metadata,
    check_quota,
    count_used_bytes,
    delete_artifacts,
    delete_matching,
    restore_artifacts,
    store_attachment,
    store_blocks,
    store_bytes,
    store_text,
    store_upload,
)
from artifacts.library.upload_links import LinkExpiredError, OfferedUpload, offer_upload, upload_by_link

__all__ = [
    "MAX_LIFETIME",
    "MAX_METADATA",
    "ArtifactMetadata",
    "CorrectionFields",
    "LinkExpiredError",
    "MetadataFields",
    "OfferedUpload",
    "check_metadata",
    "check_quota",
    "correct_artifact",
    "count_used_bytes",
    "delete_artifacts",
    "delete_matching",
    "offer_upload",
    "restore_artifacts",
    "store_attachment",
    "store_blocks",
    "store_bytes",
    "store_text",
    "store_upload",
    "upload_by_link",
]
