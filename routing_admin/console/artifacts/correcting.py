"""Correcting what a file is, on its page: the form, and the way back to what was detected."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from artifacts import library as actions
from artifacts.library.queries import find_artifact
from capabilities.access import actor_of
from capabilities.errors import ActionError, InvalidError
from capabilities.sentences import translate_refusal, translate_sentence
from routing_admin.console.artifacts.detail import artifact_page
from routing_admin.console.artifacts.forms import CorrectionForm
from routing_admin.console.base.answers import add_toast, require_found

PLACES = {"mimeType": "mime_type", "encoding": "encoding", "visibility": "visibility"}


@require_POST
def artifact_correct(request: HttpRequest, pk: str) -> HttpResponse:
    """Corrects what the form says, or with `back` nothing any more; a refusal is the page with its reasons, 4xx."""
    row = require_found(find_artifact(pk))
    form = CorrectionForm(row, request.POST)
    form.is_valid()
    back = actions.CorrectionFields(mime_type=None, encoding=None)
    try:
        corrected = actions.correct_artifact(
            actor_of(request), row, **(back if "back" in request.POST else form.changes())
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
    """Writes each reason to its field, or above the form."""
    if not isinstance(refusal, InvalidError):
        form.add_error(None, translate_refusal(refusal))
        return
    for problem in refusal.problems:
        form.add_error(PLACES.get(problem.field), translate_sentence(problem.message))
