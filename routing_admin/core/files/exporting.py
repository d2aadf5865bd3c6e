"""Export a configuration as files: complete, for the original programs (seeds), or with this gateway as the provider.

Files never contain keys, only `${LLM_PROVIDER_{NAME}_API_KEY}`. Equal configurations produce identical bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from capabilities.core.providers.environment import key_variable
from capabilities.core.translatable import translatable
from routing_admin.core.configuration.specs import (
    DEFAULT_ROUTE,
    CandidateSpec,
    Configuration,
    KeyKind,
    KeySpec,
    ProviderSpec,
    RouteSpec,
)
from routing_admin.core.documents.json_path import write_document
from routing_admin.core.documents.kept_fields import drop_absent
from routing_admin.core.files.endpoints import without_foreign_base_urls
from routing_admin.core.files.importing import FileFormat
from routing_admin.core.files.llm_routing import ROOT_KEYS, write_provider, write_route
from routing_admin.core.files.llmservices import write_service
from routing_admin.core.files.own_sections import without_own_sections, write_own_sections
from routing_admin.core.files.provider_matching import written_identity
from routing_admin.core.files.seed_export import UNSUPPORTED_SERVICE_FIELDS, seed_routing, seed_services
from routing_admin.core.planning.model_names import task_name
from routing_admin.core.planning.plan import is_taken

GATEWAY = "routing-admin"
"""Name of this gateway as a provider in exported files. The environment variable for the agent key is therefore
`LLM_PROVIDER_ROUTING_ADMIN_API_KEY`.
"""


class Mode(StrEnum):
    FULL = "full"
    SEED = "seed"
    GATEWAY = "gateway"


@dataclass(frozen=True, slots=True)
class Export:
    """The text of a file, and a sentence for each part of the configuration that the file cannot express."""

    text: str
    left_out: tuple[str, ...] = ()


def export(
    configuration: Configuration, file_format: FileFormat, mode: Mode = Mode.FULL, *, public_url: str = ""
) -> Export:
    """Export one file.

    `public_url` is this installation's URL, such as `http://127.0.0.1:8000`. Raise `ValueError` if it is missing in
    mode `gateway`.
    """
    if mode is Mode.GATEWAY and not public_url:
        raise ValueError("an export that points at this installation needs its public URL")
    configuration = without_foreign_base_urls(configuration)
    if mode is Mode.SEED:
        value, left_out = (seed_routing if file_format is FileFormat.ROUTING else seed_services)(configuration)
        return Export(write_document(value), (*left_out, *_missing_keys(configuration)))
    if mode is Mode.GATEWAY:
        configuration = _point_at_us(configuration, public_url.rstrip("/") + "/v1")
    write = routing_value if file_format is FileFormat.ROUTING else services_value
    return Export(write_document(write(configuration)), tuple(_missing_keys(configuration)))


def _missing_keys(configuration: Configuration) -> Iterator[str]:
    # Stored keys are never written to a file, so the message names the providers whose keys are missing.
    names = tuple(
        provider.name
        for provider in configuration.providers
        if any(key.kind is KeyKind.STORED for key in (provider.key, *provider.more_keys))
    )
    if names:
        yield translatable(
            "Stored keys are not in this file: %(names)s. Set their variables, or enter them again after an import.",
            names=names,
        )


def routing_value(configuration: Configuration) -> dict[str, Any]:
    """Return `llm-routing.json` as a JSON value."""
    providers = written_identity(configuration).providers
    names = {provider.name for provider in providers}
    return {
        "providers": [write_provider(provider) for provider in providers],
        "routing": {route.task_type: write_route(route, names) for route in configuration.routes},
        **drop_absent(
            {
                "defaultLanguage": configuration.default_language,
                "contentPolicy": configuration.content_policy,
                "contentText": configuration.content_text,
                "contentHtml": configuration.content_html,
            }
        ),
        **write_own_sections(configuration),
        **{key: item for key, item in configuration.extra_routing.items() if key not in ROOT_KEYS},
    }


def services_value(configuration: Configuration) -> dict[str, Any]:
    """Return `llmservices.json` as a JSON value."""
    providers = {provider.name: provider for provider in configuration.providers}
    by_name = written_identity(configuration).with_names
    return {
        "services": [
            write_service(item, providers[item.provider], is_named=item.provider in by_name)
            for item in configuration.services
        ],
        **configuration.extra_services,
    }


def _point_at_us(configuration: Configuration, base: str) -> Configuration:
    key = KeySpec(KeyKind.ENV, key_variable(GATEWAY))
    # In the exported files, every task type and service keeps its name, but this installation is the provider.
    gateway = ProviderSpec(GATEWAY, f"{base}/chat/completions", task_name(DEFAULT_ROUTE), key=key)
    routes = (
        RouteSpec(route.task_type, (CandidateSpec(GATEWAY, task_name(route.task_type)),), extra=route.extra)
        for route in configuration.routes
        if is_taken(route)
    )
    services = (
        replace(service, provider=GATEWAY, base_url=base, model=service.id, sources={}, **UNSUPPORTED_SERVICE_FIELDS)
        for service in configuration.services
        if service.enabled
    )
    bare = without_own_sections(configuration)
    return replace(bare, providers=(gateway,), routes=tuple(routes), services=tuple(services))
