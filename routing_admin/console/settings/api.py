"""The administrators' API for settings and languages."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from ninja import Router

from routing_admin.api.calls import read_as, takes
from routing_admin.configuration.installation import Keeping, added_languages, directives, keeping_of
from routing_admin.configuration.revisions import ledger
from routing_admin.console.base.api import (
    TAG,
    answer_at_revision,
    answer_entry,
    expectation_in,
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
from routing_admin.console.settings.queries import find_installation
from routing_admin.core.planning.language import LANGUAGE_DIRECTIVES

router = Router(tags=[TAG])
KEEPING = {
    "requestDays": "request_days",
    "artifactDays": "artifact_days",
    "quotaBytes": "quota_bytes",
    "agentQuotaBytes": "agent_quota_bytes",
}
"""JSON field → field of `Keeping`."""


def settings_out() -> SettingsThing:
    row = find_installation()
    keeping = keeping_of(row)
    return SettingsThing(
        defaultLanguage=row.default_language or None,
        contentPolicy=row.content_policy or None,
        **{name: getattr(keeping, field) for name, field in KEEPING.items()},
        recordBodies=row.record_bodies,
    )


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
    """Get the settings of the settings page, without those of the environment."""
    return answer_settings()


@router.put("/settings", response=SettingsOut, openapi_extra=takes(SettingsIn))
def admin_put_settings(request: HttpRequest) -> HttpResponse:
    """Change the named settings. Each change is audited; changes of language and content policy can be undone."""
    body = read_as(request, SettingsIn)
    with ledger.exclusive():
        write_settings(request, body)
    return answer_settings()


def write_settings(request: HttpRequest, body: SettingsIn) -> None:
    """Write the settings that differ. Raise `ConflictError` if they are not as expected, or `InvalidError`."""
    before, actor = settings_out().model_dump(), script_actor(request)
    check_expectation(expectation_in(request), before)
    merged = {**before, **body.model_dump(include=body.model_fields_set)}
    changed = {name for name in merged if merged[name] != before[name]}
    language, policy = merged["defaultLanguage"] or "", merged["contentPolicy"] or ""
    # Everything is checked before anything is written, because each setting is written by an action of its own.
    installation.check_default_language(language)
    installation.check_content_policy(policy)
    if "defaultLanguage" in changed:
        installation.set_default_language(actor, language)
    if "contentPolicy" in changed:
        installation.set_content_policy(actor, policy)
    if changed & KEEPING.keys():
        current, updated = ({field: values[name] for name, field in KEEPING.items()} for values in (before, merged))
        installation.keep(actor, Keeping(**updated), expected=Keeping(**current))
    if "recordBodies" in changed:
        installation.record_bodies(actor, merged["recordBodies"])


@router.get("/languages", response=LanguagesOut)
def admin_list_languages(request: HttpRequest) -> HttpResponse:
    """List built-in and added languages."""
    return answer_at_revision(
        LanguagesOut(languages=[language for code in directives() if (language := language_out(code))])
    )


@router.get("/languages/{code}", response=LanguageOut)
def admin_get_language(request: HttpRequest, code: str) -> HttpResponse:
    """Get one language."""
    language: LanguageThing = require(language_out(code), "language", code)
    return answer_entry(LanguageOut(language=language), language.model_dump())


@router.put("/languages/{code}", response={200: ChangedOut, 201: ChangedOut}, openapi_extra=takes(LanguageIn))
def admin_put_language(request: HttpRequest, code: str) -> HttpResponse:
    """Add a language, or change the directive of an existing one."""
    body, changes = read_as(request, LanguageIn), list[str]()
    with ledger.exclusive():
        before = language_out(code)
        check_expectation(expectation_in(request), before.model_dump() if before else None)
        if before is None or before.directive != body.directive.strip():
            installation.save_language(script_actor(request), code, body.directive)
            changes = [f"Language {code} is saved."]
    language: LanguageThing = require(language_out(code), "language", code)
    result = ChangedOut(created=before is None, changes=changes, warnings=[])
    return answer_entry(result, language.model_dump(), 200 if before else 201)


@router.delete("/languages/{code}", response={204: None})
def admin_delete_language(request: HttpRequest, code: str) -> HttpResponse:
    """Remove an added language. A built-in one gets its original directive back. A missing one is no error."""
    with ledger.exclusive():
        language = language_out(code)
        check_expectation(expectation_in(request), language.model_dump() if language else None)
        if code in added_languages():
            installation.remove_language(script_actor(request), code)
    return HttpResponse(status=204)
