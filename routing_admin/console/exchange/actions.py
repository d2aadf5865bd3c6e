"""Preview and apply imports of configuration files, and replace whole providers, services and routes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from capabilities.actors import Actor, AuditedAction
from capabilities.core.problems import Problem
from capabilities.core.providers.origins import parse_policy, refuse_proxy, refuse_url
from capabilities.core.translatable import Translatable, translatable
from capabilities.errors import ConflictError, ForbiddenError, InvalidError
from capabilities.models import Agent, CatalogueEdition
from capabilities.secrets import endpoint_origin, key_fingerprint, store_key
from routing_admin.configuration import rows
from routing_admin.configuration.history import newest_number
from routing_admin.configuration.revisions import ledger
from routing_admin.console.alerts.actions import end_kind, record_condition
from routing_admin.core.alerts.kinds import AlertKind, build_condition
from routing_admin.core.configuration.checks import check, check_describers
from routing_admin.core.configuration.diff import Change, diff
from routing_admin.core.configuration.removals import removed_names
from routing_admin.core.configuration.specs import Configuration, KeyKind, KeySpec
from routing_admin.core.documents.json_path import child
from routing_admin.core.documents.problem_sentences import errors
from routing_admin.core.files.entries import NO_EXPECTATION, EntryKind, Expectation, merge_entry, write_entry
from routing_admin.core.files.importing import Imported, import_files
from routing_admin.core.files.keys import KeyContext
from routing_admin.core.planning.model_names import is_target, task_name

STILL_USED = {
    "route": (
        gettext_noop("Agents still use this task route: %(users)s. Give them another one first."),
        gettext_noop("Aliases still lead to this task route: %(users)s. Change them first."),
    ),
    "service": (
        gettext_noop("Agents still use this service: %(users)s. Give them another one first."),
        gettext_noop("Aliases still lead to this service: %(users)s. Change them first."),
    ),
}
"""Messages that say why a route or service cannot be removed: agents use it, or aliases refer to it.

DELETE requests give the same reasons.
"""

# Kinds of entries that an import may change if it is authorized by an agent's key with the scope `config:write`.
AGENT_KINDS = frozenset({"provider", "service", "route", "configuration"})


@dataclass(frozen=True, slots=True)
class ImportPreview:
    """What an import would change in the configuration at `revision`."""

    imported: Imported
    before: Configuration
    changes: tuple[Change, ...]
    revision: int | None


@dataclass(frozen=True, slots=True)
class AppliedImport:
    """An import that was applied: its preview, and its revision or None if nothing changed."""

    revision: int | None
    preview: ImportPreview


def key_context() -> KeyContext:
    """Return what is needed to validate keys: the environment variables, and the rules for URLs that may be called."""
    policy = parse_policy(",".join(settings.ALLOWED_ORIGINS))
    return KeyContext(
        env=os.environ,
        refusal=partial(refuse_url, policy=policy),
        proxy_refusal=partial(refuse_proxy, policy=policy, own_proxy=settings.OUTGOING_PROXY),
    )


def preview_import(files: Sequence[bytes | str], *, prune: bool = False) -> ImportPreview:
    """Return what importing these files would change, and all problems in the files."""
    before = rows.read()
    imported = import_files(before, files, prune=prune, key_context=key_context(), fingerprint_at=fingerprint)
    if imported.accepted:  # Run the checks of a real import, so that a dry run reports the same problems.
        after = imported.configuration
        problems = [*check(after, before), *check_describers(before, after), *check_removals(before, after)]
        problems += missing_catalogue(before, after)
        imported = replace(imported, problems=(*imported.problems, *problems))
    return ImportPreview(imported, before, diff(before, imported.configuration), newest_number())


def check_removals(before: Configuration, after: Configuration) -> Iterator[Problem]:
    """Yield a problem for each removed route or service that aliases, or agents created at run time, still use."""
    # Agents that administrators created are part of the configuration and therefore validated with it.
    runtime_agents = Agent.objects.filter(origin=Agent.Origin.RUNTIME).order_by("agent_id")
    for kind, names in removed_names(before, after).items():
        for name in names:
            targets = {"route": (name, task_name(name)), "service": (name,)}.get(kind, ())
            agents_by_kind = {
                "route": runtime_agents.filter(task_type=name),
                "service": runtime_agents.filter(service__service_id=name),
            }
            agents = tuple(agent.agent_id for agent in agents_by_kind.get(kind, ()))
            aliases = tuple(
                alias.name for alias in after.aliases if alias.target in targets and not is_target(after, alias.target)
            )
            path = child("routing", name) if kind == "route" else name
            for users, sentence in zip((agents, aliases), STILL_USED.get(kind, ()), strict=False):
                if users:
                    yield Problem(path, Translatable(sentence, {"users": users}), "reference")


def missing_catalogue(before: Configuration, after: Configuration) -> Iterator[Problem]:
    """Yield a warning if the files name a catalogue edition that this installation does not have."""
    # A file contains only the name of an edition, so it may name one that only another installation has.
    name = after.catalogue
    if name and name != before.catalogue and not CatalogueEdition.objects.filter(name=name).exists():
        message = translatable(
            "The catalogue “%(name)s” is not in this installation, so the shipped one is used. Refresh it on the "
            "page Catalogue.",
            name=name,
        )
        yield Problem("catalogue", message, "reference", "warning")


def check_may_import(actor: Actor, preview: ImportPreview) -> None:
    """Raise `ForbiddenError` if an agent's import would change something that only administrators may change."""
    if actor.kind != "agent":
        return
    # Otherwise, an agent could raise its own limits with an import.
    if any(change.kind not in AGENT_KINDS or change.field == "catalogue" for change in preview.changes):
        raise ForbiddenError(
            _("Only an administrator can import aliases, agents, languages, budgets, exchange rates or a catalogue.")
        )


def fingerprint(key: str, endpoint: str) -> str:
    # A key that is already stored has the same fingerprint, so importing it again changes nothing.
    return key_fingerprint(key, endpoint_origin(endpoint))


def import_configuration(
    actor: Actor, files: Sequence[bytes | str], *, prune: bool = False, expected: int | None = None, message: str = ""
) -> AppliedImport:
    """Import the files as one revision. If this raises an exception, nothing is written.

    Raise `InvalidError` with all problems, `ConflictError` if `expected` is not the newest revision, and
    `ForbiddenError` as `check_may_import` does.
    """
    act, now = AuditedAction("configuration.import", message=message or _("Import")), timezone.now()
    with alert_on_rejection(actor, now), ledger.change(actor, act):
        preview = preview_import(files, prune=prune)
        if expected is not None and expected != (preview.revision or 0):
            raise ConflictError(_("The configuration changed in the meantime. Review the new difference, then apply."))
        if not preview.imported.accepted:
            raise InvalidError(problem for problem in preview.imported.problems if problem.severity == "error")
        check_may_import(actor, preview)
        imported = preview.imported
        rows.write(store_keys(imported.configuration, imported.keys, imported.further_keys))
    with suppress(DatabaseError, InterfaceError):
        end_kind(AlertKind.CONFIGURATION_REJECTED, now)
    return AppliedImport(act.revision, preview)


@contextmanager
def alert_on_rejection(actor: Actor, now: datetime) -> Iterator[None]:
    """Record an alert if an import in the `with` block is rejected with `InvalidError`."""
    try:
        yield
    except InvalidError as refuse_url:
        reason = next((problem.message for problem in refuse_url.problems), str(refuse_url))
        condition = build_condition(AlertKind.CONFIGURATION_REJECTED, f"{actor.kind} {actor.name}", problem=reason)
        # The transaction is rolled back, so the alert is recorded outside it. The error is raised even if the database
        # is unavailable.
        with suppress(DatabaseError, InterfaceError):
            record_condition(condition, now)
        raise


def store_keys(
    configuration: Configuration, keys: Mapping[str, str], further_keys: Mapping[str, Sequence[str]]
) -> Configuration:
    """Store the keys from the files, each for its provider's origin. Return the configuration with references to them.

    `configuration` already refers to `further_keys` by their fingerprints.
    """
    for provider in configuration.providers:
        for text in further_keys.get(provider.name, ()):
            store_key(text, provider.endpoint)
    stored = {
        provider.name: store_key(keys[provider.name], provider.endpoint).fingerprint
        for provider in configuration.providers
        if provider.name in keys and endpoint_origin(provider.endpoint)
    }
    providers = tuple(
        replace(provider, key=_stored_key_spec(provider.key, stored[provider.name]))
        if provider.name in stored
        else provider
        for provider in configuration.providers
    )
    return replace(configuration, providers=providers)


def _stored_key_spec(key: KeySpec, fingerprint: str) -> KeySpec:
    return KeySpec(KeyKind.STORED, fingerprint=fingerprint, name=key.name, enabled=key.enabled)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryChange:
    """A written entry: whether it is new, its changes and current content, any warnings, and the new revision."""

    is_new: bool
    changes: tuple[Change, ...]
    warnings: tuple[Problem, ...]
    revision: int | None
    entry: Mapping[str, Any]


def put_entry(
    actor: Actor, kind: EntryKind, name: str, value: object, *, expected: Expectation = NO_EXPECTATION
) -> EntryChange:
    """Set the named entry to `value`. If the entry already has this value, nothing is written.

    Raise `InvalidError` with all problems, and `ConflictError` if the stored entry does not meet the precondition
    `expected`.
    """
    with ledger.exclusive():
        before = rows.read()
        entry = write_entry(before, kind, name)
        check_expectation(expected, entry)
        merged = _merge(before, kind, name, value)
        changes, is_new = diff(before, merged.configuration), entry is None
        # Keys in the value must be stored even if nothing else in the value changes.
        if not changes and not merged.keys:
            return EntryChange(is_new=is_new, changes=(), warnings=merged.problems, revision=None, entry=entry or {})
        act = AuditedAction(f"{kind}.{'add' if is_new else 'change'}", kind.value, name)
        with ledger.change(actor, act):
            rows.write(store_keys(merged.configuration, merged.keys, merged.further_keys))
        entry = write_entry(rows.read(), kind, name) or {}
    return EntryChange(is_new=is_new, changes=changes, warnings=merged.problems, revision=act.revision, entry=entry)


def check_entry(kind: EntryKind, name: str, expected: Expectation) -> None:
    """Raise `ConflictError` if the stored entry with this name does not meet the caller's precondition."""
    if expected.tags is not None:
        check_expectation(expected, write_entry(rows.read(), kind, name))


def check_expectation(expected: Expectation, entry: Mapping[str, Any] | None) -> None:
    """Raise `ConflictError` if the entry (None if it does not exist) does not meet the caller's precondition."""
    if not expected.allows(entry):
        raise ConflictError(_("Someone else changed this in the meantime. Check the new version, then save again."))


def _merge(before: Configuration, kind: EntryKind, name: str, value: object) -> Imported:
    merged = merge_entry(before, kind, name, value, key_context(), fingerprint)
    problems = errors(merged.problems) or errors(check(merged.configuration, before))
    if problems:
        raise InvalidError(problems)
    return merged
