"""What a key field and an endpoint mean for a provider's usability, here and now: warnings that stop nothing else."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from capabilities.core.problems import Problem
from capabilities.core.providers.environment import (
    KeyNotation,
    form_of,
    key_variable,
    read,
    readable,
    referenced_variable,
)
from capabilities.core.worded import worded
from routing_admin.core.documents.problem_sentences import forbidden_variable, placeholder, unset_variable


def never_refused(endpoint: str) -> str | None:
    """No sentence for any endpoint: what stands in where no deployment's origins are known."""
    return None


@dataclass(frozen=True, slots=True)
class KeyContext:
    """What validation may know of the machine: its variables (None: not asked), which may be read beside
    `LLM_PROVIDER_*_API_KEY`, and the sentences with which an endpoint, or a proxy, is refused.
    """

    env: Mapping[str, str] | None = None
    allowed: Collection[str] = ()
    refusal: Callable[[str], str | None] = never_refused
    proxy_refusal: Callable[[str], str | None] = never_refused

    def endpoint_warnings(self, path: str, endpoint: str) -> Iterator[Problem]:
        """A warning for an endpoint that this deployment does not let be called."""
        yield from _origin_warning(path, self.refusal(endpoint))

    def proxy_warnings(self, path: str, proxy: str) -> Iterator[Problem]:
        """A warning for a proxy through which it does not."""
        yield from _origin_warning(path, self.proxy_refusal(proxy))


def _origin_warning(path: str, sentence: str | None) -> Iterator[Problem]:
    if sentence:
        yield Problem(path, worded("%(path)s: %(reason)s", path=path, reason=sentence), "enum", "warning")


NOWHERE = KeyContext()


def key_warnings(
    path: str, text: str, around: KeyContext, provider: str | None = None, env_name: str | None = None
) -> Iterator[Problem]:
    """Why the provider would have no key: a placeholder, a variable that is not allowed, or one that is not set.

    An override that is set answers all three.
    """
    env = around.env or {}
    if provider and read(key_variable(provider, env_name), env, around.allowed):
        return
    variable = referenced_variable(text)
    if form_of(text) in (KeyNotation.PLACEHOLDER, KeyNotation.MASKED):
        yield placeholder(path)
    elif variable and not readable(variable, around.allowed):
        yield forbidden_variable(path, variable)
    elif variable and around.env is not None and not read(variable, env, around.allowed):
        yield unset_variable(path, variable)
