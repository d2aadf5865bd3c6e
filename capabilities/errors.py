"""Why an action was refused: each is one clear sentence for the page, the API and the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from capabilities.core.problems import Problem
from capabilities.core.translatable import translatable

MAX_LISTED = 200
"""Problems that an answer lists."""


class ActionError(Exception):
    """Something that was asked for could not be done; nothing was changed. `str()` is the sentence."""

    code = "invalid"
    status = 422


class NotFoundError(ActionError):
    """The thing named is not there."""

    code = "not_found"
    status = 404


class InUseError(ActionError):
    """The thing is used by others; the sentence names them."""

    code = "in_use"
    status = 409


class ConflictError(ActionError):
    """Somebody else changed the thing meanwhile; nothing was written."""

    code = "changed_meanwhile"
    status = 409


class TakenError(ActionError):
    """Somebody else added a thing of that name at the same moment; nothing was written."""

    code = "taken"
    status = 409


class TooManyError(ActionError):
    """The caller has as many of these as it may."""

    code = "too_many"
    status = 409


class ForbiddenError(ActionError):
    """The caller may not do this."""

    code = "forbidden"
    status = 403


class InvalidError(ActionError):
    """What was given does not make sense; `problems` lists every place."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problem.line for problem in first_problems(self.problems)))


def first_problems(problems: Sequence[Problem]) -> Sequence[Problem]:
    """The problems that are listed, and how many more there are."""
    if len(problems) <= MAX_LISTED:
        return problems
    more = translatable("There are %(count)s more problems. Put these right first.", count=len(problems) - MAX_LISTED)
    return (*problems[:MAX_LISTED], Problem("", more, "range", problems[MAX_LISTED].severity))
