"""Administrators' API for settings and languages."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router

from routing_admin.api.calls import read_as, takes
from routing_admin.configuration.installation import added_languages, directives
from routing_admin.configuration.revisions import ledger
from routing_admin.console.base.api import (
    TAG,
    answer_at_revision,
    answer_entry,
    read_expectation,
    require,
    script_actor,
)
from routing_admin.console.base.schemas import (
    ChangedOut,
    LanguageIn,
    LanguageOut,
    LanguagesOut,
    LanguageThing,
    SettingsIn,
    SettingsOut,
    SettingsThing,
)
from routing_admin.console.exchange.actions import check_expectation
from routing_admin.console.settings import actions as installation
from routing_admin.console.settings.queries import read_settings
from routing_admin.core.planning.language import LANGUAGE_DIRECTIVES

router = Router(tags=[TAG])
NAMES = {
    "defaultLanguage": "default_language",
    "contentPolicy": "content_policy",
    "contentText": "content_text",
    "contentHtml": "content_html",
    "requestDays": "request_days",
    "artifactDays": "artifact_days",
    "quotaBytes": "quota_bytes",
    "agentQuotaBytes": "agent_quota_bytes",
    "recordBodies": "record_bodies",
}
"""Maps JSON fields to names of settings."""
TEXTS = {"default_language", "content_policy", "content_text", "content_html"}
"""Settings with text values; in JSON, an empty text is null."""


def settings_out() -> SettingsThing:
    stored = read_settings()
    values: dict[str, Any] = {
        field: stored[name] or None if name in TEXTS else stored[name] for field, name in NAMES.items()
    }
    return SettingsThing(**values)


def answer_settings() -> HttpResponse:
    current = settings_out()
    return answer_entry(SettingsOut(settings=current), current.model_dump())


def language_out(code: str) -> LanguageThing | None:
    directive = directives().get(code)
    if directive is None:
        return None
    return LanguageThing(code=code, directive=directive, builtIn=code in LANGUAGE_DIRECTIVES)


@router.get("/settings", response=SettingsOut)
def admin_get_settings(request: HttpRequest) -> HttpResponse:
    """Return the settings that can be changed on the settings page, excluding those from the environment."""
    return answer_settings()


@router.put("/settings", response=SettingsOut, openapi_extra=takes(SettingsIn))
def admin_put_settings(request: HttpRequest) -> HttpResponse:
    """Change the given settings. Each change is audited; changes of language and content policy can be undone."""
    body = read_as(request, SettingsIn)
    with ledger.exclusive():
        write_settings(request, body)
    return answer_settings()


def write_settings(request: HttpRequest, body: SettingsIn) -> None:
    """Write those settings that differ from the stored ones.

    Raise `InvalidError`, or `ConflictError` if the stored settings do not meet the caller's precondition.
    """
    check_expectation(read_expectation(request), settings_out().model_dump())
    posted = {NAMES[field]: value for field, value in body.model_dump(include=body.model_fields_set).items()}
    changes = {name: value or "" if name in TEXTS else value for name, value in posted.items()}
    installation.save_settings(script_actor(request), changes, expected=read_settings())


@router.get("/languages", response=LanguagesOut)
def admin_list_languages(request: HttpRequest) -> HttpResponse:
    """List built-in and added languages."""
    return answer_at_revision(
        LanguagesOut(languages=[language for code in directives() if (language := language_out(code))])
    )


@router.get("/languages/{code}", response=LanguageOut)
def admin_get_language(request: HttpRequest, code: str) -> HttpResponse:
    """Return one language."""
    language: LanguageThing = require(language_out(code), "language", code)
    return answer_entry(LanguageOut(language=language), language.model_dump())


@router.put("/languages/{code}", response={200: ChangedOut, 201: ChangedOut}, openapi_extra=takes(LanguageIn))
def admin_put_language(request: HttpRequest, code: str) -> HttpResponse:
    """Add a language, or change the directive of an existing language."""
    body, changes = read_as(request, LanguageIn), list[str]()
    with ledger.exclusive():
        before = language_out(code)
        check_expectation(read_expectation(request), before.model_dump() if before else None)
        if before is None or before.directive != body.directive.strip():
            installation.save_language(script_actor(request), code, body.directive)
            changes = [f"Language {code} is saved."]
    language: LanguageThing = require(language_out(code), "language", code)
    result = ChangedOut(created=before is None, changes=changes, warnings=[])
    return answer_entry(result, language.model_dump(), 200 if before else 201)


@router.delete("/languages/{code}", response={204: None})
def admin_delete_language(request: HttpRequest, code: str) -> HttpResponse:
    """Remove an added language; a built-in language is reset to its original directive.

    Removing a missing language is not an error.
    """
    with ledger.exclusive():
        language = language_out(code)
        check_expectation(read_expectation(request), language.model_dump() if language else None)
        if code in added_languages():
            installation.remove_language(script_actor(request), code)
    return HttpResponse(status=204)
