"""Parse a search text for the request log into a `Search`, and convert a `Search` back to text."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.translation import gettext as _

from capabilities.sentences import join_words
from routing_admin.core.fallback.endings import RequestEnding
from routing_admin.request_log.sent_files import PATTERNS
from routing_admin.request_log.time_ranges import window_start

AGO = re.compile(r"(\d{1,6})([smhdw])")
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
LABELS = {"team": "team", "project": "project", "user": "end_user"}
"""Maps search keys for labels to their columns."""
MAX_CHARACTERS = 2_000
"""Maximum length of a search text in characters; longer texts are cut."""
KEYS = ("status", "task", "provider", "model", "agent", "key", *LABELS, "surface", "files", "since", "until")
ENDING_VALUES = {ending.value for ending in RequestEnding}
ANY_FILE = "any"
FILES = (ANY_FILE, *PATTERNS)
"""Values of `files:`: any file, or the form in which the answering model received a file."""
STATUSES = ("ok", "failed", "refused", "cancelled", "error", "fallback")


@dataclass(frozen=True, slots=True)
class Search:
    """A parsed search: pairs of key and value, the beginning of a request id as `text`, and the problems found."""

    values: tuple[tuple[str, str], ...] = ()
    text: str = ""
    problems: tuple[str, ...] = ()

    def get(self, key: str) -> str:
        return dict(self.values).get(key, "")

    def to_text(self) -> str:
        words = [f"{key}:{quote(value)}" for key, value in self.values]
        return " ".join([*words, *([self.text] if self.text else [])])

    def having(self, key: str, value: str) -> Search:
        """Return the search with this value for the key, or without the key if the value is empty."""
        rest = tuple((name, old) for name, old in self.values if name != key)
        return replace(self, values=(*rest, (key, value)) if value else rest)


def search_last_day(key: str, value: str) -> Search:
    return Search(((key, value), ("since", "1d")))


def moment_text(moment: datetime) -> str:
    """Return a time in the form that `since:` and `until:` accept, in the installation's time zone."""
    return f"{timezone.localtime(moment):%Y-%m-%dT%H:%M}"


def quote(value: str) -> str:
    return f'"{value}"' if re.search(r"\s", value) else value


def parse(text: str, now: datetime | None = None) -> Search:
    """Parse a search text.

    Invalid words are dropped and listed as problems; of several words with the same key, the last one applies.
    """
    text = text[:MAX_CHARACTERS]
    try:
        # In a search text, an apostrophe is an ordinary character, not a quotation mark.
        words = shlex.split(text.replace("'", "\\'"))
    except ValueError:
        words = text.replace('"', "").split()
    values: dict[str, str] = {}
    free, problems = [], []
    for word in words:
        key, colon, value = word.partition(":")
        if not colon:
            free.append(word)
        elif problem := _problem(key, value, now or timezone.now()):
            problems.append(problem)
        else:
            values[key] = value
    return Search(tuple(values.items()), free[-1] if free else "", tuple(problems))


def _problem(key: str, value: str, now: datetime) -> str:
    if key not in KEYS:
        return _("There is no key %(key)s. Keys are: %(keys)s.") % {"key": key, "keys": join_words(KEYS)}
    if not value:
        return _("%(key)s has no value.") % {"key": key}
    if key in ("since", "until") and moment(value, now) is None:
        return _("%(value)s is not a time. Write 30m, 1h, 7d or 2026-11-20.") % {"value": value}
    if key == "status" and not is_status(value):
        return _(
            "%(value)s is not a status. Write ok, failed, refused, cancelled, fallback, a number such as 429 or a code."
        ) % {"value": value}
    if key == "files" and value not in FILES:
        return _("%(value)s is not a form of files. Write %(forms)s.") % {"value": value, "forms": join_words(FILES)}
    return ""


def is_status(text: str) -> bool:
    """Return whether a text is a valid value of `status:`: a named ending, a status code or an error code."""
    return text in STATUSES or bool(re.fullmatch(r"[1-5]\d\d|[a-z][a-z0-9_]*", text))


def moment(text: str, now: datetime) -> datetime | None:
    """Return the time for a text such as `1h` (an hour ago), a date or a time, or None if the text is invalid.

    Periods of an hour or longer start at a full hour (`window_start`).
    """
    match = AGO.fullmatch(text)
    try:
        if match:
            length = timedelta(**{UNITS[match[2]]: int(match[1])})
            return now - length if match[2] in "sm" else window_start(now, length)
        found = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        return None
    return found if found.tzinfo else timezone.make_aware(found)
