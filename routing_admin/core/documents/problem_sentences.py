"""Messages for problems in a configuration: what is wrong, where it is, and how to correct it."""

from __future__ import annotations

from collections.abc import Iterable

from capabilities.core.problems import Problem
from capabilities.core.translatable import translatable


class InvalidConfigurationError(Exception):
    """A configuration that cannot be used; `problems` contains every error (MMR-E3)."""

    def __init__(self, problems: Iterable[Problem], source: str = "the configuration") -> None:
        self.problems = tuple(problems)
        super().__init__(
            "\n".join((f"{source} is not valid:", *(f"- {format_line(problem)}" for problem in self.problems)))
        )


def errors(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems that prevent an import, excluding warnings."""
    return tuple(problem for problem in problems if problem.severity == "error")


def format_line(problem: Problem) -> str:
    mark = "" if problem.severity == "error" else f"{problem.severity}: "
    return mark + problem.message


def dropped_field(path: str) -> Problem:
    message = translatable("%(path)s is not known here, and is not kept.", path=path)
    return Problem(path, message, "reference", severity="warning")


def missing_field(path: str) -> Problem:
    return Problem(
        path, translatable("%(path)s is missing: it is required and must not be empty.", path=path), "required"
    )


def wrong_type(path: str, expected: str) -> Problem:
    return Problem(path, translatable("%(path)s must be %(expected)s.", path=path, expected=expected), "type")


def out_of_range(path: str, expected: str) -> Problem:
    return Problem(path, translatable("%(path)s must be %(expected)s.", path=path, expected=expected), "range")


def invalid_choice(path: str, allowed: Iterable[str]) -> Problem:
    message = translatable("%(path)s must be one of: %(allowed)s.", path=path, allowed=tuple(allowed))
    return Problem(path, message, "enum")


def unknown_provider(path: str, name: str) -> Problem:
    """Return the problem for a reference to a provider that does not exist (MMR-P4)."""
    text = translatable(
        "%(path)s: there is no provider “%(name)s”. Add it to providers, or name another one here.",
        path=path,
        name=name,
    )
    return Problem(path, text, "reference")


def duplicate_name(path: str, what: str, value: str) -> Problem:
    message = translatable(
        "%(path)s: an earlier entry already uses the %(what)s “%(value)s”. Choose another.",
        path=path,
        what=what,
        value=value,
    )
    return Problem(path, message, "duplicate")


def repeated(path: str, text: str) -> Problem:
    """Return the warning about a candidate that occurs twice in a chain; requests skip the second one."""
    message = translatable(
        "%(path)s: “%(name)s” is already in this chain and will be skipped. Remove one of them.", path=path, name=text
    )
    return Problem(path, message, "duplicate", "warning")


def no_override(path: str, names: Iterable[str]) -> Problem:
    """Return the warning that several providers would read their keys from the same environment variable."""
    message = translatable(
        "%(path)s: %(names)s would share one LLM_PROVIDER_…_API_KEY. Set envName to give each its own.",
        path=path,
        names=tuple(f"“{name}”" for name in names),
    )
    return Problem(path, message, "duplicate", "warning")


def placeholder(path: str) -> Problem:
    message = translatable(
        "%(path)s is a placeholder: the provider cannot be used until its key is entered or set in the environment.",
        path=path,
    )
    return Problem(path, message, "required", "warning")


def forbidden_variable(path: str, variable: str) -> Problem:
    message = translatable(
        "%(path)s: the variable %(variable)s is not allowed, so there is no key. Use LLM_PROVIDER_{NAME}_API_KEY.",
        path=path,
        variable=variable,
    )
    return Problem(path, message, "enum", "warning")


def unset_variable(path: str, variable: str) -> Problem:
    message = translatable(
        "%(path)s: the variable %(variable)s is not set, so there is no key. Set it, or enter a key.",
        path=path,
        variable=variable,
    )
    return Problem(path, message, "required", "warning")


def bad_key(path: str) -> Problem:
    message = translatable(
        # The message must not repeat the key.
        "%(path)s is not a key: it must be printable ASCII without spaces at either end, or exactly ${VARIABLE}.",
        path=path,
    )
    return Problem(path, message, "type")
