"""Every field of the configuration can be set on a page and is documented in docs/configuration.md."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from capabilities.models import Provider, Service
from routing_admin.console.providers.forms import ProviderForm
from routing_admin.console.routes.forms import CandidateForm, RouteForm
from routing_admin.console.services.forms import ServiceForm
from routing_admin.core.configuration.specs import CandidateSpec, ProviderSpec, RouteSpec, ServiceSpec
from routing_admin.core.files.entries import EntryKind, write_entry
from tests.configuration.field_table import TABLE
from tests.configuration.test_every_field_survives import with_sample

DOCUMENT = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text("utf-8")
KEPT_UNKNOWN = "kept as it is: what a file has and this version does not know"

NOT_IN_FORM: Mapping[type, Mapping[str, str]] = {
    ProviderSpec: {
        "name": "its identity: set where it is made, and then in its address",
        "key": "key_act",
        "quirks": "quirk_",
        "timeouts": "timeout_",
        "in_routing_file": "the page of the export has a switch for each provider",
        "extra": KEPT_UNKNOWN,
        "more_keys": "the page of the provider's keys has a form for each",
    },
    ServiceSpec: {
        "id": "service_id",
        "base_url": "another way of writing its provider's address, kept as a file had it",
        "capabilities": "cell",
        "sources": "follows from who set a capability",
        "capability_tags": "tags",
        "limits": "limits_json",
        "price": "a form of its own within this one",
        "content": "policy",
        "timeouts": "timeout_",
        "extra_body": "extra_body_json",
        "extra": KEPT_UNKNOWN,
    },
    RouteSpec: {
        "candidates": "each has a form of its own",
        "on_error": "preset",
        "content": "policy",
        "extra": KEPT_UNKNOWN,
    },
    CandidateSpec: {"extra": KEPT_UNKNOWN},
}
"""Maps a field to its name (or name prefix) in the form, or to the reason why the form lacks it."""


def form_fields(kind: type) -> set[str]:
    if kind is ProviderSpec:
        return set(ProviderForm(instance=Provider(endpoint="https://a.example/v1")).fields)
    # Only the form of a new service has an id field, and only the form of an existing service has switches.
    if kind is ServiceSpec:
        return {*ServiceForm(instance=Service()).fields, *ServiceForm(instance=Service(pk=1)).fields}
    return set({RouteSpec: RouteForm, CandidateSpec: CandidateForm}[kind].base_fields)


@pytest.mark.parametrize("kind", NOT_IN_FORM)
@pytest.mark.django_db
def test_every_configuration_field_is_in_a_form_or_omitted_for_a_reason(kind: type) -> None:
    form_names, reasons = form_fields(kind), NOT_IN_FORM[kind]
    missing = [field.name for field in fields(kind) if field.name not in form_names and field.name not in reasons]
    assert missing == []
    prefixes = [reason for reason in reasons.values() if " " not in reason]
    assert [prefix for prefix in prefixes if not any(name.startswith(prefix) for name in form_names)] == []


def admin_entries(kind: type, name: str) -> Iterator[Any]:
    """Yield entries in the format of the administrators' API, with the field set to its sample value."""
    for configuration in with_sample(kind, name):
        if kind is ProviderSpec:
            yield write_entry(configuration, EntryKind.PROVIDER, configuration.providers[0].name)
        elif kind is ServiceSpec:
            yield write_entry(configuration, EntryKind.SERVICE, configuration.services[0].id)
        else:
            yield write_entry(configuration, EntryKind.ROUTE, configuration.routes[0].task_type)


def list_keys(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield the JSON keys of an entry and its candidates, but not those of other nested objects."""
    yield from entry
    for candidate in (entry.get("primary"), *entry.get("fallback", ())):
        yield from candidate if isinstance(candidate, Mapping) else ()


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in NOT_IN_FORM for name in TABLE[kind]])
def test_every_configuration_key_is_documented(kind: type, name: str) -> None:
    keys = {key for entry in admin_entries(kind, name) for key in list_keys(entry) if not key.startswith("x-")}
    assert keys
    assert [key for key in sorted(keys) if not re.search(rf"\b{key}\b", DOCUMENT)] == []
