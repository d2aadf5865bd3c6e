"""The list of artifacts, with actions that upload, delete and restore them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from artifacts import library as actions
from artifacts.core.errors import ArtifactError, StorageFullError, StoreUnavailableError, TooLargeError
from artifacts.library.queries import (
    SORTS,
    count_kinds,
    find_deletion,
    list_deleted_at,
    select_artifacts,
    sort_artifacts,
)
from artifacts.storage.thumbnails import can_have_thumbnail
from artifacts.storage.uploads import received_files
from capabilities.access import request_actor
from capabilities.errors import ActionError
from capabilities.json_bodies import upload_limit
from capabilities.labels import KINDS
from capabilities.sentences import translate_refusal
from routing_admin.console.artifacts.phrases import refusal_sentence
from routing_admin.console.base.lists import Option, Select, StoredColumn, arrange_stored, page_size
from routing_admin.console.base.page_responses import wants_fragment

if TYPE_CHECKING:
    from artifacts.models import Artifact

# HTTP statuses by exception class. Any other error has status 400.
STATUS = {TooLargeError: 413, StorageFullError: 507, StoreUnavailableError: 503}


COLUMNS: Mapping[str, StoredColumn] = {name: StoredColumn(falling=name in ("size", "time")) for name in SORTS}


@require_GET
def artifacts(request: HttpRequest) -> HttpResponse:
    sizes = count_kinds()
    q, kind = read_filters(request.GET)
    options = tuple(Option(name, label, sizes[name].count) for name, label in KINDS.items() if name in sizes)
    listing = arrange_stored(
        lambda sort: sort_artifacts(select_artifacts(q, kind), sort),
        request.GET,
        columns=COLUMNS,
        selects=[Select("kind", _("Kind"), _("All kinds"), options, kind)],
        total=sum(size.count for size in sizes.values()),
        sort="-time",
        per_page=page_size(request),
    )
    context = {
        "listing": listing,
        "rows": [{"row": row, "picture": can_have_thumbnail(row), "kind": KINDS[row.kind]} for row in listing.page],
        "bytes": sum(size.bytes for size in sizes.values()),
        "max_bytes": upload_limit(),
    }
    # An upload replaces the element `stored`, which contains the number of files, so the response must be the whole
    # page.
    is_part = wants_fragment(request) and request.headers.get("HX-Target") != "stored"
    return render(request, "artifacts/artifacts.html#rows" if is_part else "artifacts/artifacts.html", context)


def read_filters(query: Mapping[str, str]) -> tuple[str, str]:
    """Return the search text and the kind of file from a query string or form.

    An unknown kind is replaced with an empty string.
    """
    kind = query.get("kind", "")
    return query.get("q", "").strip(), kind if kind in KINDS else ""


@require_POST
def artifact_upload(request: HttpRequest) -> HttpResponse:
    """Store the uploaded files.

    A script gets JSON: 201 with `url`, or 4xx with `message`. A browser is redirected.
    """
    try:
        stored = [
            actions.store_upload(request_actor(request), file, uploaded_by=request.user.get_username())
            for file in received_files(request)
        ]
    except (ArtifactError, ActionError) as refusal:
        return _answer_refusal(request, refusal)
    if not stored:
        return _answer(request, 422, {"message": _("No file selected. Choose one.")})
    return _answer(request, 201, {"url": reverse("artifact", args=[stored[0].pk])}, stored)


def _answer_refusal(request: HttpRequest, refusal: ArtifactError | ActionError) -> HttpResponse:
    if isinstance(refusal, ActionError):
        return _answer(request, refusal.status, {"message": translate_refusal(refusal)})
    return _answer(request, STATUS.get(type(refusal), 400), {"message": refusal_sentence(refusal)})


def _answer(
    request: HttpRequest, status: int, body: dict[str, str], stored: list[Artifact] | None = None
) -> HttpResponse:
    if request.headers.get("Accept", "").startswith("application/json"):
        return JsonResponse(body, status=status)
    if not stored:
        messages.error(request, body["message"])
        return redirect("artifacts")
    text = ngettext("%(count)s file stored", "%(count)s files stored", len(stored)) % {"count": len(stored)}
    messages.success(request, text)
    return redirect(body["url"] if len(stored) == 1 else reverse("artifacts"))


@require_POST
def artifacts_delete(request: HttpRequest) -> HttpResponse:
    """Delete the named artifacts or, with `all`, every artifact that matches the posted search and kind."""
    if "all" in request.POST:
        deleted = actions.delete_matching(request_actor(request), *read_filters(request.POST))
    else:
        deleted = actions.delete_artifacts(request_actor(request), request.POST.getlist("id"))
    if not deleted:
        messages.info(request, _("Nothing was selected, or it has already been deleted."))
        return redirect(_return_url(request))
    # All artifacts get the same deletion time, so that a single Undo restores them together.
    moment = find_deletion(deleted[0])
    text = ngettext("%(count)s artifact deleted", "%(count)s artifacts deleted", len(deleted)) % {"count": len(deleted)}
    undo = f"{reverse('artifacts_restore')}?{urlencode({'at': moment.isoformat() if moment else ''})}"
    messages.success(request, text, extra_tags=f"undo-url:{undo}")
    return redirect(_return_url(request))


@require_POST
def artifacts_restore(request: HttpRequest) -> HttpResponse:
    """Restore the artifacts that one request deleted, which all have the same deletion time."""
    try:
        deleted = list_deleted_at(datetime.fromisoformat(request.GET.get("at", "")))
    except ValueError:
        deleted = []
    restored = actions.restore_artifacts(request_actor(request), deleted)
    if restored:
        text = ngettext("%(count)s artifact is back", "%(count)s artifacts are back", len(restored)) % {
            "count": len(restored)
        }
        messages.success(request, text)
    else:
        messages.error(request, _("They are already back, or have been permanently deleted."))
    return redirect(_return_url(request))


def _return_url(request: HttpRequest) -> str:
    target = request.POST.get("next", "")
    # The posted `next` cannot be trusted: it must not redirect to another site.
    is_local = url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure())
    return target if is_local else reverse("artifacts")
