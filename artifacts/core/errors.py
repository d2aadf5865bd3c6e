"""Errors about stored bytes. Each message tells the caller what to do next (ABR-8.1, MCR-E4)."""

from __future__ import annotations

from capabilities.core.message import UnreadableError
from capabilities.core.translatable import translatable


class ArtifactError(Exception):
    """An operation on an artifact's bytes failed. `code` is the error code in API responses."""

    code = "artifact_error"


class TooLargeError(ArtifactError):
    """The upload is larger than `limit` bytes. Nothing was stored."""

    code = "too_large"

    def __init__(self, limit: int) -> None:
        super().__init__(f"The file is larger than the limit of {limit} bytes. Send a smaller one or raise the limit.")
        self.limit = limit


class StorageFullError(ArtifactError):
    """The disk or the quota is full. Nothing was stored.

    `quota` and `used` are in bytes, and are set only if a quota is full. `agent` is the agent whose quota is full, or
    empty if it is the installation's quota.
    """

    code = "storage_full"

    def __init__(self, quota: int | None = None, used: int = 0, agent: str = "") -> None:
        full = "The artifact store is full. Delete artifacts or give it more space, then send the file again."
        by_quota = (
            f"The artifact store is full: {used} bytes of the quota of {quota} are used, and the file does not fit. "
            "Raise the quota in Settings, or delete artifacts (their space is freed once prune has run). "
            "Then send the file again."
        )
        by_own_quota = (
            f"The agent {agent} has used {used} of the {quota} bytes each agent may store, and the file does not fit. "
            "Delete some of its artifacts (their space is freed once prune has run), or have an administrator raise "
            "the quota per agent in Settings. Then send the file again."
        )
        super().__init__(full if quota is None else by_own_quota if agent else by_quota)
        self.quota, self.used, self.agent = quota, used, agent


class MissingError(ArtifactError, UnreadableError):
    """No bytes are stored for the artifact's hash."""

    code = "artifact_missing"

    def __init__(self, sha256: str) -> None:
        Exception.__init__(self, f"The bytes with SHA-256 {sha256[:12]}… are not in the store. Upload the file again.")
        self.sha256 = sha256
        self.reason = self.code


class CorruptError(ArtifactError, UnreadableError):
    """The stored bytes no longer match their hash, so they are not returned."""

    code = "artifact_corrupt"

    def __init__(self, sha256: str) -> None:
        Exception.__init__(
            self,
            f"The bytes kept under SHA-256 {sha256[:12]}… no longer have that hash. Upload the file again; it heals.",
        )
        self.sha256 = sha256
        self.reason = self.code


class StoreUnavailableError(ArtifactError):
    """The artifact store is unavailable. A retry is safe, because no operation is half done.

    The message may be shown to any caller. `details` states the cause and the remedy for operators.
    """

    code = "unavailable"

    def __init__(self, details: str, sentence: str = "") -> None:
        super().__init__(sentence or STORE_UNAVAILABLE)
        self.details = details


STORE_UNAVAILABLE = translatable("The artifact store is not responding. Try again in a few seconds.")
STORE_SLOW = translatable("The artifact store is responding too slowly. Try again in a few seconds.")
