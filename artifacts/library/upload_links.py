"""Upload links. Through each link, one file can be uploaded within 15 minutes without an API key.

A model cannot send bytes in a tool call, so the program that runs the model uploads them through a link.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.translation import gettext as _

from artifacts.core.errors import TooLargeError
from artifacts.core.filenames import clean_filename
from artifacts.library.storing import check_quota, store_blocks
from artifacts.models import Artifact, UploadLink, new_artifact_id
from artifacts.storage.uploads import TokenState, check_token, hash_token, make_token, token_digests
from capabilities.access import find_principal
from capabilities.actors import Actor
from capabilities.errors import ActionError, NotFoundError
from capabilities.json_bodies import upload_limit

LIFETIME = timedelta(minutes=15)
SCOPE = "artifacts:write"


class LinkExpiredError(ActionError):
    """The upload link is no longer valid. `ref` is the artifact that was stored through it, if any."""

    code = "upload_link_over"
    status = 410

    def __init__(self, sentence: str, ref: str = "") -> None:
        super().__init__(sentence)
        self.ref = ref


@dataclass(frozen=True, slots=True)
class OfferedUpload:
    """A new upload link.

    The `token` is not stored anywhere else. `ref` is the reference that the artifact will have.
    """

    token: str
    ref: str
    expires_at: datetime
    max_bytes: int


def offer_upload(agent: str, key: str, filename: str, mime_type: str = "", size: int | None = None) -> OfferedUpload:
    """Create a link through which a file with this name can be uploaded as an artifact of the agent.

    `key` is the public part of the agent's API key. `size` is in bytes, if known. Raise `TooLargeError` or
    `StorageFullError` if the file cannot be stored.
    """
    limit, now = upload_limit(), timezone.now()
    if size is not None and size > limit:
        raise TooLargeError(limit)
    check_quota(size or 0, "", agent)
    # Expired links are deleted whenever a link is created, so no separate task is needed.
    UploadLink.objects.filter(expires_at__lte=now).delete()
    expires_at = now.replace(microsecond=0) + LIFETIME
    token, artifact = make_token(expires_at), new_artifact_id()
    UploadLink.objects.create(
        digest=hash_token(token),
        agent=agent,
        key=key,
        filename=clean_filename(filename),
        mime_type=mime_type.replace("\0", "")[:255],
        artifact_id=artifact,
        expires_at=expires_at,
    )
    return OfferedUpload(token, f"artifact:{artifact}", expires_at, limit)


def upload_by_link(
    token: str, blocks: Iterable[bytes], declared: str, encoding: str | None, address: str, request_id: str
) -> Artifact:
    """Store a file uploaded through a link.

    `declared` is the MIME type that the uploader declared. It and `encoding` are used if the link specifies no type.
    Raise `NotFoundError` if there is no link with this token. Raise `LinkExpiredError` if the link was used or has
    expired, or if its agent may no longer store files. If storing fails, nothing is stored and the link can be used
    again.
    """
    link = _claim(token)
    try:
        return store_blocks(
            Actor("agent", link.agent, address, request_id),
            blocks,
            max_bytes=upload_limit(),
            artifact_id=link.artifact_id,
            owner=link.agent,
            filename=link.filename,
            declared=link.mime_type or declared,
            encoding=None if link.mime_type else encoding,
        )
    except BaseException:
        UploadLink.objects.filter(pk=link.pk, used_at=link.used_at).update(used_at=None)
        raise


def _claim(token: str) -> UploadLink:
    # The conditional update lets only one of several concurrent uploads succeed.
    state = check_token(token)
    link = UploadLink.objects.filter(pk__in=token_digests(token)).first() if state is TokenState.VALID else None
    if state is TokenState.EXPIRED:
        raise LinkExpiredError(
            _("This upload link has expired. Get a new one with store_artifact or POST /api/v1/uploads.")
        )
    if link is None:
        raise NotFoundError(
            _("There is no such upload link. Get a new one with store_artifact or POST /api/v1/uploads.")
        )
    holder = find_principal(link.key, link.agent)
    if holder is None or not holder.may(SCOPE):
        raise LinkExpiredError(_("The agent key behind this upload link can no longer store files."))
    link.used_at = timezone.now()
    if not UploadLink.objects.filter(pk=link.pk, used_at=None).update(used_at=link.used_at):
        ref = f"artifact:{link.artifact_id}"
        sentence = _("This upload link has already been used for %(ref)s. Each file needs its own link.")
        raise LinkExpiredError(sentence % {"ref": ref}, ref)
    return link
