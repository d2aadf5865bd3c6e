"""Problems in words: one function per rule, each sentence says what, where, and what to do next."""

from __future__ import annotations

from collections.abc import Iterable

from capabilities.core.problems import Problem


class InvalidConfigurationError(Exception):
    """A configuration that nothing may start on; `problems` has every one of them (MMR-E3)."""

    def __init__(self, problems: Iterable[Problem], source: str = "the configuration") -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join((f"{source} is not valid:", *(f"- {line(problem)}" for problem in self.problems))))


def errors(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Those that stop an import."""
    return tuple(problem for problem in problems if problem.severity == "error")


def line(problem: Problem) -> str:
    """A problem as one line of a command's output."""
    mark = "" if problem.severity == "error" else f"{problem.severity}: "
    return mark + problem.message


def missing(path: str) -> Problem:
    """A required field that is not there or is empty."""
    return Problem(path, f"{path} is missing: it is required and must not be empty.", "required")


def wrong_type(path: str, expected: str) -> Problem:
    """A value of another type than the field has."""
    return Problem(path, f"{path} must be {expected}.", "type")


def out_of_range(path: str, expected: str) -> Problem:
    """A number outside its bounds."""
    return Problem(path, f"{path} must be {expected}.", "range")


def not_one_of(path: str, allowed: Iterable[str]) -> Problem:
    """A word outside its list."""
    return Problem(path, f"{path} must be one of: {', '.join(allowed)}.", "enum")


def unknown_provider(path: str, name: str) -> Problem:
    """A reference to a provider that is not there (MMR-P4)."""
    text = f"{path}: there is no provider “{name}”. Add it to providers, or name another one here."
    return Problem(path, text, "reference")


def taken(path: str, what: str, value: str) -> Problem:
    """A name or id that an earlier entry has."""
    return Problem(
        path, f"{path}: the {what} “{value}” is used by an earlier entry. Give this one another.", "duplicate"
    )


def repeated(path: str, text: str) -> Problem:
    """A candidate that the chain has already; it is skipped when the chain is walked (decision 7)."""
    message = f"{path}: “{text}” is in this chain already and will be skipped. Remove one of them."
    return Problem(path, message, "duplicate", "warning")


def no_override(path: str, names: Iterable[str]) -> Problem:
    """Providers whose names give the same NAME, or none: no variable overrides their key (decision 10)."""
    who = ", ".join(f"“{name}”" for name in names)
    message = f"{path}: no LLM_PROVIDER_…_API_KEY can be told apart for {who}. Set envName to give each its own."
    return Problem(path, message, "duplicate", "warning")


def placeholder(path: str) -> Problem:
    """A key that is only an example."""
    message = (
        f"{path} is a placeholder: the provider cannot be used until its key is entered or set in the environment."
    )
    return Problem(path, message, "required", "warning")


def forbidden_variable(path: str, variable: str) -> Problem:
    """A `${ENV}` outside the allow-list."""
    message = (
        f"{path}: the variable {variable} may not be read, so the provider cannot be used. "
        "Use LLM_PROVIDER_{NAME}_API_KEY."
    )
    return Problem(path, message, "enum", "warning")


def unset_variable(path: str, variable: str) -> Problem:
    """A `${ENV}` that is not set, or empty."""
    message = f"{path}: the variable {variable} is not set, so the provider cannot be used. Set it, or enter a key."
    return Problem(path, message, "required", "warning")


def bad_key(path: str) -> Problem:
    """A key that no request could carry; the key itself is not repeated."""
    message = f"{path} is no key: it must be printable ASCII without spaces at its ends, or exactly ${{VARIABLE}}."
    return Problem(path, message, "type")


def unreadable_text(path: str) -> Problem:
    """A text with a NUL or half a surrogate pair."""
    return Problem(path, f"{path} contains a character that cannot be stored (NUL or half a surrogate pair).", "type")
