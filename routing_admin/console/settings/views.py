"""The settings page: a form, lists whose rows are edited separately, and values set in the environment."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import django
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_http_methods, require_POST

from artifacts import sniffer
from artifacts.library import count_used_bytes
from capabilities.access import can_edit, request_actor
from capabilities.core.exchange import ExchangeRate
from capabilities.errors import ActionError, ConflictError, InvalidError
from capabilities.sentences import translate_refusal, translate_sentence
from routing_admin.configuration import snapshot
from routing_admin.configuration.guards import find_refusal
from routing_admin.configuration.installation import added_languages, directives
from routing_admin.console.base.consequences import find_deletion_consequences
from routing_admin.console.base.page_responses import UNPROCESSABLE, add_refusal, add_toast
from routing_admin.console.base.saving import is_asking_for_changes, list_problems, render_changes
from routing_admin.console.base.session import find_return_url
from routing_admin.console.demo import load as demo
from routing_admin.console.demo.load import describe_removal
from routing_admin.console.settings import actions as actions
from routing_admin.console.settings.forms import NUMBERS, ExchangeRateForm, LanguageForm, SettingsForm
from routing_admin.console.settings.queries import (
    find_database_name,
    find_installation,
    measure_database,
    read_settings,
    stored_settings,
    sum_artifact_sizes,
    sum_file_sizes,
    values_in_force,
)
from routing_admin.core.planning.language import LANGUAGE_DIRECTIVES
from routing_admin.paths import program_version

if TYPE_CHECKING:
    from routing_admin.models import Installation


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """Show the page or save the settings. If the save bar asks for it, list what would be saved."""
    if request.method != "POST":
        return render(request, "settings/settings.html", context(request))
    form = settings_form(request, find_installation(), list(directives()), request.POST)
    if is_asking_for_changes(request):
        return render_changes(request, _describe_saving(form))
    return save(request, form)


def _describe_saving(form: SettingsForm) -> dict[str, Any]:
    return {"changes": form.change_lines, "attention": list_problems(form), "form_id": "settings"}


def save(request: HttpRequest, form: SettingsForm) -> HttpResponse:
    """Save the settings that the user changed. Return 409 with both versions if another user changed them too."""
    status, more = UNPROCESSABLE, dict[str, Any]()
    if form.is_valid():
        try:
            revision = actions.save_settings(request_actor(request), form.changes, expected=form.shown)
        except ActionError as refusal:
            status = add_refusal(form, refusal)
            if isinstance(refusal, ConflictError):
                more = {"refusal": translate_refusal(refusal), "conflict": form.find_differences(read_settings())}
        else:
            add_toast(request, describe_saved(form, revision), revision)
            return redirect("settings")
    return render(request, "settings/settings.html", {**context(request, form), **more}, status=status)


def describe_saved(form: SettingsForm, revision: int | None) -> str:
    if not form.changed_data:
        return _("Nothing was changed")
    if revision and not set(form.changed_data) <= actions.CONFIGURED.keys():
        return _("Settings saved. Undo restores the default language and the files for models only.")
    return _("Settings saved")


@require_POST
def language_save(request: HttpRequest) -> HttpResponse:
    form = LanguageForm(request.POST)
    if form.is_valid():
        code = form.cleaned_data["code"]
        try:
            change = actions.save_language(request_actor(request), code, form.cleaned_data["directive"])
        except InvalidError as refusal:
            for problem in refusal.problems:
                form.add_error(problem.field if problem.field in form.fields else None, problem.message)
        else:
            return answer_saved(request, "languages", _("%(code)s saved") % {"code": code}, change.revision)
    return render_section(request, "languages", 422, language_form=form)


@require_POST
def language_remove(request: HttpRequest) -> HttpResponse:
    code = request.POST.get("code", "")
    try:
        change = actions.remove_language(request_actor(request), code)
    except ActionError as refusal:
        return render_section(request, "languages", refusal.status, refusal=translate_refusal(refusal))
    return answer_saved(request, "languages", _("%(code)s deleted") % {"code": code}, change.revision)


@require_POST
def demo_remove(request: HttpRequest) -> HttpResponse:
    change = demo.remove(request_actor(request))
    add_toast(request, _("Demo data deleted"), change.revision)
    return redirect(find_return_url(request))


def answer_saved(request: HttpRequest, name: str, message: str, revision: int | None = None) -> HttpResponse:
    """Show the section or the whole page again with a toast, which offers Undo if there is a revision."""
    add_toast(request, message, revision)
    return render_section(request, name, 200) if getattr(request, "htmx", None) else redirect("settings")


def render_section(request: HttpRequest, name: str, status: int, **more: Any) -> HttpResponse:
    template = f"settings/{name}.html" if getattr(request, "htmx", None) else "settings/settings.html"
    return render(request, template, {**context(request), **more}, status=status)


def settings_form(
    request: HttpRequest, row: Installation, codes: Sequence[str], data: Mapping[str, Any] | None = None
) -> SettingsForm:
    # The default language must remain selectable even if it has no directive, for example `pt-BR` if only `pt` has one.
    codes = list(dict.fromkeys((*codes, *filter(None, [row.default_language]))))
    form = SettingsForm(data, stored=stored_settings(row), codes=codes, is_read_only=not can_edit(request))
    # If only one section is rendered again, keep the language that was chosen but not saved.
    if data is None and request.POST.get("default_language") in codes:
        form.initial["default_language"] = request.POST["default_language"]
    return form


def context(request: HttpRequest, form: SettingsForm | None = None) -> dict[str, Any]:
    row = find_installation()
    languages = language_lines(row.default_language)
    form = form or settings_form(request, row, [line["code"] for line in languages])
    return {
        "installation": row,
        "sentence": summarize(row),
        "form": form,
        **_describe_saving(form),
        "parts": [part for part in list_parts(form) if part["id"] != "delete" or row.has_demo],
        "languages": languages,
        "language_form": LanguageForm(),
        "rates": (table := snapshot.current().exchange).rates,
        "rate_form": ExchangeRateForm(initial={"into": table.into, "day": timezone.localdate().isoformat()}),
        "used_bytes": count_used_bytes() if row.quota_bytes else 0,
        "values": values_in_force(),
        "removal": describe_removal() if row.has_demo else None,
        **describe_runtime(),
    }


PARTS: tuple[tuple[str, Any, tuple[str, ...]], ...] = (
    ("languages", gettext_lazy("Languages of answers"), ("default_language",)),
    ("files", gettext_lazy("Files for models"), ("content_policy", "content_text", "content_html")),
    ("retention", gettext_lazy("Retention"), NUMBERS),
    ("bodies", gettext_lazy("Recording"), ("record_bodies",)),
    ("rates", gettext_lazy("Exchange rates"), ()),
    ("look", gettext_lazy("Appearance"), ()),
    ("about", gettext_lazy("About this installation"), ()),
    ("environment", gettext_lazy("From the environment"), ()),
    ("delete", gettext_lazy("Delete"), ()),
)
"""Sections of the page: anchor, title, and the form fields in the section."""


def list_parts(form: SettingsForm) -> list[dict[str, Any]]:
    return [
        {"id": anchor, "label": label, "count": len(form.errors.keys() & set(names)) or None}
        for anchor, label, names in PARTS
    ]


def summarize(row: Installation) -> str:
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
                # A built-in language cannot be removed, but its directive can be reset.
                "stays": find_refusal(actions.check_can_remove_language, code, default, remaining)
                if code in added
                else "",
                "losses": find_deletion_consequences("language", [code]) if code in added else (),
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
        "database_bytes": measured if (measured := measure_database()) is not None else sum_file_sizes(files),
        "artifact_bytes": sum_artifact_sizes(),
        "free_bytes": shutil.disk_usage(settings.DATA_DIR).free,
    }


# Each change to an exchange rate is a separate revision, which can be undone.


@require_POST
def rate_set(request: HttpRequest) -> HttpResponse:
    form = ExchangeRateForm(request.POST)
    if form.is_valid():
        rate = ExchangeRate(**form.cleaned_data)
        try:
            change = actions.set_rate(request_actor(request), rate)
        except InvalidError as refusal:
            for problem in refusal.problems:
                form.add_error(problem.field, translate_sentence(problem.message))
        else:
            return answer_saved(request, "rates", _("%(rate)s saved") % {"rate": rate}, change.revision)
    return render_section(request, "rates", 422, rate_form=form)


@require_POST
def rate_remove(request: HttpRequest) -> HttpResponse:
    currency = request.POST.get("currency", "")
    try:
        change = actions.remove_rate(request_actor(request), currency)
    except ActionError as refusal:
        return render_section(request, "rates", refusal.status, rate_refusal=translate_refusal(refusal))
    return answer_saved(request, "rates", _("%(code)s deleted") % {"code": currency}, change.revision)
