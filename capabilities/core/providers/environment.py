"""Keys and the environment: NAME, `${ENV}`, placeholders, and which variables may be read at all.

Only `LLM_PROVIDER_{NAME}_API_KEY` and names explicitly allowed are ever looked up, and only for keys, so that an
imported file cannot send another secret of this machine to a host of its choice (decision 10).
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
"""Keys that are none, compared whole: a real key that merely contains one of these words stays a key."""

NOT_NEEDED = "NOT_NEEDED"
"""The key of a provider that needs none."""

FIRST_KEY = "1"
"""What a provider's first key is called that nobody has named (decision 20)."""

REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
PROVIDER_VARIABLE = re.compile(r"LLM_PROVIDER_([A-Z0-9_]+)_API_KEY")
NUMBERED_VARIABLE = re.compile(r"(LLM_PROVIDER_[A-Z0-9_]+_API_KEY)_([1-9][0-9]*)")
"""Of a provider's further keys (decision 20)."""
NOT_IN_NAME = re.compile(r"[^A-Z0-9]")
MASKED = re.compile(r".*(?:\*{3,}|•{3,}|…).*", re.DOTALL)
HEADER_SAFE = re.compile(r"[!-~](?:[ -~]*[!-~])?")


class KeyNotation(StrEnum):
    """What the text in a key field is."""

    NOT_NEEDED = "not_needed"
    REFERENCE = "reference"
    PLACEHOLDER = "placeholder"
    MASKED = "masked"
    LITERAL = "literal"
    INVALID = "invalid"


def form_of(text: str) -> KeyNotation:
    """What a key field's text is: `invalid` where no HTTP header could carry it or `${` is not a whole reference."""
    if text in ("", NOT_NEEDED):
        return KeyNotation.NOT_NEEDED
    if REFERENCE.fullmatch(text):
        return KeyNotation.REFERENCE
    if text in PLACEHOLDERS:
        return KeyNotation.PLACEHOLDER
    if MASKED.fullmatch(text):
        return KeyNotation.MASKED
    return KeyNotation.INVALID if "${" in text or not header_safe(text) else KeyNotation.LITERAL


def header_safe(text: str) -> bool:
    """Whether an HTTP header can carry the text as it is: printable ASCII, no space at either end."""
    return HEADER_SAFE.fullmatch(text) is not None


def referenced_variable(text: str) -> str | None:
    """The variable that a key field names as `${NAME}`; None where the text is something else."""
    match = REFERENCE.fullmatch(text)
    return match.group(1) if match else None


def reference(variable: str) -> str:
    """The key field's text that names a variable."""
    return f"${{{variable}}}"


def name_part(provider: str) -> str:
    """NAME for a provider: upper-cased, every character other than A–Z 0–9 turned into `_` (decision 10)."""
    return NOT_IN_NAME.sub("_", provider.upper())


def key_variable(provider: str, env_name: str | None = None) -> str:
    """`LLM_PROVIDER_{NAME}_API_KEY`; `env_name`, where set, is the NAME, or the whole variable."""
    if env_name and PROVIDER_VARIABLE.fullmatch(env_name):
        return env_name
    return f"LLM_PROVIDER_{name_part(env_name or provider)}_API_KEY"


def further_variables(first: str, chosen: Iterable[str]) -> tuple[str, ...]:
    """The variables of a provider's further keys, whose first one has `first`: `…_API_KEY_2`, `…_3` and so on.

    `chosen` are those that they name themselves, in order, empty for one that takes the next free number.
    """
    own = tuple(chosen)
    numbers = (f"{first}_{number}" for number in count(2))
    free = (variable for variable in numbers if variable not in own)
    return tuple(variable or next(free) for variable in own)


def readable(variable: str, allowed: Collection[str] = ()) -> bool:
    """Whether the variable may be read for a key: `LLM_PROVIDER_*_API_KEY`, numbered or not, or explicitly allowed."""
    numbered = NUMBERED_VARIABLE.fullmatch(variable)
    return PROVIDER_VARIABLE.fullmatch(numbered[1] if numbered else variable) is not None or variable in allowed


def read(variable: str, env: Mapping[str, str], allowed: Collection[str] = ()) -> str | None:
    """The variable's value; None where it may not be read, is unset or is empty."""
    return (env.get(variable) or None) if readable(variable, allowed) else None


@dataclass(frozen=True, slots=True)
class Overrides:
    """Which variable overrides which provider's key, and the providers that none can: those without a NAME, and
    those that share one (each group in order).
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    nameless: tuple[str, ...] = ()
    colliding: tuple[tuple[str, ...], ...] = ()


def overrides(names: Mapping[str, str | None]) -> Overrides:
    """The overrides for providers, given as name → `envName` or None (decision 10)."""
    variables = {name: key_variable(name, env_name) for name, env_name in names.items()}
    nameless = tuple(name for name, variable in variables.items() if _is_nameless(variable))
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
