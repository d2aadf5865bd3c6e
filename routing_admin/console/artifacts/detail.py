"""The page of an artifact: its type, how the type was detected, and how each model receives the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import NoReverseMatch, reverse
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from artifacts import library as actions
from artifacts.core.detection.encodings import decode_blocks
from artifacts.core.errors import CorruptError, MissingError
from artifacts.library.queries import find_artifact
from artifacts.storage.content import HEADERS, PLAYABLE, byte_store, download
from artifacts.storage.thumbnails import find_thumbnail
from capabilities.access import may, request_actor
from capabilities.actors import AuditedAction
from capabilities.core.permissions import READINGS, PagePart
from capabilities.core.texts.friendly import friendly_type
from capabilities.core.vocabulary import Kind
from capabilities.errors import ActionError, InvalidError
from capabilities.sentences import translate_refusal, translate_sentence
from routing_admin.configuration.revisions import ledger
from routing_admin.console.artifacts import receiving
from routing_admin.console.artifacts.forms import TYPES, CorrectionForm
from routing_admin.console.artifacts.phrases import EVIDENCE, STEPS, UNREADABLE
from routing_admin.console.artifacts.receiving import EndpointFilter
from routing_admin.console.base.page_responses import add_toast, require_found
from routing_admin.dispatch.preview import Previewer

if TYPE_CHECKING:
    from artifacts.models import Artifact

TEXT_BYTES = 32 * 1024
"""Maximum number of bytes of a text file that the page shows."""

SHOWN_AS_IMAGE = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"})
"""Image types that browsers can display directly. For other types, the page shows a thumbnail or an icon."""

MODEL_LANGUAGES = (("zh", "中文"), ("en", "English"))


@require_GET
def artifact(request: HttpRequest, pk: str) -> HttpResponse:
    """Show an artifact's page.

    `?service=` opens the card of a service, and `?q=`, `?routed=1` and `?form=` filter the services. Some services
    receive the pages of documents as images. If these must first be rendered, the services are included only with
    `?draw=1`, which the page requests after it has loaded.
    """
    return artifact_page(request, require_found(find_artifact(pk)))


def artifact_page(
    request: HttpRequest, row: Artifact, form: CorrectionForm | None = None, status: int = 200
) -> HttpResponse:
    may_read, language = may(request.user, PagePart.ARTIFACT_BYTES), preview_language(request)
    if may_read:
        record_reading(request, row)
    asked_for = _filter(request)
    # If a single card is opened, the previews for the other services are not needed.
    if request.GET.get("fragment") == "card":
        return card(request, row, asked_for.opened)
    previewer = Previewer(row, language=language)
    draws = request.GET.get("draw") == "1"
    endpoints = receiving.list_endpoints(previewer, asked_for, may_read, draws=draws)
    context = {
        **_artifact_context(row, may_read),
        **_correction_context(request, row, form),
        "counts": endpoints.counts,
        "groups": endpoints.groups,
        "pair": receiving.pick_pair(endpoints.groups),
        "forms": endpoints.forms,
        "page": endpoints.page,
        "waiting": endpoints.waiting,
        "waiting_shown": endpoints.waiting[: receiving.FEW],
        "services": endpoints.total,
        "all_services": len(previewer.endpoints),
        "filter": asked_for,
        "gone": UNREADABLE.get(previewer.artifact.unreadable or "", ""),
        **language_context(language),
        **_send_urls(row, may_read),
    }
    return render(request, "artifacts/artifact.html", context, status=status)


def record_reading(request: HttpRequest, row: Artifact) -> None:
    """Record in the audit log that the user read the artifact's content."""
    action = AuditedAction(READINGS[PagePart.ARTIFACT_BYTES], "artifact", row.pk, {"filename": row.filename})
    ledger.note_reading(request_actor(request), action)


def _filter(request: HttpRequest) -> EndpointFilter:
    query = request.GET
    q, badge, page, opened = (query.get(name, "").strip() for name in ("q", "form", "page", "service"))
    badges = {badge for _, badge, _, _, _ in receiving.GROUPS}
    return EndpointFilter(
        q=q, routed=query.get("routed") == "1", badge=badge if badge in badges else "", page=page, opened=opened
    )


def card(request: HttpRequest, row: Artifact, service: str, **more: object) -> HttpResponse:
    may_read, language = may(request.user, PagePart.ARTIFACT_BYTES), preview_language(request)
    previewer = Previewer(row, language=language)
    endpoint = require_found(next((endpoint for endpoint in previewer.endpoints if endpoint.name == service), None))
    preview = previewer.preview([endpoint])
    context = {
        "row": row,
        "card": receiving.build_card(preview, preview.deliveries[0], may_read),
        **language_context(language),
        **_send_urls(row, may_read),
        **more,
    }
    return render(request, "artifacts/delivery.html#body", context)


def _artifact_context(row: Artifact, may_read: bool) -> dict[str, Any]:
    return {
        "row": row,
        "type_name": friendly_type(row.mime_type, get_language()),
        "may_read": may_read,
        "picture": _picture_url(row) if may_read else "",
        "plays": may_read and row.mime_type in PLAYABLE and row.size > 0,
        "words": _read_beginning(row) if may_read and row.kind == Kind.TEXT else "",
        "text_limit": TEXT_BYTES,
        "evidence": [
            {
                "step": STEPS.get(entry["step"], entry["step"]),
                "says": entry["says"],
                "because": EVIDENCE.get(entry["reason"], ""),
            }
            for entry in row.evidence
        ],
    }


def _correction_context(request: HttpRequest, row: Artifact, form: CorrectionForm | None) -> dict[str, Any]:
    query, current = request.GET.urlencode(), CorrectionForm(row)
    return {
        "fields": {name: (form if form and name in form.data else current)[name] for name in current.fields},
        "guess_form": CorrectionForm(row, auto_id="guess_%s"),
        "correct_url": reverse("artifact_correct", args=[row.pk]) + (f"?{query}" if query else ""),
        "types": TYPES,
        "is_lossy": any(entry["reason"] == "corrected_lossy" for entry in row.evidence),
    }


def _picture_url(row: Artifact) -> str:
    # Show the file itself only if its bytes match the declared type. Otherwise, show its PNG thumbnail if there is one.
    if row.kind == Kind.IMAGE and row.mime_type in SHOWN_AS_IMAGE and row.detected_mime_type == row.mime_type:
        return reverse("artifact_raw", args=[row.pk])
    return reverse("artifact_thumbnail", args=[row.pk]) if find_thumbnail(row) else ""


def _read_beginning(row: Artifact) -> str:
    try:
        with byte_store().reader(row.sha256) as read_at:
            return "".join(decode_blocks([read_at(0, TEXT_BYTES)], row.encoding))
    except (MissingError, CorruptError):
        return ""


def preview_language(request: HttpRequest) -> str:
    """Return the language of the texts in a preview: the requested one, else the user's."""
    code = request.GET.get("language", "") or request.POST.get("language", "")
    return code if code in dict(MODEL_LANGUAGES) else ("zh" if (get_language() or "").startswith("zh") else "en")


def language_context(language: str) -> dict[str, Any]:
    return {
        "model_language": language,
        "said_lang": "zh-Hans" if language.startswith("zh") else language,
        "model_languages": MODEL_LANGUAGES,
    }


def _send_urls(row: Artifact, may_read: bool) -> dict[str, str]:
    try:
        urls = {f"{verb}_url": reverse(f"artifact_{verb}", args=[row.pk]) for verb in ("send", "describe")}
    except NoReverseMatch:
        return {}
    return urls if may_read else {}


@require_GET
def artifact_raw(request: HttpRequest, pk: str) -> HttpResponseBase:
    """Send the artifact's bytes with headers that stop browsers from executing them.

    The status is 410 if the bytes are missing or damaged.
    """
    row = require_found(find_artifact(pk))
    record_reading(request, row)
    try:
        return download(request, row)
    except (MissingError, CorruptError) as error:
        return render(request, "artifacts/gone.html", {"sentence": UNREADABLE[error.code]}, status=410)


@require_GET
def artifact_thumbnail(request: HttpRequest, pk: str) -> HttpResponse:
    """Return the artifact's thumbnail, or 204 if it has none. Raise `Http404` for an unknown artifact."""
    data = find_thumbnail(require_found(find_artifact(pk)))
    if data is None:
        return HttpResponse(status=204, headers=HEADERS)
    headers = {**HEADERS, "Cache-Control": "private, max-age=86400, immutable"}
    return HttpResponse(data, content_type="image/png", headers=headers)


# Maps field names of an `InvalidError` to form fields.
FORM_FIELDS = {"mimeType": "mime_type", "encoding": "encoding", "visibility": "visibility"}


@require_POST
def artifact_correct(request: HttpRequest, pk: str) -> HttpResponse:
    """Apply the corrections or, with `back`, restore the detected values.

    If there are errors, show the page with them.
    """
    row = require_found(find_artifact(pk))
    form = CorrectionForm(row, request.POST)
    # Validating the form only fills `cleaned_data`; the action validates the values.
    form.is_valid()
    as_detected = actions.CorrectionFields(mime_type=None, encoding=None)
    try:
        corrected = actions.correct_artifact(
            request_actor(request), row, **(as_detected if "back" in request.POST else form.changes())
        )
    except ActionError as refusal:
        add_refusal(form, refusal)
        return artifact_page(request, require_found(find_artifact(pk)), form, refusal.status)
    if corrected is row:
        messages.info(request, _("Nothing was changed."))
    else:
        add_toast(request, _("Corrected. Models receive the file as it is shown now."))
    query = request.GET.urlencode()
    return redirect(reverse("artifact", args=[pk]) + (f"?{query}" if query else ""))


def add_refusal(form: CorrectionForm, refusal: ActionError) -> None:
    if not isinstance(refusal, InvalidError):
        form.add_error(None, translate_refusal(refusal))
        return
    for problem in refusal.problems:
        form.add_error(FORM_FIELDS.get(problem.field), translate_sentence(problem.message))
