"""The wire protocols of model APIs, each in its own package. The packages do not depend on each other."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from capabilities.core.protocols.anthropic.requests import Anthropic
from capabilities.core.protocols.echo.requests import Echo
from capabilities.core.protocols.gemini.requests import Gemini
from capabilities.core.protocols.openai.requests import OpenAI
from capabilities.core.protocols.openai_responses.requests import OpenAIResponses
from capabilities.core.wire import WireProtocol

PROTOCOLS: Mapping[str, WireProtocol] = MappingProxyType(
    {protocol.name: protocol for protocol in (OpenAI(), OpenAIResponses(), Anthropic(), Gemini(), Echo())}
)
