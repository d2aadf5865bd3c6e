"""The one provider that the environment names, where no file does (MMR-E2, decision 13)."""

from __future__ import annotations

from collections.abc import Mapping

from capabilities.core.providers.presets import protocol_of
from routing_admin.core.configuration.specs import (
    DEFAULT_ROUTE,
    CandidateSpec,
    Configuration,
    KeyKind,
    KeySpec,
    ProviderSpec,
    RouteSpec,
)

OPENAI_URL = "https://api.openai.com/v1/chat/completions"


class MissingConfigurationError(Exception):
    """Neither a configuration nor a provider in the environment (MMR-E2); says which variable to set."""


def configuration_from_env(env: Mapping[str, str]) -> Configuration:
    """One provider and the route `default` from LLM_PROVIDER, LLM_API_KEY, LLM_ENDPOINT, LLM_MODEL.

    The key stays in the environment: the configuration names its variable. Raises `MissingConfigurationError`
    without `LLM_API_KEY`.
    """
    if not env.get("LLM_API_KEY"):
        raise MissingConfigurationError(
            "No routing configuration was found and LLM_API_KEY is not set. "
            "Set LLM_ROUTING_CONFIG to a llm-routing.json, or LLM_API_KEY (and LLM_PROVIDER, LLM_ENDPOINT, LLM_MODEL)."
        )
    name, endpoint = env.get("LLM_PROVIDER") or "openai", env.get("LLM_ENDPOINT") or OPENAI_URL
    provider = ProviderSpec(
        name,
        endpoint,
        env.get("LLM_MODEL") or "gpt-4",
        protocol_of(endpoint),
        key=KeySpec(KeyKind.ENV, variable="LLM_API_KEY"),
    )
    return Configuration((provider,), routes=(RouteSpec(DEFAULT_ROUTE, (CandidateSpec(name),)),))
