"""The list of artifacts, with upload, deletion and restoring."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any
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
from artifacts.core.errors import ArtifactError, StorageFullError, StoreAwayError, TooLargeError
from artifacts.library.queries import count_artifacts, find_deletion, list_artifacts, list_deleted_at
from artifacts.storage.thumbnails import can_have_thumbnail
from artifacts.storage.uploads import received_files
from capabilities.access import actor_of
from capabilities.errors import ActionError, InvalidError
from capabilities.json_bodies import upload_limit
from capabilities.labels import KINDS
from capabilities.sentences import translate_refusal
from routing_admin.console.artifacts.words import refusal_sentence

if TYPE_CHECKING:
    from artifacts.models import Artifact

# HTTP status by exception class. Any other is 400.
STATUS = {TooLargeError: 413, StorageFullError: 507, StoreAwayError: 503}


@require_GET
def artifacts(request: HttpRequest) -> HttpResponse:
    totals = count_artifacts()
    context = {**_page(request), "count": totals.count, "bytes": totals.bytes, "kinds": _kinds(request)}
    return render(request, "artifacts/artifacts.html", context)


def _page(request: HttpRequest) -> dict[str, Any]:
    query = {name: request.GET.get(name, "") for name in ("q", "kind", "cursor")}
    problem = ""
    try:
        page = list_artifacts(cursor=query["cursor"], q=query["q"], kind=query["kind"])
    except InvalidError:
        problem = _("That kind or page does not exist. Showing the newest instead.")
        page, query = list_artifacts(), dict.fromkeys(query, "")
    older = _address(query, cursor=page.next_cursor) if page.next_cursor else ""
    return {
        "rows": [{"row": row, "picture": can_have_thumbnail(row), "kind": KINDS[row.kind]} for row in page.rows],
        "problem": problem,
        "q": query["q"],
        "kind": query["kind"],
        "is_filtered": bool(query["q"] or query["kind"]),
        "older": older,
        "newest": _address(query, cursor="") if query["cursor"] else "",
        "all_address": _address(query, selected="all"),
        "all_selected": request.GET.get("selected") == "all",
        "here": _address(query),
        "max_bytes": upload_limit(),
    }


def _address(parameters: dict[str, str], **changes: str | None) -> str:
    query = {name: value for name, value in {**parameters, **changes}.items() if value}
    return f"?{urlencode(query)}" if query else "?"


def _kinds(request: HttpRequest) -> list[dict[str, Any]]:
    q, current = request.GET.get("q", ""), request.GET.get("kind", "")
    return [
        {"label": label, "kind": kind, "url": _address({"q": q, "kind": kind}), "current": kind == current}
        for kind, label in KINDS.items()
    ]


@require_POST
def artifact_upload(request: HttpRequest) -> HttpResponse:
    """Store the uploaded files.

    A script gets JSON: 201 with `url`, or 4xx with `message`. A browser is redirected.
    """
    try:
        stored = [
            actions.store_upload(actor_of(request), file, uploaded_by=request.user.get_username())
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
    deleted = actions.delete_artifacts(actor_of(request), request.POST.getlist("id"))
    if not deleted:
        messages.info(request, _("Nothing was selected, or it has already been deleted."))
        return redirect(_back(request))
    # All of them have the same time of deletion, by which one Undo restores them together.
    moment = find_deletion(deleted[0])
    text = ngettext("%(count)s artifact deleted", "%(count)s artifacts deleted", len(deleted)) % {"count": len(deleted)}
    undo = f"{reverse('artifacts_restore')}?{urlencode({'at': moment.isoformat() if moment else ''})}"
    messages.success(request, text, extra_tags=f"undo-url:{undo}")
    return redirect(_back(request))


@require_POST
def artifacts_restore(request: HttpRequest) -> HttpResponse:
    """Restore the artifacts that one request deleted, which all have the same time of deletion."""
    try:
        deleted = list_deleted_at(datetime.fromisoformat(request.GET.get("at", "")))
    except ValueError:
        deleted = []
    restored = actions.restore_artifacts(actor_of(request), deleted)
    if restored:
        text = ngettext("%(count)s artifact is back", "%(count)s artifacts are back", len(restored)) % {
            "count": len(restored)
        }
        messages.success(request, text)
    else:
        messages.error(request, _("They are already back, or have been permanently deleted."))
    return redirect(_back(request))


def _back(request: HttpRequest) -> str:
    target = request.POST.get("next", "")
    # `next` comes from the form and cannot be trusted: it must not lead to another site.
    is_local = url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure())
    return target if is_local else reverse("artifacts")
