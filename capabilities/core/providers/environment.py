"""Provider keys in environment variables: variable names, `${NAME}` references, placeholders, and read permissions.

Only `LLM_PROVIDER_{NAME}_API_KEY` and explicitly allowed variables are read, and only as keys. Otherwise, an imported
configuration file could make this program send any secret in its environment to any host.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count

PLACEHOLDERS = frozenset(
    {
        "YOUR_API_KEY_HERE",
        "YOUR_API_KEY",
        "your_api_key_here",
        "your_api_key",
        "your-api-key",
        "your-api-key-here",
        "YOUR-API-KEY",
        "<your-api-key>",
        "<YOUR_API_KEY>",
        "api-key",
        "API_KEY",
        "sk-xxx",
        "sk-xxxx",
        "sk-xxxxxx",
        "xxx",
        "XXX",
        "xxxx",
        "placeholder",
        "PLACEHOLDER",
        "changeme",
        "CHANGE_ME",
        "TODO",
    }
)
"""These texts mean that the key is missing. Only the entire text of a key field counts, because a real key may contain
one of them."""

NOT_NEEDED = "NOT_NEEDED"
"""In the key field, this means that the provider needs no key."""

FIRST_KEY = "1"
"""The default name of a provider's first key."""

REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
PROVIDER_VARIABLE = re.compile(r"LLM_PROVIDER_([A-Z0-9_]+)_API_KEY")
NUMBERED_VARIABLE = re.compile(r"(LLM_PROVIDER_[A-Z0-9_]+_API_KEY)_([1-9][0-9]*)")
"""Pattern for the environment variables that contain a provider's second and later keys."""
NOT_IN_NAME = re.compile(r"[^A-Z0-9]")
MASKED = re.compile(r".*(?:\*{3,}|•{3,}|…).*", re.DOTALL)
HEADER_SAFE = re.compile(r"[!-~](?:[ -~]*[!-~])?")


class KeyNotation(StrEnum):
    """The kinds of text that a key field may contain."""

    NOT_NEEDED = "not_needed"
    REFERENCE = "reference"
    PLACEHOLDER = "placeholder"
    MASKED = "masked"
    LITERAL = "literal"
    INVALID = "invalid"


def classify_key(text: str) -> KeyNotation:
    """Classify the text in a key field.

    A malformed reference is INVALID, and so is text that HTTP headers cannot contain.
    """
    if text in ("", NOT_NEEDED):
        return KeyNotation.NOT_NEEDED
    if REFERENCE.fullmatch(text):
        return KeyNotation.REFERENCE
    if text in PLACEHOLDERS:
        return KeyNotation.PLACEHOLDER
    if MASKED.fullmatch(text):
        return KeyNotation.MASKED
    # Text such as `${A}${B}` is neither a reference nor a key.
    return KeyNotation.INVALID if "${" in text or not header_safe(text) else KeyNotation.LITERAL


def header_safe(text: str) -> bool:
    """Return whether the text is allowed in an HTTP header: printable ASCII without leading or trailing spaces."""
    return HEADER_SAFE.fullmatch(text) is not None


def referenced_variable(text: str) -> str | None:
    match = REFERENCE.fullmatch(text)
    return match.group(1) if match else None


def reference(variable: str) -> str:
    return f"${{{variable}}}"


def name_part(provider: str) -> str:
    """Return NAME for a provider: its name in upper case, with `_` for every character other than A–Z and 0–9."""
    return NOT_IN_NAME.sub("_", provider.upper())


def key_variable(provider: str, env_name: str | None = None) -> str:
    """Return `LLM_PROVIDER_{NAME}_API_KEY` for a provider. `env_name` may set the NAME or the complete variable."""
    if env_name and PROVIDER_VARIABLE.fullmatch(env_name):
        return env_name
    return f"LLM_PROVIDER_{name_part(env_name or provider)}_API_KEY"


def further_variables(first: str, chosen: Iterable[str]) -> tuple[str, ...]:
    """Return the variables for a provider's second and later keys: `…_API_KEY_2`, `…_API_KEY_3` and so on.

    `first` is the first key's variable. `chosen` contains the configured variable of each later key, or an empty string
    for a key that should get the next free number.
    """
    chosen_variables = tuple(chosen)
    numbers = (f"{first}_{number}" for number in count(2))
    free = (variable for variable in numbers if variable not in chosen_variables)
    return tuple(variable or next(free) for variable in chosen_variables)


def may_read(variable: str, allowed: Collection[str] = ()) -> bool:
    """Return whether a variable may be read.

    Its name must be `LLM_PROVIDER_*_API_KEY`, with or without a number, or be one of the allowed names.
    """
    numbered = NUMBERED_VARIABLE.fullmatch(variable)
    return PROVIDER_VARIABLE.fullmatch(numbered[1] if numbered else variable) is not None or variable in allowed


def read_variable(variable: str, env: Mapping[str, str], allowed: Collection[str] = ()) -> str | None:
    """Return a variable's value, or None if the variable may not be read, is not set or is empty."""
    return (env.get(variable) or None) if may_read(variable, allowed) else None


@dataclass(frozen=True, slots=True)
class Overrides:
    """Which variable overrides each provider's key, and which providers have no such variable.

    `nameless` are providers whose names have no letter or digit from which NAME could be made. `colliding` are groups
    of providers that would have the same variable.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    nameless: tuple[str, ...] = ()
    colliding: tuple[tuple[str, ...], ...] = ()


def find_overrides(names: Mapping[str, str | None]) -> Overrides:
    """Return the overrides for these providers. `names` maps each provider's name to its `envName`, or None."""
    variables = {name: key_variable(name, env_name) for name, env_name in names.items()}
    nameless = tuple(name for name, variable in variables.items() if _is_nameless(variable))
    # Two providers may have the same NAME (such as `a-b` and `a_b`), but one variable must not set the keys of both.
    counts = Counter(variable for name, variable in variables.items() if name not in nameless)
    shared = [variable for variable, count in counts.items() if count > 1]
    return Overrides(
        {name: variable for name, variable in variables.items() if counts[variable] == 1},
        nameless,
        tuple(tuple(name for name in variables if variables[name] == variable) for variable in shared),
    )


def _is_nameless(variable: str) -> bool:
    match = PROVIDER_VARIABLE.fullmatch(variable)
    return match is None or not match.group(1).strip("_")
