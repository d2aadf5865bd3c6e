"""A model's maximum input and output tokens, as set by the administrator or else listed in the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from capabilities.core.delivery.adaptation import Adapted
from capabilities.core.delivery.tokens import estimate_request
from capabilities.core.providers.catalogue import CatalogueEntry
from capabilities.core.translatable import Translatable, translatable

CONTEXT, OUTPUT = "contextTokens", "outputTokens"
"""Keys of the two token limits in a service's `limits`."""
MARGIN = 1.5
"""A request counts as too long only if its estimated tokens exceed this multiple of the limit. English has 2 to 5
characters per token and Chinese 0.5 to 1 tokens per character, so an estimate may be off by half."""

READS = translatable("It reads up to about %(most)s tokens; this request has about %(count)s.")
WRITES = translatable("It writes up to %(most)s tokens; this request asks for up to %(count)s.")


@dataclass(frozen=True, slots=True)
class TokenLimit:
    """A limit in tokens and its source. `source` and `checked_on` are empty if an administrator set the limit."""

    tokens: int
    source: str = ""
    checked_on: date | None = None


@dataclass(frozen=True, slots=True)
class TokenLimits:
    """A model's maximum tokens in a request and in an answer, each None if unknown."""

    context: TokenLimit | None = None
    output: TokenLimit | None = None

    def obstacle(self, adapted: Adapted, model: str) -> Translatable | None:
        """Return why an adapted request exceeds a limit, or None if it exceeds no known limit."""
        max_tokens = adapted.chat.max_tokens
        # The output limit is compared exactly, because max_tokens is not an estimate.
        if self.output and max_tokens is not None and max_tokens > self.output.tokens:
            return translatable(WRITES, most=f"{self.output.tokens:,}", count=f"{max_tokens:,}")
        if self.context is None:
            return None
        count = estimate_request(adapted, model)
        if count <= self.context.tokens * MARGIN:
            return None
        # Round to two significant digits, because the estimate is no more precise.
        return translatable(READS, most=f"{self.context.tokens:,}", count=f"{round(count, 2 - len(str(count))):,}")


UNKNOWN = TokenLimits()


def token_limits(configured: Mapping[str, Any], entry: CatalogueEntry | None) -> TokenLimits:
    """Return the token limits configured for a service, or else the catalogue's limits for its model."""
    return TokenLimits(
        _limit(configured.get(CONTEXT), entry, entry.max_input_tokens if entry else None),
        _limit(configured.get(OUTPUT), entry, entry.max_output_tokens if entry else None),
    )


def _limit(configured: object, entry: CatalogueEntry | None, default: int | None) -> TokenLimit | None:
    if isinstance(configured, int) and not isinstance(configured, bool) and configured > 0:
        return TokenLimit(configured)
    return TokenLimit(default, entry.source, entry.checked_on) if entry and default else None
