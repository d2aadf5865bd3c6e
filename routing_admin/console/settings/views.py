"""The settings page: a form per subject, and the values in effect from the environment."""

from __future__ import annotations

import platform
import shutil
from typing import TYPE_CHECKING, Any

import django
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from artifacts import sniffer
from artifacts.library import count_used_bytes
from capabilities.access import actor_of
from capabilities.core.delivery.reader import DEFAULT_POLICY
from capabilities.core.exchange import ExchangeRate
from capabilities.errors import ActionError, InvalidError
from capabilities.sentences import translate_refusal, translate_sentence
from routing_admin.configuration import snapshot
from routing_admin.configuration.guards import find_refusal
from routing_admin.configuration.installation import added_languages, directives, keeping_of, read_retention_settings
from routing_admin.console.base.consequences import foresee_deletion
from routing_admin.console.base.content_policies import LABELS
from routing_admin.console.base.page_responses import add_toast
from routing_admin.console.base.session import find_return_url
from routing_admin.console.demo import load as demo
from routing_admin.console.demo.load import describe_removal
from routing_admin.console.settings import actions as actions
from routing_admin.console.settings.forms import (
    ContentPolicyForm,
    DefaultLanguageForm,
    ExchangeRateForm,
    KeepingForm,
    LanguageForm,
    write_keeping,
)
from routing_admin.console.settings.queries import (
    find_database_name,
    find_installation,
    measure_database,
    sizes,
    sum_artifact_sizes,
    values_in_force,
)
from routing_admin.core.planning.language import LANGUAGE_DIRECTIVES
from routing_admin.places import program_version

if TYPE_CHECKING:
    from routing_admin.models import Installation


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    return render(request, "settings/settings.html", context())


@require_POST
def default_language(request: HttpRequest) -> HttpResponse:
    form = DefaultLanguageForm(request.POST, codes=list(directives()))
    if form.is_valid():
        change = actions.set_default_language(actor_of(request), form.cleaned_data["default_language"])
        return answer_saved(request, "languages", _("Default language saved"), change.revision)
    return section(request, "languages", 422, default_form=form)


@require_POST
def content_policy(request: HttpRequest) -> HttpResponse:
    form = ContentPolicyForm(request.POST)
    if form.is_valid():
        change = actions.set_content_policy(actor_of(request), form.cleaned_data["content_policy"])
        return answer_saved(request, "files", _("Content policy saved"), change.revision)
    return section(request, "files", 422, policy_form=form)


@require_POST
def language_save(request: HttpRequest) -> HttpResponse:
    form = LanguageForm(request.POST)
    if form.is_valid():
        code = form.cleaned_data["code"]
        try:
            change = actions.save_language(actor_of(request), code, form.cleaned_data["directive"])
        except InvalidError as refusal:
            for problem in refusal.problems:
                form.add_error(problem.field if problem.field in form.fields else None, problem.message)
        else:
            return answer_saved(request, "languages", _("%(code)s saved") % {"code": code}, change.revision)
    return section(request, "languages", 422, language_form=form)


@require_POST
def language_remove(request: HttpRequest) -> HttpResponse:
    code = request.POST.get("code", "")
    try:
        change = actions.remove_language(actor_of(request), code)
    except ActionError as refusal:
        return section(request, "languages", refusal.status, refusal=translate_refusal(refusal))
    return answer_saved(request, "languages", _("%(code)s deleted") % {"code": code}, change.revision)


@require_POST
def retention(request: HttpRequest) -> HttpResponse:
    """Save retention. Return 409 with both versions if it was changed in the meantime."""
    form = KeepingForm(request.POST)
    if not form.is_valid():
        return section(request, "retention", 422, keeping_form=form)
    current = read_retention_settings()
    # The values from which the form was filled are compared here. The action only detects changes after `current` was
    # read.
    if form.cleaned_data["expected"] not in ("", write_keeping(current)):
        return section(request, "retention", 409, keeping_form=form, theirs=current, expected=write_keeping(current))
    try:
        actions.keep(actor_of(request), form.to_keeping(), expected=current)
    except ActionError as refusal:
        form.add_error(None, translate_refusal(refusal))
        return section(request, "retention", refusal.status, keeping_form=form, theirs=read_retention_settings())
    return answer_saved(request, "retention", _("Retention saved"))


@require_POST
def bodies(request: HttpRequest) -> HttpResponse:
    on = bool(request.POST.get("record_bodies"))
    actions.record_bodies(actor_of(request), on)
    text = _("Request bodies are recorded from now on") if on else _("Request bodies are no longer recorded")
    return answer_saved(request, "bodies", text)


@require_POST
def demo_remove(request: HttpRequest) -> HttpResponse:
    """Remove the demo's configuration as one revision."""
    change = demo.remove(actor_of(request))
    add_toast(request, _("Demo data deleted"), change.revision)
    return redirect(find_return_url(request))


def answer_saved(request: HttpRequest, name: str, message: str, revision: int | None = None) -> HttpResponse:
    """Show the section or the page again with a toast, which offers Undo if a revision was created."""
    add_toast(request, message, revision)
    return section(request, name, 200) if getattr(request, "htmx", None) else redirect("settings")


def section(request: HttpRequest, name: str, status: int, **more: Any) -> HttpResponse:
    template = f"settings/{name}.html" if getattr(request, "htmx", None) else "settings/settings.html"
    return render(request, template, {**context(), **more}, status=status)


def context() -> dict[str, Any]:
    row = find_installation()
    keeping = keeping_of(row)
    languages = language_lines(row.default_language)
    codes = [line["code"] for line in languages]
    # The default language may have no directive of its own, such as `pt-BR` beside `pt`, but must remain selectable.
    if row.default_language and row.default_language not in codes:
        codes.append(row.default_language)
    return {
        "installation": row,
        "sentence": sentence(row),
        "languages": languages,
        "default_form": DefaultLanguageForm(initial={"default_language": row.default_language}, codes=codes),
        "policy_form": ContentPolicyForm(initial={"content_policy": row.content_policy or DEFAULT_POLICY}),
        "policy_label": LABELS[row.content_policy or DEFAULT_POLICY],
        "language_form": LanguageForm(),
        "rates": (table := snapshot.current().exchange).rates,
        "rate_form": ExchangeRateForm(initial={"into": table.into, "day": timezone.localdate().isoformat()}),
        "keeping_form": KeepingForm.from_keeping(keeping),
        "expected": write_keeping(keeping),
        "used_bytes": count_used_bytes() if keeping.quota_bytes else 0,
        "values": values_in_force(),
        "removal": describe_removal() if row.has_demo else None,
        **describe_runtime(),
    }


def sentence(row: Installation) -> str:
    days = ngettext("Requests are kept for %(count)s day", "Requests are kept for %(count)s days", row.request_days)
    bodies = _("with their bodies") if row.record_bodies else _("without their bodies")
    return _("%(requests)s, %(bodies)s.") % {"requests": days % {"count": row.request_days}, "bodies": bodies}


def language_lines(default: str) -> list[dict[str, Any]]:
    added = added_languages()
    lines = []
    for code, directive in {**LANGUAGE_DIRECTIVES, **added}.items():
        remaining = {**LANGUAGE_DIRECTIVES, **{name: text for name, text in added.items() if name != code}}
        lines.append(
            {
                "code": code,
                "directive": directive,
                "built_in": code in LANGUAGE_DIRECTIVES,
                "removable": code in added,
                # For a built-in language, only the changed directive can be removed.
                "stays": find_refusal(actions.check_can_remove_language, code, default, remaining)
                if code in added
                else "",
                "losses": foresee_deletion("language", [code]) if code in added else (),
            }
        )
    return lines


def describe_runtime() -> dict[str, Any]:
    files = settings.DATA_DIR.glob("*.sqlite3*")
    return {
        "version": program_version(),
        "python": platform.python_version(),
        "django": django.get_version(),
        "database": find_database_name(),
        "detector": sniffer.describe_sniffer(),
        "revision": snapshot.current().revision,
        "data_dir": settings.DATA_DIR,
        "database_bytes": measured if (measured := measure_database()) is not None else sizes(files),
        "artifact_bytes": sum_artifact_sizes(),
        "free_bytes": shutil.disk_usage(settings.DATA_DIR).free,
    }


# Exchange rates. Each change is a revision with Undo.


@require_POST
def rate_set(request: HttpRequest) -> HttpResponse:
    form = ExchangeRateForm(request.POST)
    if form.is_valid():
        rate = ExchangeRate(**form.cleaned_data)
        try:
            change = actions.set_rate(actor_of(request), rate)
        except InvalidError as refusal:
            for problem in refusal.problems:
                form.add_error(problem.field, translate_sentence(problem.message))
        else:
            return answer_saved(request, "rates", _("%(rate)s saved") % {"rate": rate}, change.revision)
    return section(request, "rates", 422, rate_form=form)


@require_POST
def rate_remove(request: HttpRequest) -> HttpResponse:
    currency = request.POST.get("currency", "")
    try:
        change = actions.remove_rate(actor_of(request), currency)
    except ActionError as refusal:
        return section(request, "rates", refusal.status, rate_refusal=translate_refusal(refusal))
    return answer_saved(request, "rates", _("%(code)s deleted") % {"code": currency}, change.revision)
