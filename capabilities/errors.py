"""Errors raised by actions. Each has one sentence for the page, the API and the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from capabilities.core.problems import Problem
from capabilities.core.translatable import translatable

MAX_LISTED = 200
"""Maximum number of problems in an error message."""


class ActionError(Exception):
    """The requested action failed and changed nothing. `str()` returns the sentence for users."""

    code = "invalid"
    status = 422


class NotFoundError(ActionError):
    code = "not_found"
    status = 404


class InUseError(ActionError):
    """The object is in use and cannot be changed.

    The sentence names the objects that use it. `kind` is their kind and `count` their number.
    """

    code = "in_use"
    status = 409

    def __init__(self, message: str, *, kind: str = "", count: int = 0) -> None:
        super().__init__(message)
        self.kind, self.count = kind, count


class ConflictError(ActionError):
    """Another request has changed the object in the meantime, so nothing was written."""

    code = "changed_meanwhile"
    status = 409


class TakenError(ActionError):
    """Another request added an object with this name at the same time, so nothing was written."""

    code = "taken"
    status = 409


class TooManyError(ActionError):
    code = "too_many"
    status = 409


class ForbiddenError(ActionError):
    code = "forbidden"
    status = 403


class InvalidError(ActionError):
    """The input is invalid. `problems` contains all problems found."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problem.line for problem in first_problems(self.problems)))


def first_problems(problems: Sequence[Problem]) -> Sequence[Problem]:
    """Return the first problems. If there are more, an additional problem states how many."""
    if len(problems) <= MAX_LISTED:
        return problems
    remainder = translatable(
        "There are %(count)s more problems. Put these right first.", count=len(problems) - MAX_LISTED
    )
    return (*problems[:MAX_LISTED], Problem("", remainder, "range", problems[MAX_LISTED].severity))
